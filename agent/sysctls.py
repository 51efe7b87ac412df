"""Kernel settings that decide whether an egress IP is heard: read thinly, judged purely.

What counts is the effective value, and the kernel has three ways to get it from `all` and the
interface: the larger one, either of them, or the interface alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT = Path("/proc")
LARGER = ("arp_ignore", "arp_announce", "rp_filter")
"""The larger of `all` and the interface counts (Linux, ip-sysctl)."""
EITHER = ("promote_secondaries", "proxy_arp", "proxy_arp_pvlan")
"""On if it is on for `all` or for the interface."""
ALONE = ("ignore_routes_with_linkdown",)
"""The interface alone counts."""
CACHES = {4: "arp_cache", 6: "ndisc_cache"}
NEARLY_FULL = 0.8
"""From this share of gc_thresh3 on a burst of new askers finds no room."""
NEVER_ANSWERS = 8
SAME_SUBNET = 2
STRICT = 1


class Severity(Enum):
    """`ok` needs nothing; `note` is worth knowing; `warning` bites sometimes; `error` always."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: what it is, why it matters, and what to type if it should change."""

    severity: Severity
    what: str
    why: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class LinkReading:
    """Effective values on one interface, by name; what the kernel does not have is missing.

    `ipv6` is false where IPv6 is switched off.
    """

    interface: str
    values: Mapping[str, int]
    ipv6: bool | None = None


@dataclass(frozen=True, slots=True)
class NeighbourReading:
    """One neighbour table; it is shared by all namespaces of the machine.

    `limit`: gc_thresh3, None where it cannot be read (any namespace but the first). `entries`:
    how many there are. `fulls`: how often no room was found, since boot.
    """

    family: int
    limit: int | None
    entries: int
    fulls: int


@dataclass(frozen=True, slots=True)
class Readings:
    """What the kernel said."""

    links: tuple[LinkReading, ...] = ()
    neighbours: tuple[NeighbourReading, ...] = ()


def read(interfaces: Iterable[str], root: Path = ROOT) -> Readings:
    """The settings of these interfaces, in the network namespace of this process; never raises."""
    return Readings(
        links=tuple(_link(name, root) for name in interfaces),
        neighbours=tuple(found for family in CACHES if (found := _neighbours(family, root))),
    )


def judge(readings: Readings) -> tuple[Finding, ...]:
    """A verdict on each setting, in the order of the interfaces."""
    several = len(readings.links) > 1
    found: list[Finding] = []
    for link in readings.links:
        found += _of_link(link, several=several)
    for table in readings.neighbours:
        found.append(_of_table(table))
    return tuple(found)


# -- reading -------------------------------------------------------------------------------


def _link(name: str, root: Path) -> LinkReading:
    conf = root / "sys/net/ipv4/conf"
    values: dict[str, int] = {}
    for key in (*LARGER, *EITHER, *ALONE):
        own = _number(conf / name / key)
        if own is None:
            continue
        shared = 0 if key in ALONE else _number(conf / "all" / key) or 0
        values[key] = max(own, shared)
    off = _number(root / "sys/net/ipv6/conf" / name / "disable_ipv6")
    return LinkReading(name, values, None if off is None else off == 0)


def _neighbours(family: int, root: Path) -> NeighbourReading | None:
    try:
        head, *rows = (root / "net/stat" / CACHES[family]).read_text().splitlines()
        columns = [dict(zip(head.split(), row.split(), strict=False)) for row in rows]
        entries = max(int(each["entries"], 16) for each in columns)
        # One row for each CPU; a kernel before 3.19 has no such column.
        fulls = sum(int(each.get("table_fulls", "0"), 16) for each in columns)
    except (OSError, ValueError, KeyError):
        return None
    limit = _number(root / f"sys/net/ipv{family}/neigh/default/gc_thresh3")
    return NeighbourReading(family, limit, entries, fulls)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


# -- judging -------------------------------------------------------------------------------


def _of_link(link: LinkReading, *, several: bool) -> Iterator[Finding]:
    values = link.values
    if "arp_ignore" in values:
        yield _arp_ignore(link.interface, values["arp_ignore"])
    if "arp_announce" in values:
        yield _arp_announce(link.interface, values["arp_announce"])
    if "rp_filter" in values:
        yield _rp_filter(link.interface, values["rp_filter"], several=several)
    if values.get("proxy_arp") or values.get("proxy_arp_pvlan"):
        yield _proxy(link)
    if "promote_secondaries" in values:
        yield _promote(link.interface, values["promote_secondaries"])
    if "ignore_routes_with_linkdown" in values:
        key = "ignore_routes_with_linkdown"
        yield _linkdown(link.interface, values[key], several=several)
    if link.ipv6 is False:
        yield Finding(
            Severity.NOTE,
            f"IPv6 is switched off on {link.interface}",
            "an IPv6 egress cannot be bound there and lives on other nodes",
            _command(link.interface, "disable_ipv6", 0, family=6),
        )


def _arp_ignore(name: str, value: int) -> Finding:
    what = f"arp_ignore is {value} on {name}"
    fix = _lowered(name, "arp_ignore", 1)
    if value >= NEVER_ANSWERS:
        return Finding(
            Severity.ERROR, what, "the kernel answers no ARP request, so nobody finds an IP", fix
        )
    if value >= SAME_SUBNET:
        why = "an egress IP outside the subnets of the interface, and askers from other subnets"
        return Finding(Severity.WARNING, what, f"{why}, get no answer", fix)
    return Finding(Severity.OK, what, "egress IPs on the interface are answered for")


def _arp_announce(name: str, value: int) -> Finding:
    what = f"arp_announce is {value} on {name}"
    if value == 0:
        why = "requests for the next hop may name an egress IP as sender, and so announce it"
        return Finding(Severity.NOTE, what, why, _command(name, "arp_announce", 2))
    return Finding(Severity.OK, what, "requests name an address of the subnet as sender")


def _rp_filter(name: str, value: int, *, several: bool) -> Finding:
    what = f"rp_filter is {value} on {name}"
    if value != STRICT:
        return Finding(Severity.OK, what, "packets that would be answered elsewhere get in")
    why = "packets for an egress IP are dropped if the route back leads through another interface"
    severity = Severity.WARNING if several else Severity.NOTE
    return Finding(severity, what, why, _command(name, "rp_filter", 2))


def _proxy(link: LinkReading) -> Finding:
    key = "proxy_arp" if link.values.get("proxy_arp") else "proxy_arp_pvlan"
    return Finding(
        Severity.WARNING,
        f"{key} is on for {link.interface}",
        "this host may answer for egress IPs of others, late, and clients keep the last answer",
        _lowered(link.interface, key, 0),
    )


def _promote(name: str, value: int) -> Finding:
    what = f"promote_secondaries is {value} on {name}"
    if value:
        return Finding(Severity.OK, what, "deleting one address takes no other with it")
    why = "deleting the node's first address takes its others along (egress IPs are /32 and stay)"
    return Finding(Severity.NOTE, what, why, _command(name, "promote_secondaries", 1))


def _linkdown(name: str, value: int, *, several: bool) -> Finding:
    what = f"ignore_routes_with_linkdown is {value} on {name}"
    if value or not several:
        return Finding(Severity.OK, what, "there is no other way that a dead link could hide")
    why = "routes through it are used although it has no carrier and another interface would do"
    return Finding(Severity.NOTE, what, why, _command(name, "ignore_routes_with_linkdown", 1))


def _of_table(table: NeighbourReading) -> Finding:
    name = f"net.ipv{table.family}.neigh.default"
    what = f"the IPv{table.family} neighbour table has {table.entries} entries"
    if table.limit is None:
        what += ", its limit is only visible on the host"
    else:
        what += f" of {table.limit}"
    limit = max(8192, 2 * (table.limit or 0))
    parts = (("gc_thresh3", limit), ("gc_thresh2", limit // 2), ("gc_thresh1", limit // 4))
    fix = "sysctl -w " + " ".join(f"{name}.{key}={value}" for key, value in parts)
    mute = "a host with a full table does not answer those who ask for the first time"
    if table.fulls:
        why = f"it was full {table.fulls} times since boot, and {mute}"
        return Finding(Severity.WARNING, what, why, fix)
    if table.limit is not None and table.entries >= NEARLY_FULL * table.limit:
        return Finding(Severity.WARNING, what, mute, fix)
    return Finding(Severity.OK, what, "there is room for new neighbours")


def _command(name: str, key: str, value: int, *, family: int = 4) -> str:
    # With slashes, or the dot in a name such as eth0.100 would be read as one more level.
    path = f"net/ipv{family}/conf/{name}/{key}"
    return f"sysctl -w {path if '.' in name else path.replace('/', '.')}={value}"


def _lowered(name: str, key: str, value: int) -> str:
    """Where the larger value wins, `all` has to come down too."""
    return f"{_command('all', key, value)} && {_command(name, key, value)}"
