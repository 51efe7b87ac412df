"""Who is who on the segment of a lab: names, MACs and addresses, all following from a number."""

from __future__ import annotations

from dataclasses import dataclass

OBSERVER = "obs"
OBSERVER_NUMBER = 99
FIRST_NODE = 11
NODES_MAX = 80
"""Nodes are numbers 11-90; 99 is the observer, egress IPs are from 101 on."""
FIRST_IP = 201
SMALL_IPS = 50
"""IPv4 egress IPs that fit between .201 and .250 of the nodes' own /24."""
IPS_MAX = 2000

TITLES = ("billing", "partner", "licence", "mail", "mirror", "backup")


@dataclass(frozen=True, slots=True)
class Place:
    """A host's name and its number on the segment."""

    name: str
    number: int

    @property
    def mac(self) -> str:
        """Hardware address of its `eth0`."""
        return f"02:00:00:00:00:{self.number:02x}"

    @property
    def ip4(self) -> str:
        """Its own IPv4 address."""
        return f"10.77.0.{self.number}"

    @property
    def ip6(self) -> str:
        """Its own IPv6 address; the digits are those of the number, so that people see it."""
        return f"2001:db8:77::{self.number}"

    @property
    def link_local(self) -> str:
        """Its IPv6 address on the link."""
        return f"fe80::{self.number}"


def places(nodes: int) -> tuple[Place, ...]:
    """The nodes n1…, and the observer."""
    numbered = [Place(f"n{number}", FIRST_NODE + number - 1) for number in range(1, nodes + 1)]
    return (*numbered, Place(OBSERVER, OBSERVER_NUMBER))


def prefix(ips: int) -> int:
    """Length of the IPv4 subnet: a /24 as long as the egress IPs fit into it."""
    return 24 if (ips + 1) // 2 <= SMALL_IPS else 16


def egress_ips(count: int) -> dict[str, str]:
    """Names and addresses, IPv4 and IPv6 in turn."""
    return {_title(number): _ip(number, count) for number in range(count)}


def _title(number: int) -> str:
    return TITLES[number] if number < len(TITLES) else f"egress-{number + 1}"


def _ip(number: int, count: int) -> str:
    pair, six = divmod(number, 2)
    if six:
        return f"2001:db8:77::{FIRST_IP + pair}"
    if prefix(count) == 24:  # noqa: PLR2004 - as in `prefix`
        return f"10.77.0.{FIRST_IP + pair}"
    high, low = divmod(pair, 250)
    return f"10.77.{high + 1}.{low + 1}"
