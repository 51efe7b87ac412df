"""Gossip as a library: members that join, hear, tell and leave, and the example of the manual."""

import asyncio
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gossip.events import HealthChanged, StateReceived, UserMessage
from gossip.member import EVENTS_MAX, PORT, Events, Options, joined, meta_of
from gossip.peer import Health
from support.nodes import HURRIED, free_port

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "chat.py"
PATIENCE = 20.0
KEYS = (bytes(32),)


async def first(member, kind, wanted=lambda _: True):
    """The next event of a kind that is wanted."""
    async with asyncio.timeout(PATIENCE):
        async for event in member.events():
            if isinstance(event, kind) and wanted(event):
                return event
    raise AssertionError("the events ended")


@pytest.mark.slow
async def test_members_join_tell_each_other_and_say_goodbye():
    port = free_port()
    options = Options(keys=KEYS, label="test", meta={"role": "edge"}, tuning=HURRIED)
    async with joined("a", "127.0.0.1", port=port, options=options) as a:
        seeds = [f"127.0.0.1:{port}"]
        async with joined("b", "127.0.0.2", port=port, seeds=seeds, options=options) as b:
            b.set_state([1, 2])
            came = await first(a, HealthChanged)
            assert (came.member.name, meta_of(came.member)) == ("b", {"role": "edge"})
            await first(b, HealthChanged)
            b.broadcast({"hello": "all"})
            heard = await first(a, UserMessage)
            assert (heard.sender, heard.value) == ("b", {"hello": "all"})
            a.send("b", "x" * 5000, kind=200)
            heard = await first(b, UserMessage)
            assert (heard.kind, len(heard.value)) == (200, 5000)
            assert (await first(a, StateReceived)).value == [1, 2]
            assert {each.name for each in a.members()} == {"a", "b"}
        went = await first(a, HealthChanged, lambda event: not event.member.health.present)
        assert went.member.health is Health.LEFT
    assert [event async for event in b.events() if isinstance(event, StateReceived)] == []


async def test_what_makes_no_sense_is_a_valueerror_and_an_address_in_use_an_oserror():
    port = free_port()
    for wrong in ({"seeds": ["nowhere"]}, {"options": Options(keys=(b"short",))}):
        with pytest.raises(ValueError, match=r"nowhere|16, 24 or 32"):
            async with joined("a", "127.0.0.1", port=port, **wrong):
                pass
    async with joined("a", "127.0.0.1", port=port, seeds=["[::1]:1", "127.0.0.3"]) as a:
        with pytest.raises(ValueError, match="32 to 255"):
            a.broadcast(1, kind=3)
        with pytest.raises(OSError, match="in use"):
            async with joined("b", "127.0.0.1", port=port):
                pass


async def test_events_that_nobody_reads_cost_no_memory_without_end():
    told = Events()
    for number in range(EVENTS_MAX + 5):
        told.put(number)
    told.end()

    assert told.forgotten == 5
    assert [event async for event in told] == list(range(5, EVENTS_MAX + 5))


def test_the_library_needs_nothing_of_the_rest_of_this_program():
    others = ["agent", "config", "egress"]
    code = f"import sys, gossip.member; print([n for n in {others} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_the_chat_of_the_manual_runs():
    def start(*words):
        command = [sys.executable, "-u", str(EXAMPLE), *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    net = f"127.{random.randrange(1, 255)}.{random.randrange(255)}"
    with start("ann", f"{net}.1") as ann:
        until_it_listens(f"{net}.1")
        with start("bob", f"{net}.2", f"{net}.1") as bob:
            talk(ann, bob)


def until_it_listens(host):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with socket.socket() as knock:
            if knock.connect_ex((host, PORT)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("it does not listen")


def talk(ann, bob):
    assert ann.stdout.readline() == "* bob is alive\n"
    assert bob.stdout.readline() == "* ann is alive\n"
    bob.stdin.write("good morning\n")
    bob.stdin.flush()
    assert ann.stdout.readline() == "bob: good morning\n"
    bob.communicate("\n", timeout=PATIENCE)
    assert ann.stdout.readline() == "* bob is left\n"
    _, complaints = ann.communicate("\n", timeout=PATIENCE)

    assert complaints == ""
    assert (ann.returncode, bob.returncode) == (0, 0)
