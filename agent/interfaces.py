"""Interfaces, addresses and gateways of this host: the only place that knows netifaces.

netifaces knows neither lifetimes nor marks, so callers say which addresses are egress IPs
(`taken`): those may move away and are never the address of a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import ip_address, ip_interface
from typing import TYPE_CHECKING, cast

import netifaces

from config.addresses import Auto, OnInterface

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from egress.model import IP, Network

FAMILIES = {4: netifaces.AF_INET, 6: netifaces.AF_INET6}
SHOWN = 8


class AddressError(Exception):
    """The address of this node cannot be told: what is wrong, and what to write."""


@dataclass(frozen=True, slots=True)
class HostAddress:
    """An address on an interface, with the subnet that it is in."""

    interface: str
    ip: IP
    network: Network

    @property
    def usable(self) -> bool:
        """Whether peers could reach this host by it."""
        return not (self.ip.is_loopback or self.ip.is_link_local or self.ip.is_multicast)


@dataclass(frozen=True, slots=True)
class Gateway:
    """A default route, the best one of its family first."""

    ip: IP
    interface: str


@dataclass(frozen=True, slots=True)
class Host:
    """What this host has, in the order of the kernel."""

    addresses: tuple[HostAddress, ...] = ()
    gateways: tuple[Gateway, ...] = ()

    @property
    def ips(self) -> frozenset[IP]:
        """Every address, on whatever interface."""
        return frozenset(each.ip for each in self.addresses)


def look() -> Host:
    """The host as it is now."""
    names = netifaces.interfaces()
    found = {name: _families(name) for name in names}
    return Host(
        addresses=tuple(
            each
            for name in names
            for number in FAMILIES.values()
            for each in _addresses(name, found[name].get(number, []))
        ),
        gateways=_gateways(),
    )


def permitted(name: str, allow: Iterable[str], deny: Iterable[str]) -> bool:
    """Whether the options interfaces.allow and interfaces.deny let us use it; deny wins."""
    if any(fnmatchcase(name, pattern) for pattern in deny):
        return False
    return any(fnmatchcase(name, pattern) for pattern in allow)


def node_address(
    wish: IP | Auto | OnInterface,
    host: Host,
    *,
    taken: Collection[IP] = (),
    deny: Collection[str] = (),
) -> IP:
    """The address that peers know this node by, or AddressError.

    `auto` is the address on the interface with the default route, else the only one there is on
    interfaces that no pattern of `deny` matches.
    """
    usable = [each for each in host.addresses if each.usable and each.ip not in taken]
    match wish:
        case Auto():
            return _automatic(host, usable, deny)
        case OnInterface(name):
            return _on_interface(name, host, usable)
        case _:
            return _literal(wish, host, taken)


def _automatic(host: Host, usable: list[HostAddress], deny: Collection[str]) -> IP:
    for gateway in host.gateways:
        there = [
            each
            for each in usable
            if each.interface == gateway.interface and each.ip.version == gateway.ip.version
        ]
        # An address in the subnet of the gateway is what packets to elsewhere are sent from.
        beside = [each for each in there if gateway.ip in each.network]
        for each in beside or there:
            return each.ip
    open_ones = [each for each in usable if permitted(each.interface, ("*",), deny)]
    for version in FAMILIES:
        ips = [each.ip for each in open_ones if each.ip.version == version]
        if len(ips) == 1:
            return ips[0]
        if ips:
            raise AddressError(
                f"node.address is auto, but there is no default route and {len(ips)} addresses "
                f"could be meant ({_listed(open_ones)}), set node.address to one of them"
            )
    raise AddressError(
        "node.address is auto, but no interface has an address that peers could reach, "
        "bring one up or set node.address"
    )


def _on_interface(name: str, host: Host, usable: list[HostAddress]) -> IP:
    for version in FAMILIES:
        for each in usable:
            if each.interface == name and each.ip.version == version:
                return each.ip
    if any(each.interface == name for each in host.addresses):
        raise AddressError(
            f"node.address is iface:{name}, but it has no address that peers could reach, "
            f"add one or name another interface ({_listed(usable)})"
        )
    raise AddressError(
        f"node.address is iface:{name}, but no interface of that name has an address, "
        f"bring it up or name another one ({_listed(usable)})"
    )


def _literal(ip: IP, host: Host, taken: Collection[IP]) -> IP:
    if ip in taken:
        raise AddressError(
            f"node.address is {ip}, which is an egress IP and may move away, "
            "set it to an address of this host alone"
        )
    if ip not in host.ips:
        raise AddressError(
            f"node.address is {ip}, which no interface of this host has, "
            f"write one of its own ({_listed(host.addresses)}) or auto"
        )
    return ip


def _listed(addresses: Iterable[HostAddress]) -> str:
    shown = [f"{each.ip} on {each.interface}" for each in addresses if each.usable]
    return ", ".join(shown[:SHOWN]) + (", …" if len(shown) > SHOWN else "") or "there is none"


def _families(name: str) -> Mapping[int, list[dict[str, str]]]:
    try:
        return cast("Mapping[int, list[dict[str, str]]]", netifaces.ifaddresses(name))
    except ValueError:
        # It went away between the list and the question.
        return {}


def _addresses(name: str, entries: list[dict[str, str]]) -> list[HostAddress]:
    found = []
    for entry in entries:
        # Point-to-point links may come without a mask; the zone of a link-local is the interface.
        address = entry.get("addr", "").partition("%")[0]
        length = _length(entry.get("netmask", ""))
        try:
            whole = ip_interface(f"{address}/{length}" if length is not None else address)
        except ValueError:
            continue
        found.append(HostAddress(name, whole.ip, whole.network))
    return found


def _length(mask: str) -> int | None:
    """Prefix length of a mask, which some versions write with `/64` behind it and some without."""
    text, _, length = mask.partition("/")
    if length.isdigit():
        return int(length)
    try:
        return int(ip_address(text)).bit_count() if text else None
    except ValueError:
        return None


def _gateways() -> tuple[Gateway, ...]:
    known = netifaces.gateways()
    best = known.get("default", {})
    found = []
    for number in FAMILIES.values():
        entries = [*([best[number]] if number in best else []), *known.get(number, [])]
        for text, interface, *_ in entries:
            gateway = Gateway(ip_address(text.partition("%")[0]), interface)
            if gateway not in found:
                found.append(gateway)
    return tuple(found)
