"""What we say on the LAN, in which form, and which of what we hear is meant for us."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING

from egress import packets

if TYPE_CHECKING:
    from egress.model import IP, Interface

_ALL_NODES, _IPV6 = bytes.fromhex("333300000001"), packets.ETH_IPV6.to_bytes(2, "big")
_ND_TYPE, _ND_FLAGS, _OVERRIDE = 54, 58, 0x20


def probe(ip: IP, mac: str, interface: Interface | None) -> tuple[bytes, bytes]:
    """A question that changes no neighbour's cache, in the two forms that take turns.

    Solicitations go from the link-local address and, every other time, from none: others that
    want the same address know us by that (RFC 4862).
    """
    if isinstance(ip, IPv4Address):
        return (packets.arp_request(mac, None, ip),) * 2
    sender = link_local(interface)
    return packets.solicitation(mac, sender, ip), packets.solicitation(mac, None, ip)


def request(ip: IP, mac: str, interface: Interface | None) -> tuple[bytes, bytes]:
    """A question from our own address of that subnet, for hosts that ignore probes."""
    if isinstance(ip, IPv4Address):
        return (packets.arp_request(mac, neighbour_of(ip, interface), ip),) * 2
    return (packets.solicitation(mac, link_local(interface), ip),) * 2


def announcements(ip: IP, mac: str) -> tuple[bytes, ...]:
    """The frames that say once that `ip` is at `mac`."""
    if isinstance(ip, IPv4Address):
        return packets.arp_announcements(mac, ip)
    return (packets.advertisement(mac, ip),)


def link_local(interface: Interface | None) -> IPv6Address | None:
    """The address to ask neighbours from, if there is one that is usable."""
    for address in interface.addresses if interface is not None else ():
        if isinstance(address, IPv6Address) and address.is_link_local:
            return address
    return None


def neighbour_of(ip: IPv4Address, interface: Interface | None) -> IPv4Address | None:
    """Our own address in the longest subnet that contains `ip`."""
    if interface is None:
        return None
    around = [each for each in interface.networks if each.version == ip.version and ip in each]
    for network in sorted(around, key=lambda each: -each.prefixlen):
        for address in interface.addresses:
            if isinstance(address, IPv4Address) and address in network:
                return address
    return None


def to_asker(frame: bytes, own: frozenset[str]) -> bool:
    """Whether it answers a question of ours, rather than telling everybody (or, in IPv6, both)."""
    return frame[:6].hex(":") in own or frame[:6] == _ALL_NODES


def by_proxy(frame: bytes) -> bool:
    """Whether somebody advertises what another has: without the override flag (RFC 4861 7.2.4)."""
    advertised = frame[12:14] == _IPV6 and frame[_ND_TYPE] == packets.ADVERTISEMENT
    return advertised and not frame[_ND_FLAGS] & _OVERRIDE
