"""What the links of a node make of it: fit, unfit, or unfit for some egresses."""

from ipaddress import ip_address, ip_network

import pytest

from agent import facts, wiring
from agent.world import World, candidates
from config.schema.settings import Settings
from egress import eligibility, placement
from egress.eligibility import Refusal
from egress.model import Egress, Interface, Observed
from egress.placement import Scope

NET = ip_network("192.0.2.0/24")
OTHER = ip_network("198.51.100.0/24")
IP, THERE = ip_address("192.0.2.40"), ip_address("198.51.100.40")


def link(name, *networks, carrier=True, master=None):
    return Interface(name, 2, "02:00:00:00:00:01", carrier, tuple(networks), (), master)


def world(*links, **egresses):
    entries = egresses or {"plain": {"egress_ip": str(IP)}}
    settings = {"version": 1, "node": {"name": "a"}, "egress": {"egresses": entries}}
    return World(
        me="a",
        settings=Settings.model_validate(settings),
        started=0.0,
        observed=Observed((link("lo"), *links)),
    )


def reasons(at):
    return wiring.own_reasons(at, fenced=False, damped=False, unready=())


def refusal(at, egress):
    own = wiring.own_facts(at, reasons(at))
    heard = facts.read(facts.packed(own))
    return eligibility.refusal(candidates(at, heard)["a"], egress)


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ([link("eth0", NET)], []),
        ([link("eth0", NET, carrier=False)], ["no_carrier"]),
        ([link("eth0", NET, carrier=False), link("eth1", OTHER)], []),
        ([], ["no_interface"]),
        ([link("veth9", NET)], ["no_interface"]),
    ],
    ids=["well", "no-carrier", "one-of-two", "deleted", "renamed-to-a-denied-name"],
)
def test_a_node_is_unfit_when_nothing_can_be_carried_on_any_link(links, expected):
    assert reasons(world(*links)) == expected


def test_before_the_first_look_nothing_is_missing():
    at = World(me="a", settings=world().settings, started=0.0)

    assert reasons(at) == []


def test_an_egress_leaves_the_node_whose_link_to_it_is_dead_and_the_others_stay():
    at = world(link("eth0", NET), link("eth1", OTHER, carrier=False))

    assert reasons(at) == []
    assert refusal(at, Egress("one", (IP,))) is None
    assert refusal(at, Egress("two", (THERE,))) is Refusal.NO_SUBNET


def test_an_egress_that_names_a_link_leaves_the_node_where_that_is_dead():
    named = {"egress_ip": str(THERE), "interface": "eth1"}
    egress = Egress("named", (THERE,), interface="eth1")
    plain = {"egress_ip": str(IP)}
    for second in ([link("eth1", carrier=False)], []):
        at = world(link("eth0", NET), *second, named=named, plain=plain)

        assert refusal(at, egress) is Refusal.NO_INTERFACE
        assert refusal(at, Egress("plain", (IP,))) is None
    at = world(link("eth0", NET), link("eth1"), named=named, plain=plain)

    assert refusal(at, egress) is None


def test_a_node_whose_only_link_is_named_and_has_no_address_is_fit():
    at = world(link("eth1"), named={"egress_ip": str(THERE), "interface": "eth1"})

    assert reasons(at) == []


def test_a_port_of_a_bridge_counts_as_its_bridge():
    dead = Observed((link("br0", NET, carrier=False), link("eth0", master="br0")))
    alive = Observed((link("br0", NET), link("eth0", master="br0", carrier=False)))

    assert placement.lacking({"eth0"}, dead, Scope()) == {"eth0"}
    assert placement.lacking({"eth0"}, alive, Scope()) == frozenset()


def test_where_everything_goes_to_one_link_its_death_is_the_end_of_it():
    observed = Observed((link("eth0", NET), link("bond0", OTHER, carrier=False)))

    assert placement.lacking({""}, observed, Scope(default="bond0")) == {""}
    assert placement.lacking({""}, observed, Scope()) == frozenset()
