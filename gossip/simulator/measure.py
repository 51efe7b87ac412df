"""What is read off a simulated run: when deaths were noticed, false alarms, traffic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gossip.events import HealthChanged, Unreachable
from gossip.peer import Health

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gossip.events import Event
    from gossip.simulator.host import Host
    from gossip.simulator.network import Network

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Death:
    """One host was killed at `at`; the rest is seconds from then, None for not yet.

    `detected` is when the first of the others was sure, `known` when each of the others was, in
    order; `owner` says that it carried addresses, so that the verdict *unreachable* counts.
    """

    name: str
    at: float
    owner: bool
    detected: float | None
    known: tuple[float, ...]
    others: int

    def known_by(self, share: float) -> float | None:
        """Seconds until this share of the others knew."""
        needed = max(1, math.ceil(self.others * share))
        return self.known[needed - 1] if len(self.known) >= needed else None


@dataclass(frozen=True, slots=True)
class Alarms:
    """Accusations of hosts that ran, one for each of its incarnations, whoever believed it."""

    suspicions: int
    deaths: int
    unreachable: int


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Nearest-rank quantiles, seconds."""

    p50: float
    p99: float
    max: float


def quantiles(values: Iterable[float]) -> Quantiles | None:
    """None for no values."""
    ordered = sorted(values)
    if not ordered:
        return None

    def rank(share: float) -> float:
        return ordered[max(0, math.ceil(len(ordered) * share) - 1)]

    return Quantiles(rank(0.5), rank(0.99), ordered[-1])


def death(network: Network, host: Host, *, owner: bool) -> Death:
    """When the hosts that still run came to know of this one's end."""
    others = [each for each in network.running() if each is not host]
    times = (_first(each, host, owner=owner) for each in others)
    known = tuple(sorted(at - host.died for at in times if at is not None))
    detected = known[0] if known else None
    return Death(host.name, host.died, owner, detected, known, len(others))


def _first(viewer: Host, host: Host, *, owner: bool) -> float | None:
    for at, event in viewer.events:
        if at >= host.died and _tells_death(event, host.name, owner=owner):
            return at
    return None


def _tells_death(event: Event, name: str, *, owner: bool) -> bool:
    if isinstance(event, HealthChanged):
        return event.member.name == name and event.member.health is Health.DEAD
    return owner and isinstance(event, Unreachable) and event.name == name


def alarms(network: Network, since: float, *, of: Iterable[str] | None = None) -> Alarms:
    """Accusations since then of hosts that ran at that time; only `of` these, if given."""
    subjects = None if of is None else frozenset(of)
    found: set[tuple[Health | None, str, float]] = set()
    for viewer in network.hosts.values():
        for kind, name, number in _accusations(viewer, network, since):
            if subjects is None or name in subjects:
                found.add((kind, name, number))
    kinds = [kind for kind, _, _ in found]
    return Alarms(kinds.count(Health.SUSPECT), kinds.count(Health.DEAD), kinds.count(None))


def _accusations(
    viewer: Host, network: Network, since: float
) -> Iterator[tuple[Health | None, str, float]]:
    for at, event in viewer.events:
        if at < since:
            continue
        if isinstance(event, HealthChanged):
            member = event.member
            bad = member.health in (Health.SUSPECT, Health.DEAD)
            if bad and at < network.hosts[member.name].died:
                yield member.health, member.name, float(member.incarnation)
        elif isinstance(event, Unreachable) and at < network.hosts[event.name].died:
            yield None, event.name, event.since


@dataclass(frozen=True, slots=True)
class Rates:
    """Sent per second and node: UDP payloads and TCP streams, before IP headers."""

    packets: float
    octets: float
    stream_octets: float


Counters = dict[str, tuple[int, int, int]]
"""What each host has sent until one moment: datagrams, their bytes, bytes in streams."""


def counters(hosts: Iterable[Host]) -> Counters:
    """Of these hosts."""
    return {host.name: (host.sent, host.sent_bytes, host.stream_bytes) for host in hosts}


def rates(before: Counters, after: Counters, seconds: float) -> Rates:
    """What those sent in between that are in both, each by the second."""
    names = after.keys() & before.keys()
    span = max(seconds, 1e-9) * max(len(names), 1)
    packets, octets, streams = (
        sum(after[name][index] - before[name][index] for name in names) / span for index in range(3)
    )
    return Rates(packets, octets, streams)
