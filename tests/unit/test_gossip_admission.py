"""Who may take part."""

from ipaddress import ip_network

from gossip.admission import REMEMBERED, Admission

ALLOWED = Admission((ip_network("10.77.0.0/24"), ip_network("2001:db8:77::/64")))


def test_without_networks_everybody_may_come():
    assert Admission().admits("203.0.113.9")


def test_only_hosts_of_the_networks_may_come():
    assert ALLOWED.admits("10.77.0.11")
    assert ALLOWED.admits("2001:db8:77::11")
    assert not ALLOWED.admits("10.78.0.11")
    assert not ALLOWED.admits("2001:db8:78::11")
    assert not ALLOWED.admits("not an address")


def test_a_flood_of_sources_costs_no_memory():
    door = Admission((ip_network("10.0.0.0/8"),))
    for number in range(REMEMBERED + 10):
        assert not door.admits(f"192.0.{number >> 8}.{number & 255}")

    assert len(door._verdicts) <= REMEMBERED
