"""Nodes on real sockets of the loopback interface: they meet, miss and part, whatever comes in."""

import asyncio
import errno
import gc
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gossip.effects import Datagram, Effects
from gossip.events import (
    Dropped,
    HealthChanged,
    ProcessGone,
    Reachable,
    ScoreChanged,
    StateReceived,
)
from gossip.peer import Address, Health
from gossip.streams import HELD_MAX, STREAMS_PER_HOST
from gossip.tuning import Tuning
from gossip.wire import stream
from gossip.wire.messages import Ack, Err, Ping, PushPull
from gossip.wire.packet import Envelope
from gossip.wire.seal import Keyring
from gossip.wire.stream import Assembler
from support.nodes import Member, Nodes, free_port

ROOT = Path(__file__).parents[2]
NOWHERE = "127.0.0.4"
"""No node lives here, but the host answers for its ports."""


def envelope(*keys, label=b""):
    ring = Keyring(tuple(bytes([key]) * 32 for key in keys)) if keys else None
    return Envelope(label=label, keyring=ring, nonces=os.urandom)


def changes(member, name):
    return [
        event.member.health for event in member.told(HealthChanged) if event.member.name == name
    ]


def listener(host="127.0.0.3"):
    """A socket on which the test plays a peer."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.bind((host, 0))
    opened.settimeout(0)
    return opened


async def heard(opened):
    async with asyncio.timeout(5):
        return await asyncio.get_running_loop().sock_recv(opened, 65536)


async def ask(address, data, *, alone=False):
    """What a node answers on a stream; the bytes until it closes."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        writer.write(data)
        if alone:
            writer.write_eof()
        async with asyncio.timeout(10):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


# Living together.


@pytest.mark.parametrize(
    "layers", [envelope(), envelope(1, label=b"blue")], ids=["plain", "sealed"]
)
async def test_nodes_that_know_one_seed_see_each_other(layers):
    async with Nodes(3, envelope=layers) as nodes:
        await nodes.acquainted()

        for member in nodes:
            assert not member.told(Dropped)


async def test_nodes_live_on_ipv6_as_well():
    first, second = (Member(name, Address("::1", free_port())) for name in ("m1", "m2"))
    await first.start()
    await second.start(first.address)
    await first.until(lambda: first.health("m2") == Health.ALIVE)
    await second.until(lambda: second.health("m1") == Health.ALIVE)
    await second.stop()
    await first.until(lambda: first.told(ProcessGone))

    assert first.told(ProcessGone)[0].name == "m2"
    await first.stop()


async def test_a_node_that_stops_is_missed_within_seconds():
    async with Nodes(3) as nodes:
        await nodes.acquainted()
        await nodes[2].stop()
        await nodes[0].until(lambda: nodes[0].health("m3") == Health.DEAD)
        await nodes[1].until(lambda: nodes[1].health("m3") == Health.DEAD)

        assert Health.LEFT not in changes(nodes[0], "m3")
        assert nodes[0].health("m2") == Health.ALIVE


async def test_a_node_that_says_goodbye_has_left_and_is_not_missed():
    async with Nodes(3) as nodes:
        await nodes.acquainted()
        await nodes[2].node.farewell(5)
        assert nodes[2].machine.left
        await nodes[2].stop()
        await nodes[0].until(lambda: nodes[0].health("m3") == Health.LEFT)
        await nodes[1].until(lambda: nodes[1].health("m3") == Health.LEFT)

        assert Health.DEAD not in changes(nodes[0], "m3") + changes(nodes[1], "m3")


async def test_a_farewell_takes_no_longer_than_there_is_patience():
    async with Nodes(2) as nodes:
        await nodes.acquainted()
        started = time.monotonic()
        await nodes[0].node.farewell(0.0)

        assert time.monotonic() - started < 1


async def test_a_node_alone_has_said_goodbye_at_once():
    async with Nodes(1) as nodes:
        started = time.monotonic()
        await nodes[0].node.farewell(10)

        assert time.monotonic() - started < 1


async def test_a_node_with_another_key_stays_outside():
    async with Nodes(2, envelope=envelope(1)) as nodes:
        await nodes.acquainted()
        stranger = Member("x", Address("127.0.0.3", nodes.addresses[0].port), envelope=envelope(2))
        await stranger.start(nodes.addresses[0])
        try:
            await nodes[0].until(lambda: nodes[0].told(Dropped))
            await stranger.until(lambda: stranger.told(Dropped) or True)

            assert {each.reason for each in nodes[0].told(Dropped)} <= {"no_key_fits", "not_sealed"}
            assert nodes[0].health("x") is None
            assert stranger.health("m1") is None
        finally:
            await stranger.stop()


async def test_state_of_many_pieces_travels_with_a_push_pull():
    state = {"claims": [bytes([number % 256]) * 1000 for number in range(1500)]}
    async with Nodes(2) as nodes:
        for member in nodes:
            member.machine.set_state(state)
        await nodes.acquainted()
        for member in nodes:
            await member.until(lambda m=member: m.told(StateReceived))

            assert member.told(StateReceived)[0].value == state


async def test_a_node_that_never_ran_has_nobody_to_say_goodbye_to():
    member = Member("m1", Address("127.0.0.1", free_port()))
    await member.node.bind()
    began = time.monotonic()
    await member.node.farewell(10)

    assert time.monotonic() - began < 1
    await member.stop()


# The order of things.


async def test_events_are_told_before_anything_is_sent():
    order = []
    with listener() as peer:
        member = Member("m1", Address("127.0.0.1", free_port()))
        await member.node.bind()
        to = Address(*peer.getsockname())
        event = Dropped(to, "unexpected")

        def look(_):
            try:
                order.append(peer.recv(100))
            except BlockingIOError:
                order.append("told first")

        member.node._hear = look
        member.node.perform(Effects(datagrams=(Datagram(to, b"hello"),), events=(event,)))

        assert order == ["told first"]
        assert await heard(peer) == b"hello"
        await member.stop()


async def test_seeds_named_before_the_start_are_dialled_after_it():
    async with Nodes(1) as nodes:
        late = Member("x", Address("127.0.0.2", nodes.addresses[0].port))
        await late.node.bind()
        late.node.perform(late.machine.set_seeds((nodes.addresses[0],), late.now()))
        running = asyncio.create_task(late.node.run())
        await late.until(lambda: late.health("m1") == Health.ALIVE and late.told(HealthChanged))
        running.cancel()
        await asyncio.wait([running])
        await late.stop()


# Refusals.


async def test_a_refused_datagram_costs_no_other_peer_his():
    with listener() as peer:
        member = Member("m1", Address("127.0.0.1", free_port()))
        await member.start()
        living, dead = Address(*peer.getsockname()), Address(NOWHERE, member.address.port)
        for number in range(20):
            member.node.perform(Effects(datagrams=(Datagram(dead, b"anybody?"),)))
            time.sleep(0.002)  # noqa: ASYNC251 - the refusal is there before the loop can look
            member.node.perform(Effects(datagrams=(Datagram(living, b"%d" % number),)))

            assert await heard(peer) == b"%d" % number
        # The kernel tells either of our two sockets; the one for heartbeats is looked at in turn.
        await asyncio.sleep(0.05)
        assert member.node.failures["ECONNREFUSED"] >= 1
        await member.stop()


async def test_a_refusal_does_not_keep_the_socket_ready_and_the_loop_awake():
    idle = Tuning(probe_interval=60, gossip_interval=60, watch_interval=60, rejoin_interval=60)
    member = Member("m1", Address("127.0.0.1", free_port()), tuning=idle)
    await member.start()
    ready = select.poll()
    ready.register(member.node._socket, select.POLLERR)
    for _ in range(3):
        dead = Datagram(Address(NOWHERE, member.address.port), b"anybody?")
        member.node.perform(Effects(datagrams=(dead,)))
        await asyncio.sleep(0.05)

        assert ready.poll(0) == []
    await member.stop()


async def test_a_process_that_is_gone_is_known_at_once():
    async with Nodes(3) as nodes:
        await nodes.acquainted()
        await nodes[2].stop()
        await nodes[0].until(lambda: nodes[0].told(ProcessGone))

        assert {each.name for each in nodes[0].told(ProcessGone)} == {"m3"}


async def test_a_datagram_that_the_kernel_does_not_take_is_counted_and_forgotten():
    member = Member("m1", Address("127.0.0.1", free_port()))
    await member.start()
    for where in (Address("2001:db8::1", 1), Address("10.0.0.1", 0)):
        member.node.perform(Effects(datagrams=(Datagram(where, b"x"),)))
    member.node.perform(Effects(datagrams=(Datagram(Address("127.0.0.2", 1), bytes(70000)),)))

    assert member.node.failures["EMSGSIZE"] == 2
    assert member.node.failures.total() == 6
    await member.stop()


# Whatever comes in.


async def test_rubbish_is_counted_and_harms_nothing():
    async with Nodes(2) as nodes:
        await nodes.acquainted()
        with listener() as stranger:
            for data in (b"\x63", b"\x00\xc1", b"", b"\x09\xff", b"\x07\xff"):
                stranger.sendto(data, tuple_of(nodes.addresses[0]))
        await nodes[0].until(lambda: len(nodes[0].told(Dropped)) >= 5)

        reasons = {each.reason for each in nodes[0].told(Dropped)}
        assert reasons == {"unknown_type", "not_msgpack", "empty", "not_a_map", "truncated"}
        assert nodes[0].told(Dropped)[0].source.host == "127.0.0.3"
        assert nodes[0].health("m2") == Health.ALIVE


def tuple_of(address):
    return address.host, address.port


async def test_a_stream_ping_for_our_name_is_answered_and_for_another_is_not():
    async with Nodes(1) as nodes:
        mine, others = [
            await ask(nodes.addresses[0], stream.frame(Ping(7, name), Envelope(), dialler=True))
            for name in ("m1", "m9")
        ]
        assert Assembler(Envelope(), dialler=True).feed(mine) == Ack(7)
        assert others == b""


async def test_a_stream_of_rubbish_is_told_so_unless_there_is_a_key():
    async with Nodes(1) as nodes:
        data = await ask(nodes.addresses[0], b"\x63")
        assert Assembler(Envelope(), dialler=True).feed(data) == Err("unknown_type")
        assert nodes[0].told(Dropped)[0].reason == "unknown_type"
    async with Nodes(1, envelope=envelope(1)) as nodes:
        assert await ask(nodes.addresses[0], b"\x63") == b""
        assert nodes[0].told(Dropped)[0].reason == "not_sealed"


async def test_a_stream_that_ends_too_early_is_closed_without_an_answer():
    async with Nodes(1) as nodes:
        data = stream.frame(PushPull(join=True, states=()), Envelope(), dialler=True)

        assert await ask(nodes.addresses[0], data[:-1], alone=True) == b""


async def test_a_peer_that_says_nothing_is_hung_up_on():
    async with Nodes(1, patience=0.3) as nodes:
        began = time.monotonic()

        assert await ask(nodes.addresses[0], b"\x06") == b""
        assert 0.25 < time.monotonic() - began < 5


async def test_a_peer_that_does_not_take_its_answer_is_hung_up_on():
    async with Nodes(1, patience=0.5) as nodes:
        nodes[0].machine.set_state(bytes(4_000_000))
        hello = PushPull(join=True, states=(), user_state=b"")
        with socket.create_connection(tuple_of(nodes.addresses[0])) as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            peer.sendall(stream.frame(hello, Envelope(), dialler=True))
            await nodes[0].until(lambda: nodes[0].node._streams._hosts.total() == 1)
            await nodes[0].until(lambda: nodes[0].node._streams._hosts.total() == 0)


async def test_one_host_can_hold_only_so_many_streams():
    async with Nodes(1) as nodes:
        where = tuple_of(nodes.addresses[0])
        held = [await asyncio.open_connection(*where) for _ in range(STREAMS_PER_HOST)]
        await nodes[0].until(lambda: nodes[0].node._streams._hosts.total() == STREAMS_PER_HOST)
        ping = stream.frame(Ping(1, "m1"), Envelope(), dialler=True)
        assert await ask(nodes.addresses[0], ping) == b""
        reader, writer = await asyncio.open_connection(*where, local_addr=("127.0.0.2", 0))
        writer.write(ping)
        assert await reader.read()
        writer.close()
        for _, writer in held:
            writer.close()
        await nodes[0].until(lambda: not nodes[0].node._streams._hosts)

        assert await ask(nodes.addresses[0], ping)


async def test_all_peers_together_can_hold_only_so_much_memory():
    async with Nodes(1) as nodes:
        nodes[0].node._streams._held = HELD_MAX - 1000
        data = await ask(nodes.addresses[0], b"\x06" + bytes(2000))

        assert Assembler(Envelope(), dialler=True).feed(data) == Err("too_long")
        assert nodes[0].node._streams._held == HELD_MAX - 1000


# Time.


async def test_a_node_that_could_not_run_doubts_itself_and_nobody_else():
    async with Nodes(3) as nodes:
        await nodes.acquainted()
        for member in nodes:
            member.events.clear()
        time.sleep(0.6)  # noqa: ASYNC251 - nobody on this loop can run, and all know
        await nodes[0].until(lambda: nodes[0].told(ScoreChanged))
        await asyncio.sleep(1)

        for member in nodes:
            assert not [e for e in member.told(HealthChanged) if e.member.health != Health.ALIVE]
            assert not member.told(Reachable)


def watched(machine, look):
    """`look(machine, now)` is called whenever the machine is woken."""

    class Watched(type(machine)):
        def advance(self, now):
            look(self, now)
            return super().advance(now)

    machine.__class__ = Watched


async def test_the_machine_is_not_woken_before_its_time():
    async with Nodes(2) as nodes:
        await nodes.acquainted()
        early = []
        watched(nodes[0].machine, lambda m, now: m.deadline > now and early.append(m.deadline))
        await asyncio.sleep(1)

        assert not early


async def test_what_waits_in_the_socket_is_read_before_anybody_is_missed():
    async with Nodes(1) as nodes:
        await asyncio.sleep(0.1)
        read = []
        watched(nodes[0].machine, lambda _, __: read.append(len(nodes[0].told(Dropped))))
        with listener() as stranger:
            for _ in range(50):
                stranger.sendto(b"\x63", tuple_of(nodes.addresses[0]))
        time.sleep(0.5)  # noqa: ASYNC251 - the loop is busy while timers fall due
        await nodes[0].until(lambda: read)

        assert read[0] >= 45  # a few are on their way inside the library


# Opening and closing.


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
async def test_an_address_in_use_is_an_oserror_and_leaves_nothing_open(kind):
    address = Address("127.0.0.1", free_port())
    member = Member("m1", address)
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(tuple_of(address))
        if kind == socket.SOCK_STREAM:
            taken.listen()
        with pytest.raises(OSError, match=r"Errno|address") as caught:
            await member.node.bind()
        assert caught.value.errno == errno.EADDRINUSE
    await member.start()  # nothing of the first attempt stands in the way
    await member.stop()


async def test_an_address_that_this_host_does_not_have_is_an_oserror():
    with pytest.raises(OSError, match=r"Errno|address") as caught:
        await Member("m1", Address("192.0.2.1", free_port())).node.bind()

    assert caught.value.errno == errno.EADDRNOTAVAIL


async def test_much_may_wait_in_the_socket():
    limit = await asyncio.to_thread(Path("/proc/sys/net/core/rmem_max").read_text)
    member = Member("m1", Address("127.0.0.1", free_port()))
    await member.node.bind()

    size = member.node._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    assert size >= 2 * min(2 << 20, int(limit))
    await member.stop()


async def test_closing_twice_or_before_opening_is_no_error():
    member = Member("m1", Address("127.0.0.1", free_port()))
    await member.node.close()
    await member.start()
    await member.stop()
    await member.node.close()


async def test_no_task_and_no_socket_outlives_a_node():
    before = asyncio.all_tasks()
    async with Nodes(2) as nodes:
        await nodes.acquainted()
        held = await asyncio.open_connection(*tuple_of(nodes.addresses[0]))
        await nodes[0].until(lambda: nodes[0].node._streams._hosts["127.0.0.1"])
    held[1].close()
    await asyncio.sleep(0.05)
    gc.collect()

    assert asyncio.all_tasks() == before
    for address in nodes.addresses:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
            again.bind(tuple_of(address))


async def test_a_node_dials_from_its_own_address():
    port = free_port()
    callers = asyncio.Queue()

    async def answer(_, writer):
        callers.put_nowait(writer.get_extra_info("peername")[0])
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.3", port):
        member = Member("m1", Address("127.0.0.2", port))
        await member.start(Address("127.0.0.3", port))

        assert await asyncio.wait_for(callers.get(), 10) == "127.0.0.2"
        await member.stop()


async def test_a_node_can_be_stopped_while_it_dials():
    silent = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    silent.bind(("127.0.0.2", free_port()))
    silent.listen()
    with silent:
        seed = Address(*silent.getsockname())
        member = Member("m1", Address("127.0.0.1", seed.port))
        await member.start(seed)
        await asyncio.sleep(0.2)
        began = time.monotonic()
        await member.stop()

        assert time.monotonic() - began < 1


PROGRAM = """
import asyncio, sys
sys.path[:0] = ["tests"]
from support.nodes import Nodes
async def main():
    async with Nodes(2) as nodes:
        await nodes.acquainted()
        await nodes[1].node.farewell(5)
asyncio.run(main())
print("done")
"""


def test_development_mode_has_nothing_to_say():
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"PYTHONASYNCIODEBUG": "1"},
    )

    noise = [line for line in done.stderr.splitlines() if "took" not in line]
    assert done.stdout.endswith("done\n")  # after what is logged for developers
    assert noise == []
