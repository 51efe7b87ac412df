"""Which interface an egress IP belongs on: the named one, or the one with its subnet."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from egress.model import IP, Interface, Observed


@dataclass(frozen=True, slots=True)
class Scope:
    """Which interfaces may carry egress IPs: name globs, and one to prefer (None: by subnet)."""

    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ("lo", "veth*", "cni*", "docker*", "cali*", "lxc*")
    default: str | None = None

    def admits(self, name: str) -> bool:
        """Deny wins over allow."""
        if any(fnmatchcase(name, glob) for glob in self.deny):
            return False
        return any(fnmatchcase(name, glob) for glob in self.allow)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an address goes, or the reason (a short constant) why it cannot go anywhere."""

    interface: str | None
    reason: str | None = None


def place(ip: IP, wish: str | None, observed: Observed, scope: Scope) -> Placement:
    """The interface for `ip`; `wish` is the one that the egress names, if it names one.

    An interface that is enslaved to a bridge or bond does not answer for its addresses under
    arp_ignore 1, so its master takes its place (kernel fact K28).
    """
    by_name = {each.name: each for each in observed.interfaces}
    named = wish or scope.default
    if named is None:
        return _checked(_by_subnet(ip, observed.interfaces, scope), by_name)
    chosen = by_name.get(named)
    if chosen is None:
        return Placement(None, "no_such_interface")
    return _checked(chosen, by_name)


def lacking(wishes: Iterable[str], observed: Observed, scope: Scope) -> frozenset[str]:
    """Those of the named interfaces that cannot be used now: gone, or without carrier.

    The empty name stands for where egresses go that name none: as the scope says.
    """
    by_name = {each.name: each for each in observed.interfaces}
    anywhere = any(link.carrier for link in usable(observed, scope))
    missing = set()
    for wish in wishes:
        named = wish or scope.default
        found = anywhere if named is None else _checked(by_name.get(named), by_name).interface
        if not found:
            missing.add(wish)
    return frozenset(missing)


def usable(observed: Observed, scope: Scope) -> tuple[Interface, ...]:
    """Interfaces that may carry egress IPs at all, in the order of the kernel."""
    return tuple(
        each
        for each in observed.interfaces
        if each.master is None and scope.admits(each.name) and each.networks
    )


def _by_subnet(ip: IP, interfaces: Sequence[Interface], scope: Scope) -> Interface | None:
    matches = [
        (network.prefixlen, -each.index, each)
        for each in interfaces
        if scope.admits(each.name)
        for network in each.networks
        if network.version == ip.version and ip in network
    ]
    return max(matches, key=lambda match: match[:2])[2] if matches else None


def _checked(chosen: Interface | None, by_name: dict[str, Interface]) -> Placement:
    if chosen is None:
        return Placement(None, "no_subnet")
    if chosen.master is not None:
        chosen = by_name.get(chosen.master, chosen)
    if not chosen.carrier:
        return Placement(None, "no_carrier")
    return Placement(chosen.name)
