"""Which address a node is known by, on hosts of many shapes."""

from ipaddress import ip_address, ip_interface

import pytest

from agent.interfaces import (
    AddressError,
    Gateway,
    Host,
    HostAddress,
    _length,
    look,
    node_address,
    permitted,
)
from config.addresses import AUTO, OnInterface

DENY = ("lo", "docker*", "cni*")


def host(*addresses, via=()):
    """`eth0=192.0.2.11/24` for each address, `eth0=192.0.2.1` for each default route."""
    found = []
    for text in ("lo=127.0.0.1/8", "lo=::1/128", *addresses):
        name, _, address = text.partition("=")
        whole = ip_interface(address)
        found.append(HostAddress(name, whole.ip, whole.network))
    routes = (text.partition("=") for text in via)
    return Host(tuple(found), tuple(Gateway(ip_address(ip), name) for name, _, ip in routes))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (host("eth0=192.0.2.11/24"), "192.0.2.11"),
        (host("eth0=2001:db8::11/64", "eth0=fe80::1/64"), "2001:db8::11"),
        (host("eth0=192.0.2.11/24", "eth0=2001:db8::11/64"), "192.0.2.11"),
        (host("eth0=100.64.0.12/10"), "100.64.0.12"),
        (host("docker0=172.17.0.1/16", "eth0=192.0.2.11/24"), "192.0.2.11"),
        (
            host("eth0=192.0.2.11/24", "eth1=198.51.100.11/24", via=["eth1=198.51.100.1"]),
            "198.51.100.11",
        ),
        (
            host("eth0=203.0.113.9/32", "eth0=192.0.2.11/24", via=["eth0=192.0.2.1"]),
            "192.0.2.11",
        ),
        (host("eth0=203.0.113.9/32", via=["eth0=10.0.0.1"]), "203.0.113.9"),
        (
            host("eth0=2001:db8::11/64", "eth1=192.0.2.11/24", via=["eth0=2001:db8::1"]),
            "2001:db8::11",
        ),
        (host("tun0=198.51.100.5/32", "eth0=192.0.2.11/24", via=["eth0=192.0.2.1"]), "192.0.2.11"),
    ],
)
def test_auto_finds_the_address_that_peers_can_reach(where, expected):
    assert str(node_address(AUTO, where, deny=DENY)) == expected


def test_an_egress_ip_that_was_left_behind_is_never_taken():
    where = host("eth0=192.0.2.40/32", "eth0=192.0.2.11/24", via=["eth0=192.0.2.1"])
    left = {ip_address("192.0.2.40")}

    assert str(node_address(AUTO, where, taken=left)) == "192.0.2.11"
    assert str(node_address(OnInterface("eth0"), where, taken=left)) == "192.0.2.11"


def test_an_interface_gives_its_first_address_ipv4_before_ipv6():
    where = host("eth0=192.0.2.11/24", "eth1=2001:db8::7/64", "eth1=198.51.100.7/24")

    assert str(node_address(OnInterface("eth1"), where)) == "198.51.100.7"


def test_an_address_of_this_host_is_taken_as_it_is():
    assert str(node_address(ip_address("192.0.2.11"), host("eth0=192.0.2.11/24"))) == "192.0.2.11"


@pytest.mark.parametrize(
    ("wish", "where", "says"),
    [
        (AUTO, host(), "no interface has an address"),
        (AUTO, host("eth0=169.254.3.4/16"), "no interface has an address"),
        (AUTO, host("docker0=172.17.0.1/16"), "no interface has an address"),
        (
            AUTO,
            host("eth0=192.0.2.11/24", "eth1=198.51.100.11/24"),
            r"192\.0\.2\.11 on eth0, 198\.51\.100\.11 on eth1.*set node\.address",
        ),
        (OnInterface("eth9"), host("eth0=192.0.2.11/24"), r"iface:eth9.*192\.0\.2\.11 on eth0"),
        (OnInterface("eth0"), host("eth0=fe80::1/64"), "no address that peers could reach"),
        (
            ip_address("192.0.2.99"),
            host("eth0=192.0.2.11/24"),
            "which no interface of this host has",
        ),
        (ip_address("192.0.2.40"), host("eth0=192.0.2.40/24"), "is an egress IP"),
    ],
)
def test_what_cannot_be_told_is_refused_with_what_to_write(wish, where, says):
    with pytest.raises(AddressError, match=says):
        node_address(wish, where, taken={ip_address("192.0.2.40")}, deny=DENY)


def test_a_host_with_very_many_addresses_gets_a_short_message():
    where = host(*[f"eth0=192.0.2.{n}/24" for n in range(1, 200)])

    with pytest.raises(AddressError) as refusal:
        node_address(AUTO, where)

    assert len(str(refusal.value)) < 500


@pytest.mark.parametrize(
    ("mask", "length"),
    [
        ("255.255.254.0", 23),
        ("255.255.255.254", 31),
        ("ffff:ffff:ffff:ffff::/64", 64),
        ("ffff:ffff:ffff:fff8::", 61),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", 128),
        ("", None),
        ("garbage", None),
    ],
)
def test_a_mask_is_read_in_every_spelling(mask, length):
    assert _length(mask) == length


def test_deny_wins_over_allow():
    assert permitted("eth0", ["*"], ["lo", "veth*"])
    assert permitted("eth0", ["eth*"], [])
    assert not permitted("veth12", ["*"], ["lo", "veth*"])
    assert not permitted("wlan0", ["eth*"], [])


def test_this_host_has_a_loopback_and_whole_subnets():
    here = look()

    (loopback,) = [each for each in here.addresses if str(each.ip) == "127.0.0.1"]
    assert (loopback.interface, str(loopback.network)) == ("lo", "127.0.0.0/8")
    assert not loopback.usable
    assert all(each.ip in each.network for each in here.addresses)
    assert {gateway.interface for gateway in here.gateways} <= {
        each.interface for each in here.addresses
    }
