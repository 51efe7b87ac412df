"""Streams of peers that mean no good: every one is ended, counted, and costs no other peer his."""

import asyncio
import contextlib
import os
import time

import pytest

from gossip.events import Dropped, HealthChanged, ProcessGone
from gossip.streams import STREAMS_PER_HOST
from gossip.tuning import Tuning
from gossip.wire import codec, stream
from gossip.wire.messages import Ack, Err, PeerState, Ping
from gossip.wire.packet import Envelope
from gossip.wire.seal import Keyring
from gossip.wire.stream import STREAM_MAX, Assembler
from support.nodes import Nodes

PATIENCE = 0.4
"""Seconds that a node has for a stream here."""
AGES = 10.0
"""Seconds that nothing here may take, on however busy a machine."""


async def sent(address, pieces, *, pause=0.0):
    """Send pieces until the node hangs up; what it said, and after how long."""
    began = time.monotonic()
    reader, writer = await asyncio.open_connection(address.host, address.port)
    answer = asyncio.create_task(reader.read())
    with contextlib.suppress(ConnectionError):
        for piece in pieces:
            writer.write(piece)
            await asyncio.wait_for(writer.drain(), AGES)
            await asyncio.wait([answer], timeout=pause)
            if answer.done():
                break
    try:
        said = await asyncio.wait_for(answer, AGES)
    except ConnectionError:
        said = b""
    writer.close()
    return said, time.monotonic() - began


def reasons(member):
    return [each.reason for each in member.told(Dropped)]


async def still_answers(member):
    ping = stream.frame(Ping(5, member.name), member.machine.envelope, dialler=True)
    said, _ = await sent(member.address, [ping])
    return Assembler(member.machine.envelope, dialler=True).feed(said) == Ack(5)


HEAD = codec.encode_header(codec.PUSH_PULL, {"Nodes": 9, "UserStateLen": 0, "Join": True})
STATE = PeerState("x" * 200, bytes([127, 0, 0, 9]), 1, b"", 1, 0, bytes(6))
KEY = bytes(32)


def sealed():
    return Envelope(label=b"blue", keyring=Keyring((KEY,)), nonces=os.urandom)


@pytest.mark.parametrize(
    ("envelope", "data"),
    [
        (Envelope(), b""),
        (Envelope(), b"\x06"),
        (Envelope(), HEAD + codec.encode_state(STATE)),
        (Envelope(), codec.encode_header(codec.USER, {"UserMsgLen": 1000}) + bytes(500)),
        (sealed(), b"\xf4\x04blu"),
        (sealed(), b"\xf4\x04blue\x0a\x00\x00\x10\x00" + bytes(500)),
    ],
    ids=["nothing", "a-type", "records", "a-message", "a-label", "sealed"],
)
async def test_a_peer_that_trickles_is_hung_up_on_in_time(envelope, data):
    async with Nodes(1, envelope=envelope, patience=PATIENCE) as nodes:
        one_by_one = [data[position : position + 1] for position in range(len(data))]
        said, took = await sent(nodes.addresses[0], one_by_one, pause=0.01)
        await nodes[0].until(lambda: reasons(nodes[0]))

        assert (said, reasons(nodes[0])) == (b"", ["too_slow"])
        assert PATIENCE * 0.9 < took < AGES
        assert await still_answers(nodes[0])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (codec.encode_header(codec.USER, {"UserMsgLen": STREAM_MAX + 1}), "bad_field"),
        (codec.encode_header(codec.PUSH_PULL, {"Nodes": 1 << 31}), "bad_field"),
        (b"\x0a\x7f\xff\xff\xff", "sealed"),
        (b"GET / HTTP/1.1\r\n", "unknown_type"),
        (b"\x16\x03\x01\x02\x00", "unknown_type"),
        (b"\xf4\x03red" + HEAD, "wrong_label"),
    ],
    ids=["a-long-message", "many-records", "sealed", "http", "tls", "another-label"],
)
async def test_a_peer_that_speaks_wrongly_is_told_and_counted(data, reason):
    async with Nodes(1) as nodes:
        said, _ = await sent(nodes.addresses[0], [data])

        assert Assembler(Envelope(), dialler=True).feed(said) == Err(reason)
        assert reasons(nodes[0]) == [reason]
        assert await still_answers(nodes[0])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (HEAD, "wrong_label"),
        (b"\xf4\x04blue" + HEAD, "not_sealed"),
        (b"\xf4\x04blue\x0a\x7f\xff\xff\xff", "too_long"),
        (b"\xf4\x04blue\x0a\x00\x00\x00\x40\x01" + bytes(63), "no_key_fits"),
    ],
    ids=["no-label", "plain", "a-long-frame", "no-key"],
)
async def test_a_peer_without_the_key_is_counted_and_told_nothing(data, reason):
    async with Nodes(1, envelope=sealed()) as nodes:
        said, _ = await sent(nodes.addresses[0], [data])

        assert (said, reasons(nodes[0])) == (b"", [reason])
        assert await still_answers(nodes[0])


async def test_a_peer_that_never_stops_is_stopped_at_the_limit():
    megabyte = bytes(1 << 20)
    endless = [b"\x06\x81\xa5Nodes\xdb\x7f\xff\xff\xff", *[megabyte] * 64]
    async with Nodes(1) as nodes:
        _, took = await sent(nodes.addresses[0], endless)
        await nodes[0].until(lambda: reasons(nodes[0]))

        assert reasons(nodes[0]) == ["too_long"]
        assert took < AGES
        assert nodes[0].node._streams._held == 0
        assert await still_answers(nodes[0])


async def test_streams_beyond_those_a_host_may_hold_are_counted():
    async with Nodes(1) as nodes:
        host, port = nodes.addresses[0].host, nodes.addresses[0].port
        held = [await asyncio.open_connection(host, port) for _ in range(STREAMS_PER_HOST)]
        await nodes[0].until(lambda: nodes[0].node._streams._hosts.total() == STREAMS_PER_HOST)
        said, _ = await sent(nodes.addresses[0], [b"\x06"])
        await nodes[0].until(lambda: reasons(nodes[0]))

        assert (said, reasons(nodes[0])) == (b"", ["too_many_streams"])
        for _, writer in held:
            writer.close()
        await nodes[0].until(lambda: not nodes[0].node._streams._hosts)

        assert await still_answers(nodes[0])


async def test_members_stay_members_while_strangers_crowd_in():
    async with Nodes(2, patience=PATIENCE) as nodes:
        await nodes.acquainted()
        for member in nodes:
            member.events.clear()
        junk = [b"\x06", b"\x63", HEAD, b"\xf4\x00", b"\x0a\x00\x00\x00\x05"]
        await asyncio.gather(*(sent(nodes.addresses[0], [data]) for data in junk * 6))

        for member in nodes:
            assert member.told(HealthChanged) == []
        assert len(reasons(nodes[0])) == len(junk) * 6


async def test_a_stream_that_is_refused_tells_that_the_process_is_gone():
    quiet = Tuning(probe_interval=1e6, gossip_interval=1e6, push_pull_interval=1e6, watchers=0)
    async with Nodes(1, tuning=quiet) as nodes:
        member = nodes[0]
        ours = b"\xc1\x01\x04\x80"
        nobody = PeerState("gone", bytes([127, 0, 0, 9]), 1, ours, 1, 0, bytes((1, 5, 2, 0, 0, 0)))
        member.machine.assume([nobody], member.now())
        member.node.perform(member.machine.send("gone", 40, "x" * 5000, member.now()))
        told = await member.until(lambda: member.told(ProcessGone))

    assert told == [ProcessGone("gone")]
