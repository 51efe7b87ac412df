"""Raw address bytes of the wire and the canonical addresses that they stand for.

Go compares addresses as bytes, in which 10.0.0.1 differs from ::ffff:10.0.0.1; we compare what
is meant. The same bytes give the same object, since every member's roster holds one.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

from gossip.peer import Address

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

CACHED = 1 << 14
V4_BYTES = 4
V6_BYTES = 16


@lru_cache(maxsize=CACHED)
def locate(addr: bytes, port: int) -> Address | None:
    """Where these bytes point, or None when nobody can be there."""
    if len(addr) not in {V4_BYTES, V6_BYTES} or port == 0:
        return None
    ip = plain(ip_address(addr))
    return None if ip.is_unspecified or ip.is_multicast else Address(str(ip), port)


@lru_cache(maxsize=CACHED)
def pack(host: str) -> bytes:
    """The bytes that we say for a host: four for IPv4, in whatever form it is given."""
    return plain(ip_address(host)).packed


@lru_cache(maxsize=CACHED)
def canonical(address: Address) -> Address:
    """The same place with a mapped IPv4 address unwrapped and without an IPv6 zone."""
    host = str(plain(ip_address(address.host.partition("%")[0])))
    return address if host == address.host else Address(host, address.port)


@lru_cache(maxsize=CACHED)
def allowed(host: str, networks: tuple[IPv4Network | IPv6Network, ...]) -> bool:
    """Whether a member may live at `host`; no networks mean that everybody may."""
    ip = ip_address(host)
    return not networks or any(ip in network for network in networks)


def plain(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """An IPv4 address in IPv6 clothes undressed, anything else as it is."""
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    return ip
