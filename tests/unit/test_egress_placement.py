"""Where an egress IP goes."""

from ipaddress import ip_address, ip_network

from egress.model import Interface, Observed
from egress.placement import Placement, Scope, place, usable

ETH0 = Interface(
    "eth0", 2, "02:00:00:00:00:0b", carrier=True, networks=(ip_network("10.77.0.0/24"),)
)
ETH1 = Interface(
    "eth1",
    3,
    "02:00:00:00:01:0b",
    carrier=True,
    networks=(ip_network("10.77.0.128/25"), ip_network("2001:db8:77::/64")),
)


def at(ip, *interfaces, wish=None, scope=None):
    return place(ip_address(ip), wish, Observed(interfaces), scope or Scope())


def test_the_longest_subnet_that_contains_the_address_wins():
    assert at("10.77.0.200", ETH0, ETH1) == Placement("eth1")
    assert at("10.77.0.20", ETH0, ETH1) == Placement("eth0")
    assert at("2001:db8:77::5", ETH0, ETH1) == Placement("eth1")


def test_an_address_outside_every_subnet_needs_a_named_interface():
    assert at("192.0.2.1", ETH0, ETH1) == Placement(None, "no_subnet")
    assert at("192.0.2.1", ETH0, ETH1, wish="eth0") == Placement("eth0")


def test_a_named_interface_that_is_not_there_is_a_reason_and_not_a_fallback():
    assert at("10.77.0.20", ETH0, wish="eth9") == Placement(None, "no_such_interface")


def test_without_carrier_nobody_would_hear_us():
    down = Interface("eth0", 2, ETH0.mac, carrier=False, networks=ETH0.networks)

    assert at("10.77.0.20", down) == Placement(None, "no_carrier")


def test_the_master_takes_the_place_of_an_enslaved_port():
    port = Interface("eth0", 2, ETH0.mac, carrier=True, networks=ETH0.networks, master="br0")
    bridge = Interface("br0", 5, ETH0.mac, carrier=True)

    assert at("10.77.0.20", port, bridge) == Placement("br0")


def test_denied_interfaces_are_not_found_by_subnet():
    scope = Scope(deny=("eth1",))

    assert at("10.77.0.200", ETH0, ETH1, scope=scope) == Placement("eth0")
    assert usable(Observed((ETH0, ETH1)), scope) == (ETH0,)
