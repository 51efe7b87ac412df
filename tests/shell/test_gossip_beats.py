"""The kernel sorts heartbeats out: real sockets on loopback."""

import asyncio
import socket
import time

import pytest

from gossip import beats
from gossip.beat import Beat
from gossip.wire import checksum, codec, compound
from gossip.wire.messages import Ack, User

BEAT = codec.encode(User(Beat("n1", 1, hears=True).packed()))
OTHERS = {
    "ack": codec.encode(Ack(7)),
    "user": codec.encode(User(b"\xc1\x01\x02abc")),
    "compound": compound.bundle([codec.encode(Ack(7)), BEAT]),
    "short": b"\x08",
    "sealed": bytes(60),
    "checksum alone": b"\x0c\0\0\0\0",
    "empty": b"",
}


class Pair:
    """Both sockets, and one that sends to them."""

    def __init__(self, host="127.0.0.1"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.first = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        beats.share(self.first)
        self.first.bind((host, 0))
        self.woken = 0
        self.beats = beats.Beats(self.first, self.wake)
        self.mouth = socket.socket(family, socket.SOCK_DGRAM)

    def wake(self):
        self.woken += 1

    def say(self, data):
        self.mouth.sendto(data, self.first.getsockname())

    def rest(self):
        found = []
        while True:
            try:
                found.append(self.first.recv(2048))
            except BlockingIOError:
                return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.beats.close()
        for each in (self.first, self.mouth):
            each.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("data", [BEAT, checksum.close(BEAT)], ids=["bare", "checksum"])
async def test_a_plain_heartbeat_wakes_nobody_and_is_there_when_somebody_looks(host, data):
    with Pair(host) as pair:
        pair.say(data)
        await asyncio.sleep(0.05)

        assert pair.woken == 0
        assert pair.rest() == []
        taken, failure = pair.beats.take(asyncio.get_running_loop().time())
    assert failure is None
    assert [(each[0], each[1][:2]) for each in taken] == [(data, (host, taken[0][1][1]))]


@pytest.mark.parametrize("kind", OTHERS)
async def test_all_the_rest_goes_to_the_first_socket(kind):
    with Pair() as pair:
        pair.say(OTHERS[kind])

        assert pair.beats.take(0.0) == ([], None)
        assert pair.rest() == [OTHERS[kind]]


async def test_the_kernel_tells_when_each_came():
    with Pair() as pair:
        pair.beats.take(asyncio.get_running_loop().time())
        pair.say(BEAT)
        began = time.monotonic()
        await asyncio.sleep(0.08)
        pair.say(BEAT)

        ((*_, first), (*_, second)), _ = pair.beats.take(asyncio.get_running_loop().time())
        waited = time.monotonic() - began
    assert 0.07 <= first <= waited + 0.01
    assert second <= waited - 0.07


async def test_no_heartbeat_is_older_than_the_last_look_whatever_the_wall_clock_says():
    with Pair() as pair:
        pair.say(BEAT)
        await asyncio.sleep(0.05)
        now = asyncio.get_running_loop().time()
        pair.beats.take(now)
        pair.say(BEAT)

        ((*_, age),), _ = pair.beats.take(now)
    assert age == 0.0


async def test_while_somebody_is_missed_each_heartbeat_wakes():
    with Pair() as pair:
        pair.beats.hearken(wanted=True)
        pair.say(BEAT)
        await asyncio.sleep(0.01)
        assert pair.woken >= 1

        pair.beats.take(0.0)
        pair.beats.hearken(wanted=False)
        woken = pair.woken
        pair.say(BEAT)
        await asyncio.sleep(0.01)
    assert pair.woken == woken


async def test_a_flood_is_taken_in_turns():
    with Pair() as pair:
        for _ in range(3 * beats.TURN):
            pair.say(BEAT)

        sizes = []
        for _ in range(5):
            sizes.append(len(pair.beats.take(0.0)[0]))
            await asyncio.sleep(0)
        assert sizes == [beats.TURN] * 3 + [0, 0]
        assert pair.woken == 3


async def test_a_program_that_does_not_share_the_port_keeps_it():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        first = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        beats.share(first)
        with first, pytest.raises(OSError, match="in use"):
            first.bind(other.getsockname())
