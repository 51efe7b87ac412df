"""The view follows its sources, is the same object while they are, and looks ahead when it must."""

from dataclasses import replace
from ipaddress import ip_network

from agent import facts
from agent.facts import Facts
from agent.inputs import MembersSeen
from agent.outlook import Outlook, Stance
from agent.world import World, fold
from egress.claims import Claims
from egress.model import Claim, Interface, Observed
from gossip.peer import Address, Health, Member
from support.settings import parsed

LINK = Interface(
    "eth0", 2, "02:00:00:00:00:0b", carrier=True, networks=(ip_network("192.0.2.0/24"),)
)
EGRESS = "egress: {failback: never, egresses: {one: {egress_ip: 192.0.2.40}}}"
TEXT = f"version: 1\nnode: {{name: a}}\n{EGRESS}"


def member(name, **fields):
    return Member(
        name=name,
        address=Address("192.0.2.12", 7955),
        health=Health.ALIVE,
        incarnation=1,
        meta=facts.packed(Facts(version="0.1.0", restarting=fields.pop("restarting", 0.0))),
        versions=b"",
        since=100.0,
        rtt=None,
        wayout=True,
        unreachable=False,
    )


def world(*members, silent=()):
    start = World(me="a", settings=parsed(TEXT).settings, started=100.0, observed=Observed((LINK,)))
    known = {each.name: each for each in members}
    return fold(start, MembersSeen(known, frozenset(silent), {}, synced=True), 101.0)


def held_by(name):
    claims = Claims()
    (ip,) = parsed(TEXT).settings.egress.egresses["one"].ips
    claims.fold(Claim(ip, 1, name, held=True), 101.0)
    return claims


async def test_the_last_view_holds_until_one_of_its_sources_is_another():
    claims, at = held_by("b"), world(member("b"))
    outlook = Outlook(claims)
    assert not outlook.holds(at, Stance(), 200.0)
    view, _ = await outlook.look(at, Stance(), 200.0)

    assert outlook.holds(at, Stance(), 200.1)
    assert not outlook.holds(replace(at), Stance(), 200.1)
    assert not outlook.holds(at, Stance(fenced=True), 200.1)
    again, _ = await outlook.look(replace(at), Stance(), 200.1)
    assert again is view
    claims.fold(Claim(next(iter(view.places)), 2, "a", held=True), 200.2)
    assert not outlook.holds(at, Stance(), 200.3)


async def test_while_all_is_well_nobody_looks_ahead():
    view, _ = await Outlook(held_by("b")).look(world(member("b")), Stance(), 200.0)

    assert view.assignments["one"].owner == "b"
    assert view.ahead == {}


async def test_of_a_silent_or_restarting_holder_the_next_in_line_prepares():
    silent = world(member("b"), silent=["b"])
    restarting = world(member("b", restarting=30.0))

    for at in (silent, restarting):
        view, _ = await Outlook(held_by("b")).look(at, Stance(), 200.0)
        assert view.assignments["one"].owner == "b"
        assert view.ahead["one"].owner == "a"


async def test_a_host_that_fell_silent_while_its_daemon_restarts_is_not_waited_for():
    at = world(member("b", restarting=30.0))

    view, _ = await Outlook(held_by("b")).look(at, Stance(mute=frozenset("b")), 200.0)

    assert view.assignments["one"].owner == "a"
    assert view.candidates["b"].unreachable
