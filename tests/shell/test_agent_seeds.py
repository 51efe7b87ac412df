"""Seeds in front of a name server that comes late, goes away, and changes its mind."""

import asyncio
import random
import threading

import pytest

from agent.seeds import PATIENCE, PER_NAME_LIMIT, PERIOD, Seeds, lookup_name
from config.addresses import read_seed
from gossip.peer import Address

OWN = Address("192.0.2.11", 7955)


class NameServer:
    """Answers from a table; a name that is not there fails, `None` never answers."""

    def __init__(self, **zone):
        self.zone = zone
        self.asked = []

    async def __call__(self, name):
        self.asked.append(name)
        known = self.zone.get(name.partition(".")[0], OSError("unknown"))
        if known is None:
            await asyncio.sleep(3600)
        if isinstance(known, Exception):
            raise known
        return known


def seeds(*texts, server=None):
    return Seeds(
        [read_seed(text) for text in texts],
        port=7955,
        own=[OWN],
        rng=random.Random(1),
        lookup=server or NameServer(),
    )


def spelled(addresses):
    return [str(address) for address in addresses]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("192.0.2.12", "192.0.2.12:7955"),
        ("192.0.2.12:7000", "192.0.2.12:7000"),
        ("2001:db8::12", "[2001:db8::12]:7955"),
        ("[2001:db8::12]", "[2001:db8::12]:7955"),
        ("[2001:db8::12]:7000", "[2001:db8::12]:7000"),
        ("peer", "192.0.2.20:7955"),
        ("peer.example.test:7000", "192.0.2.20:7000"),
    ],
)
async def test_every_spelling_becomes_an_address(text, expected):
    resolved = await seeds(text, server=NameServer(peer=["192.0.2.20"])).resolve()

    assert spelled(resolved.addresses) == [expected]


async def test_a_headless_service_gives_every_node_but_ourselves():
    service = NameServer(peers=["192.0.2.13", "192.0.2.11", "192.0.2.12", "192.0.2.12"])

    resolved = await seeds("peers", "192.0.2.13", server=service).resolve()

    assert spelled(resolved.addresses) == ["192.0.2.12:7955", "192.0.2.13:7955"]


async def test_a_mapped_address_is_the_ipv4_member():
    resolved = await seeds("peer", server=NameServer(peer=["::ffff:192.0.2.12"])).resolve()

    assert spelled(resolved.addresses) == ["192.0.2.12:7955"]


async def test_a_service_with_thousands_of_nodes_gives_a_limited_number():
    many = [f"10.0.{n // 250}.{n % 250}" for n in range(5000)]

    resolved = await seeds("peers", server=NameServer(peers=many)).resolve()

    assert len(resolved.addresses) == PER_NAME_LIMIT


async def test_what_a_name_last_meant_stays_while_nobody_can_be_asked():
    server = NameServer(peer=["192.0.2.12"])
    looking = seeds("peer", server=server)
    await looking.resolve()
    del server.zone["peer"]

    resolved = await looking.resolve()

    assert spelled(resolved.addresses) == ["192.0.2.12:7955"]
    assert resolved.unknown == ("peer",)


@pytest.mark.looptime
async def test_a_mute_name_server_delays_the_others_no_longer_than_its_patience():
    loop = asyncio.get_running_loop()
    looking = seeds("mute", "peer", "192.0.2.13", server=NameServer(mute=None, peer=["192.0.2.12"]))

    begun = loop.time()
    resolved = await looking.resolve()

    assert loop.time() - begun == pytest.approx(PATIENCE)
    assert spelled(resolved.addresses) == ["192.0.2.12:7955", "192.0.2.13:7955"]
    assert resolved.unknown == ("mute",)


async def running(looking, seconds, during=lambda: None):
    """What was told while `run` ran, and when."""
    loop = asyncio.get_running_loop()
    told = []
    begun = loop.time()
    part = asyncio.create_task(
        looking.run(lambda found: told.append((loop.time() - begun, spelled(found))))
    )
    await asyncio.sleep(seconds / 2)
    during()
    await asyncio.sleep(seconds / 2)
    part.cancel()
    await asyncio.wait([part])
    return told


@pytest.mark.looptime
async def test_a_name_server_that_comes_late_is_found_soon():
    server = NameServer()

    told = await running(
        seeds("peer", server=server), 120, lambda: server.zone.update(peer=["192.0.2.12"])
    )

    assert told[0] == (0, [])
    assert told[1][1] == ["192.0.2.12:7955"]
    assert 60 <= told[1][0] <= 60 + 30
    assert len(told) == 2


@pytest.mark.looptime
async def test_a_name_that_changes_is_told_and_one_that_does_not_is_not():
    server = NameServer(peer=["192.0.2.12"])

    told = await running(
        seeds("peer", server=server), 10 * PERIOD, lambda: server.zone.update(peer=["192.0.2.13"])
    )

    assert [addresses for _, addresses in told] == [["192.0.2.12:7955"], ["192.0.2.13:7955"]]
    assert 8 <= len(server.asked) <= 14


@pytest.mark.looptime
async def test_other_seeds_are_looked_up_at_once():
    looking = seeds("192.0.2.12")

    told = await running(looking, 4, lambda: looking.change([read_seed("192.0.2.13")], 7000))

    assert told == [(0, ["192.0.2.12:7955"]), (2, ["192.0.2.13:7000"])]


async def test_the_hosts_file_is_asked():
    assert "127.0.0.1" in await lookup_name("localhost")


async def test_a_lookup_keeps_no_thread_that_must_be_waited_for():
    assert await lookup_name("no..name") == []

    assert all(
        thread.daemon for thread in threading.enumerate() if thread.name.startswith("lookup")
    )
