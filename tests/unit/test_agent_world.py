"""The picture of the world, and what follows from it."""

from ipaddress import ip_address

import pytest

from agent import facts, wiring, world
from agent.facts import Facts
from agent.inputs import (
    DrainWished,
    KernelChanged,
    MembersSeen,
    RestartPrepared,
    SettingsChanged,
    StopWished,
)
from agent.world import World
from egress.model import Interface, Observed
from gossip.peer import Address, Health, Member
from support.settings import parsed

SEEDS = "gossip: {seeds: [10.77.0.11, 10.77.0.12, node-c.example]}\n"


def settings(text=""):
    return parsed("version: 1\nnode: {name: a}\n" + text).settings


def start(text="", **fields):
    return World(me="a", settings=settings(text), started=100.0, **fields)


def member(name, health=Health.ALIVE, said=None, **fields):
    meta = facts.packed(said or Facts(version="0.1.0")) if said is not False else b"\xffserf"
    known = {"address": Address(f"10.77.0.{ord(name) - 86}", 7955), "unreachable": False}
    return Member(
        name=name,
        health=health,
        incarnation=1,
        meta=meta,
        versions=b"",
        since=100.0,
        rtt=None,
        wayout=said is not False,
        **(known | fields),
    )


def seen(*members, lost=None, synced=True):
    return MembersSeen({each.name: each for each in members}, frozenset(), lost or {}, synced)


def test_health_counts_from_when_a_member_became_fit_without_a_break():
    first = world.fold(start(), seen(member("b")), 101.0)
    again = world.fold(first, seen(member("b")), 150.0)
    unfit = world.fold(again, seen(member("b", said=Facts(reasons=("draining",)))), 160.0)
    back = world.fold(unfit, seen(member("b")), 170.0)

    assert again.healthy == {"b": 101.0}
    assert unfit.healthy == {}
    assert back.healthy == {"b": 170.0}


def test_candidates_are_wayout_members_of_our_cluster_and_we_by_our_own_facts():
    others = (member("b"), member("c", said=False), member("d", said=Facts(cluster="blue")))
    at = world.fold(start(), seen(*others), 101.0)

    found = world.candidates(at, Facts(reasons=("draining",)))

    assert sorted(found) == ["a", "b"]
    assert found["a"].reasons == ("draining",)


def test_a_suspect_is_present_and_one_that_left_is_not():
    at = world.fold(start(), seen(member("b", Health.SUSPECT), member("c", Health.LEFT)), 101.0)
    found = world.candidates(at, Facts())

    assert (found["b"].present, found["c"].present, found["c"].left) == (True, False, True)


def test_a_start_waits_for_every_literal_seed_but_not_for_ever():
    at = start(SEEDS, seeds=("10.77.0.12:7955",))

    assert world.unready(at, 100.5) == ("waiting for 10.77.0.12:7955",)
    joined = world.fold(at, seen(member("b", address=Address("10.77.0.12", 7955))), 101.0)
    assert world.unready(joined, 101.0) == ()
    assert world.unready(at, 105.0) == ()


def test_a_seed_that_dies_right_after_the_start_makes_nobody_start_again():
    at = start(SEEDS, seeds=("10.77.0.12:7955",))
    place = Address("10.77.0.12", 7955)
    joined = world.fold(at, seen(member("b", address=place)), 101.0)
    lost = seen(member("b", Health.DEAD, address=place))

    assert world.unready(world.fold(joined, lost, 102.0), 102.0) != ()
    started = world.expire(joined, 101.0)
    assert world.unready(world.fold(started, lost, 102.0), 102.0) == ()


def test_a_lone_node_without_seeds_is_ready_at_once():
    assert world.unready(start(), 100.0) == ()


def test_a_drain_for_a_time_ends_by_itself():
    at = world.fold(start(), DrainWished(draining=True, until=200.0), 101.0)

    assert world.expire(at, 199.0).draining
    assert not world.expire(at, 200.0).draining


def test_a_restart_that_was_prepared_is_forgotten_by_preparing_none():
    prepared = world.fold(start(), RestartPrepared(until=130.0), 100.0)
    taken_back = world.fold(prepared, RestartPrepared(until=105.0), 105.0)

    assert (start().restart_until, prepared.restart_until) == (float("-inf"), 130.0)
    assert taken_back.restart_until == 105.0
    assert not prepared.stopping


def test_settings_are_replaced_as_one_value_and_kernel_news_leaves_them():
    other = settings("egress: {lease: 5s}")
    at = world.fold(start(), SettingsChanged(other, 2, "d", "n"), 101.0)

    assert (at.settings, at.generation, at.cluster_digest) == (other, 2, "d")
    assert world.fold(at, KernelChanged(), 102.0) == at


LINK = Interface("eth0", 2, "02:00:00:00:00:0b", carrier=True, networks=())


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        ("", {}, []),
        ("groups: []\n", {"draining": True}, ["draining"]),
    ],
)
def test_own_reasons_say_why_we_may_own_nothing(text, fields, expected):
    at = start(text, **fields)

    assert wiring.own_reasons(at, fenced=False, damped=False, unready=()) == expected


def test_everything_that_is_wrong_with_us_is_said():
    at = world.fold(start(), StopWished(), 101.0)

    found = wiring.own_reasons(at, fenced=True, damped=True, unready=("joining",))

    assert found == ["stopping", "isolated", "damped", "starting"]


def test_a_restart_is_no_reason_but_a_plea():
    at = world.fold(start(), StopWished(keep=True), 101.0)

    assert wiring.own_reasons(at, fenced=False, damped=False, unready=()) == []
    assert wiring.own_facts(at, ()).restarting == 30.0


def test_gateways_are_asked_before_members_and_only_on_their_own_link():
    from ipaddress import ip_network

    link = Interface("eth0", 2, LINK.mac, carrier=True, networks=(ip_network("10.77.0.0/24"),))
    at = start(observed=Observed((link,)))
    gateway, near, far = (ip_address(f"10.77.{third}") for third in ("0.1", "0.12", "9.9"))

    found = wiring.controls(at, {"eth0": [gateway]}, [far, near])

    assert found == {"eth0": (gateway, near)}


def test_members_of_a_former_life_are_expected_until_they_leave_or_long_stay_away():
    at = start(remembered=frozenset({"b", "c", "d"}))
    first = seen(member("b"), member("c", Health.LEFT))
    came = world.fold(at, first, 101.0)

    assert came.remembered == {"b", "d"}
    assert world.expected_names(came, seen(member("b")), 100.0 + world.REMEMBERED_FOR) == {"b"}


def test_whom_gossip_forgets_is_expected_no_more():
    at = world.fold(start(), seen(member("b"), member("c", Health.DEAD)), 101.0)

    assert at.remembered == {"b", "c"}
    assert world.fold(at, seen(member("b")), 102.0).remembered == {"b"}
