"""Real nodes on loopback addresses: `async with Nodes(3) as nodes`, then `nodes[0]` and so on."""

import asyncio
import contextlib
import random
import socket

from gossip.machine import Machine
from gossip.node import Node
from gossip.peer import Address, Identity
from gossip.tuning import Tuning
from gossip.wire.packet import Envelope

HURRIED = Tuning(
    probe_interval=0.2,
    probe_timeout=0.1,
    gossip_interval=0.05,
    watch_interval=0.05,
    rejoin_interval=0.3,
    suspicion_mult=2,
    push_pull_interval=2.0,
)
PATIENCE = 20.0
"""Seconds for what takes tenths of one on an idle machine."""


def free_port():
    """A port that neither UDP nor TCP uses on any of the first loopback addresses."""
    while True:
        port = random.randrange(20000, 32000)
        with contextlib.ExitStack() as opened:
            try:
                for number in range(1, 5):
                    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                        probe = opened.enter_context(socket.socket(socket.AF_INET, kind))
                        probe.bind((f"127.0.0.{number}", port))
            except OSError:
                continue
        return port


class Member:
    """One node, everything it told, and the task it runs in."""

    def __init__(self, name, address, *, tuning=HURRIED, envelope=None, **kwargs):
        self.name = name
        self.address = address
        self.events = []
        self._changed = asyncio.Event()
        self._task = None
        now = asyncio.get_running_loop().time()
        self.machine = Machine(
            Identity(name, address), tuning, envelope or Envelope(), random.Random(name), now
        )
        self.node = Node(self.machine, self._hear, bind=address, **kwargs)

    def _hear(self, event):
        self.events.append(event)
        self._changed.set()

    def now(self):
        return asyncio.get_running_loop().time()

    async def start(self, *seeds):
        await self.node.bind()
        self.node.perform(self.machine.set_seeds(tuple(seeds), self.now()))
        self._task = asyncio.create_task(self.node.run())
        await asyncio.sleep(0)

    async def stop(self):
        """Gone without a word."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        await self.node.close()

    def told(self, kind):
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, condition):
        """Wait until the condition holds; what it returned."""
        async with asyncio.timeout(PATIENCE):
            while not (found := condition()):
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), 0.02)
        return found

    def health(self, name):
        member = self.machine.member(name)
        return member and member.health


class Nodes:
    """Members m1, m2… at 127.0.0.1, 127.0.0.2…, each seeded with the first."""

    def __init__(self, count, **kwargs):
        port = free_port()
        self.addresses = [Address(f"127.0.0.{number}", port) for number in range(1, count + 1)]
        self._kwargs = kwargs
        self.members = []

    async def __aenter__(self):
        for number, address in enumerate(self.addresses, 1):
            member = Member(f"m{number}", address, **self._kwargs)
            self.members.append(member)
            await member.start(*self.addresses[:1])
        return self

    async def __aexit__(self, *_):
        for member in self.members:
            await member.stop()

    def __getitem__(self, position):
        return self.members[position]

    async def acquainted(self):
        """Everybody sees everybody alive."""
        for member in self.members:
            for other in self.members:
                await member.until(lambda m=member, o=other: m.health(o.name) == 0)
