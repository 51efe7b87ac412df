"""One node as a program, for clusters with foreign ones: tells what it hears in lines of JSON.

SIGTERM makes it say goodbye first. `Lone` starts it on a host and keeps what it told.
"""

import asyncio
import base64
import dataclasses
import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import structlog

from gossip.events import HealthChanged
from gossip.machine import Machine
from gossip.node import Node
from gossip.peer import PROTOCOL_VERSIONS, Address, Identity
from gossip.tuning import default
from gossip.wire.packet import Envelope
from gossip.wire.seal import Keyring

ROOT = Path(__file__).resolve().parents[2]


class Lone:
    """A node of ours on a host of a segment; what it told, in order, with who is alive now."""

    def __init__(self, host, name, *seeds, port=7946, versions=(0, 0, 0), key="", label=""):
        self.name = name
        wish = {
            "name": name,
            "host": host.ip4,
            "port": port,
            "seeds": seeds,
            "versions": versions,
            "key": key,
            "label": label,
        }
        self.told = []
        self.errors = []
        self._process = host.start(
            sys.executable,
            "-X",
            "dev",
            "-c",
            "from support.lonenode import main; main()",
            json.dumps(wish),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT}/tests"},
        )
        for pipe, read in ((self._process.stdout, self._hear), (self._process.stderr, self._moan)):
            threading.Thread(target=read, args=(pipe,), daemon=True).start()

    def _hear(self, pipe):
        with pipe:
            for line in pipe:
                self.told.append(json.loads(line))

    def _moan(self, pipe):
        with pipe:
            self.errors.extend(pipe)

    def health(self):
        """By name, what this node last said of each member."""
        return {each["name"]: each["health"] for each in self.told if each["event"] == "health"}

    def events(self, kind):
        return [each for each in self.told if each["event"] == kind]

    def send(self, number):
        self._process.send_signal(number)

    def end(self, number=signal.SIGTERM):
        """Stop it and wait; its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(number)
            self._process.send_signal(signal.SIGCONT)
        return self._process.wait(timeout=20)


def eventually(condition, patience=20, show=str):
    """Wait until the condition holds; what it returned, or an AssertionError that shows why not."""
    end = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < end, f"waited in vain: {show()}"
        time.sleep(0.1)
    return found


def main():
    asyncio.run(_run(json.loads(sys.argv[1])))


async def _run(wish):
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    address = Address(wish["host"], wish["port"])
    ring = Keyring((base64.b64decode(wish["key"]),)) if wish["key"] else None
    envelope = Envelope(label=wish["label"].encode(), keyring=ring, nonces=os.urandom)
    identity = Identity(
        wish["name"], address, versions=bytes((*PROTOCOL_VERSIONS, *wish["versions"]))
    )
    machine = Machine(identity, default(), envelope, random.Random(), loop.time())
    node = Node(machine, _tell, bind=address)
    await node.bind()
    seeds = tuple(Address(seed, wish["port"]) for seed in wish["seeds"])
    node.perform(machine.set_seeds(seeds, loop.time()))
    running = asyncio.create_task(node.run())
    _say(event="runs")
    await stopped.wait()
    await node.farewell(10)
    await asyncio.sleep(0.5)
    running.cancel()
    await asyncio.wait([running])
    await node.close()


def _tell(event):
    if isinstance(event, HealthChanged):
        _say(event="health", name=event.member.name, health=event.member.health.name.lower())
    else:
        names = [field.name for field in dataclasses.fields(event)]
        _say(event=type(event).__name__, **{name: repr(getattr(event, name)) for name in names})


def _say(**fields):
    sys.stdout.write(json.dumps(fields | {"at": time.monotonic()}) + "\n")
    sys.stdout.flush()
