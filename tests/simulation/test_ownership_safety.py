"""Never two owners, and always one once things are still, whatever the seed throws at them.

The world is `support.ownership`: real elections, claims, plans and decisions; what is pretended
is membership, the kernel and the LAN. On failure the seed is in the message: run
`World(seed, …)` again and read `world.events`.

What is allowed, and nothing else (DESIGN §5 and §10 say why):
- after a cut of the *segment* heals, an address may be on both sides for as long as a push/pull
  takes, if behind the cut a daemon stopped or died less than a lease ago, or if two nodes
  without a gateway are the whole cluster; if it is bound within a window of the heal, the asking
  that follows every bind ends it;
- an address that another program removes *while the daemon is stopped* may be put back by the
  first renewal after it wakes, next to a new owner, until that one's claim is heard.
"""

import os
from dataclasses import replace
from ipaddress import ip_address
from random import Random

import pytest

from egress.model import Failback
from support import mishaps
from support.ownership import World

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
ROUNDS = 500 if SOAK else 12
GROUPS = {
    "all": mishaps.ALL,
    "planned": mishaps.PLANNED,
    "deaths": mishaps.DEATHS,
    "stalls": mishaps.STALLS,
    "gossip": mishaps.CUTS_OF_GOSSIP,
    "segment": mishaps.CUTS_OF_SEGMENT,
}


def world_of(seed, rng, nodes=None):
    """Two to seven nodes, with and without a gateway, loss and second halves."""
    world = World(seed, nodes or rng.randint(2, 7), rng.randint(2, 6), gateway=rng.random() < 0.8)
    world.loss = rng.choice((0.0, 0.0, 0.1, 0.3))
    if rng.random() < 0.3:
        world.egresses = tuple(
            replace(each, ips=(*each.ips, ip_address(f"2001:db8:77::{200 + index:x}")))
            for index, each in enumerate(world.egresses)
        )
    return world


def troubled(seed, kinds, *, seconds=40, peace=40):
    """A world after `seconds` of trouble and then of peace."""
    rng = Random(seed)
    world = world_of(seed, rng)
    world.start()
    world.run(rng.choice((3.0, 15.0)))
    mishaps.trouble(world, rng, kinds, seconds)
    mishaps.peace(world, peace)
    return world


def settled(seed, nodes, egresses=6):
    """A world in which all have known each other for long enough, and nothing fails back."""
    world = World(seed, nodes, egresses)
    world.egresses = tuple(replace(each, failback=Failback.NEVER) for each in world.egresses)
    world.start()
    world.run(12)
    assert all(len(world.carriers(ip)) == 1 for ip in world.ips)
    return world


def owner_of(world, ip):
    (host,) = world.carriers(ip)
    return host


def check(world, seed):
    said = f"seed {seed}, {len(world.hosts)} nodes"
    assert world.doubles == [], said
    assert world.intruders == [], said
    assert world.overlaps == [], said
    assert world.lingering == [], said
    for ip in world.ips:
        carriers = world.carriers(ip)
        assert len(carriers) == 1, f"{said}: {ip} is on {carriers}"
        claims = {host.owner.claims.holder(ip) for host in world.hosts}
        assert claims == {carriers[0].name}, f"{said}: {ip} is claimed by {claims}"


@pytest.mark.parametrize("seed", range(2))
def test_never_two_owners_and_one_in_the_end(seed):
    check(troubled(seed, mishaps.ALL, seconds=25), seed)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_never_two_owners_through_many_histories(group):
    first = 1000 * (1 + list(GROUPS).index(group))
    for seed in range(first, first + ROUNDS):
        check(troubled(seed, GROUPS[group]), seed)


@pytest.mark.slow
def test_behind_a_cut_of_the_segment_only_the_documented_exceptions_occur():
    kinds = (mishaps.segment_cut, mishaps.pause, mishaps.crash, mishaps.restart)
    for seed in range(9000, 9000 + ROUNDS):
        check(troubled(seed, kinds), seed)


@pytest.mark.slow
def test_a_seed_is_a_history():
    first, second = (troubled(7, mishaps.ALL, seconds=10, peace=5) for _ in range(2))

    assert first.events == second.events


@pytest.mark.slow
def test_in_peace_nothing_is_bound_or_released():
    world = World(1, 4, 6)
    world.start()
    world.run(40)  # the last failback comes after 30 s of health
    before = len(world.events)
    world.run(30)

    assert world.events[before:] == []


@pytest.mark.parametrize("seed", range(4))
def test_the_death_of_a_host_costs_less_than_a_second(seed):
    world = settled(seed, nodes=3 + seed % 4)
    victim = owner_of(world, world.ips[0])
    lost = [ip for ip in world.ips if victim.has(ip)]
    before = len(world.events)
    world.kill_host(victim)
    world.run_until(lambda: all(world.carriers(ip) for ip in lost), within=1.0)
    world.run(8)

    moved = {ip for _, _, what, ip in world.events[before:] if what in {"bound", "unbound"}}
    assert moved == {str(ip) for ip in lost}
    assert world.doubles == []


@pytest.mark.parametrize("seed", range(2))
def test_the_death_of_a_process_costs_the_rest_of_its_lease(seed):
    world = settled(seed, nodes=3)
    victim = owner_of(world, world.ips[0])
    lost = [ip for ip in world.ips if victim.has(ip)]
    world.end_daemon(victim)
    others = [host for host in world.hosts if host is not victim]
    world.run_until(
        lambda: all(any(host.has(ip) for host in others) for ip in lost), within=4.03 + 0.5
    )

    assert world.doubles == []


@pytest.mark.parametrize("seed", range(3))
def test_a_drain_hands_over_within_a_quarter_of_a_second_and_without_asking(seed):
    world = settled(seed, nodes=3)
    drained = owner_of(world, world.ips[0])
    lost = [ip for ip in world.ips if drained.has(ip)]
    began = world.now
    world.drain(drained, wish=True)
    world.run_until(
        lambda: all(world.carriers(ip) not in ([], [drained]) for ip in lost), within=0.25
    )
    gone = {ip: at for at, _, what, ip in world.events if what == "unbound" and at > began}
    came = {ip: at for at, _, what, ip in world.events if what == "bound" and at > began}

    assert world.doubles == []
    assert all(0 <= came[str(ip)] - gone[str(ip)] < 0.1 for ip in lost)


@pytest.mark.parametrize(("seed", "stall"), [(0, 0.4), (1, 1.0), (2, 1.7)])
def test_a_short_stall_moves_nothing(seed, stall):
    world = settled(seed, nodes=3)
    before = len(world.events)
    world.pause(owner_of(world, world.ips[0]), stall)
    world.run(8)

    assert [each for each in world.events[before:] if each[2] in {"bound", "unbound"}] == []


@pytest.mark.parametrize("seed", range(2))
def test_a_restart_within_the_lease_moves_nothing(seed):
    world = settled(seed, nodes=3)
    host = owner_of(world, world.ips[0])
    before = len(world.events)
    world.end_daemon(host)
    world.run(1.0)
    world.start_daemon(host)
    world.run(8)

    assert [each for each in world.events[before:] if each[2] in {"bound", "unbound"}] == []


@pytest.mark.parametrize("seed", range(2))
def test_a_graceful_restart_moves_nothing_for_as_long_as_the_host_lives(seed):
    world = settled(seed, nodes=3)
    host = owner_of(world, world.ips[0])
    before = len(world.events)
    host.owner.restart()
    world.run(15.0)
    world.start_daemon(host)
    world.run(15)

    assert [each for each in world.events[before:] if each[2] in {"bound", "unbound"}] == []


@pytest.mark.parametrize("seed", range(2))
def test_a_host_that_dies_during_a_graceful_restart_is_missed_all_the_same(seed):
    world = settled(seed, nodes=3)
    host = owner_of(world, world.ips[0])
    lost = [ip for ip in world.ips if host.has(ip)]
    host.owner.restart()
    world.run(5.0)
    world.kill_host(host)
    world.run_until(lambda: all(world.carriers(ip) for ip in lost), within=4.0)

    assert world.doubles == []


def test_what_is_removed_behind_the_back_of_a_stopped_daemon_is_not_brought_back_beside_another():
    """A renewal cannot be told to renew only what is there (K55), so a late one looks first."""
    for seed in range(6):
        world = settled(seed, nodes=3)
        ip = world.ips[0]
        host = owner_of(world, ip)
        world.pause(host, 1.5)
        world.run(0.3)
        world.delete(ip)
        world.run(5.0)

        assert len(world.carriers(ip)) == 1
        assert world.doubles == []


def test_a_reload_touches_only_what_it_changes():
    world = settled(2, nodes=4)
    whole, before = world.egresses, len(world.events)
    world.reload(whole[1:])
    world.run(3)
    world.reload(whole)
    world.run(3)
    world.reload(reversed(whole))
    world.run(3)

    touched = {ip for _, _, what, ip in world.events[before:] if what in {"bound", "unbound"}}
    assert touched == {str(whole[0].ips[0])}


def test_a_stranger_keeps_its_address_and_we_take_it_when_it_leaves():
    world = World(3, 3, 4)
    ip = world.ips[0]
    world.strangers[ip] = mishaps.STRANGER
    world.start()
    world.run(40)
    assert world.carriers(ip) == []
    assert all(len(world.carriers(other)) == 1 for other in world.ips[1:])

    world.strangers.clear()
    world.run_until(lambda: world.carriers(ip), within=10.0)
    assert world.intruders == []


def test_answers_that_get_lost_are_made_up_for_by_asking_four_times():
    world = settled(4, nodes=3)
    world.lan_loss = 0.05
    rng = Random(4)
    mishaps.trouble(world, rng, (mishaps.crash, mishaps.restart, mishaps.pause), 30)

    assert world.doubles == []
