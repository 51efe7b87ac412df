"""The same fault again and again, and how long each address was nobody's or two hosts'."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent.lab import strikes, verdict
from agent.lab.processes import LabError
from agent.lab.strikes import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from agent.lab.cluster import Cluster
    from agent.lab.observation import Observation
    from agent.lab.strikes import Kind
    from agent.lab.verdict import Loss

STEADY = 0.4
"""Seconds in which each IP must be answered by its owner alone before the next fault."""
STEADY_PATIENCE = 45.0
KEPT = 10.0
"""Seconds of the past that a trial still looks at."""
ACQUAINTED = 13.0
"""Seconds that a daemon must have run for others to take its word for a release: it takes 10
from the moment at which they have met."""
AFTERWARDS = 1.0
"""Seconds of watching after the last IP has moved, and again after the fault is undone."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault: who was hit, what became of the IPs concerned, and which moved without need."""

    victims: tuple[str, ...]
    losses: tuple[Loss, ...]
    needless: tuple[str, ...]

    @property
    def done(self) -> float | None:
        """Seconds until another answers for the last of them; None if not all have moved."""
        taken = [each.taken for each in self.losses if each.taken is not None]
        return max(taken, default=None) if len(taken) == len(self.losses) else None

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "victim": ", ".join(self.victims),
            "moves": [each.plain() for each in self.losses],
            "needless": list(self.needless),
        }


def trials(
    cluster: Cluster, seen: Observation, fault: str, repeat: int, seconds: float | None = None
) -> Iterator[Trial]:
    """Strike those whom the fault is about, watch, undo; so many times.

    `seconds` is how long to watch before the fault is undone, None: as the fault says.
    """
    kind = strikes.find(fault)
    kind = kind if seconds is None else replace(kind, seconds=seconds)
    for _ in range(repeat):
        if kind.planned:
            seen.look(max(ACQUAINTED - cluster.youth, 0.0))
        owners = _steady(cluster, seen)
        victims = _victims(cluster, kind, owners)
        if kind.prepare is not None:
            kind.prepare(cluster, victims, seen.look)
            owners = _steady(cluster, seen)
        yield _trial(cluster, seen, kind, owners, victims)


def _victims(cluster: Cluster, kind: Kind, owners: Mapping[str, str]) -> tuple[str, ...]:
    """Those that carry most, as many as the fault hits; all that there are, in their order."""
    if kind.scope is Scope.ALL and kind.prepare is None:
        return cluster.nodes
    busy = [name for name, _ in Counter(sorted(owners.values())).most_common()]
    count = (len(cluster.nodes) - 1) // 2 if kind.scope is Scope.MINORITY else 1
    if not count:
        raise LabError("a smaller half takes 3 nodes or more")
    return tuple(busy[:count])


def _trial(
    cluster: Cluster,
    seen: Observation,
    kind: Kind,
    owners: dict[str, str],
    victims: tuple[str, ...],
) -> Trial:
    timeline, whole = seen.timeline, kind.scope is Scope.ALL
    old = {ip: cluster.places[owner].mac for ip, owner in owners.items()}
    about = [ip for ip, owner in owners.items() if whole or owner in victims]
    timeline.forget(timeline.until - KEPT)
    began = time.monotonic()
    kind.strike(cluster, victims, seen.look)
    if kind.seconds is None:
        seen.until(lambda: all(timeline.taken(ip, began, old[ip]) for ip in about), kind.patience)
        seen.look(AFTERWARDS)
    else:
        seen.look(max(began + kind.seconds - time.monotonic(), 0.0))
    struck = timeline.until
    kind.undo(cluster, victims, seen.look)
    seen.look(AFTERWARDS)
    _steady(cluster, seen)
    losses = tuple(_loss(seen, ip, old[ip], began, struck) for ip in about)
    still = owners if whole and kind.prepare is None else set(owners) - set(about)
    moved = [ip for ip in still if timeline.moves(ip, began, timeline.until)]
    return Trial(victims, losses, tuple(moved))


def _loss(seen: Observation, ip: str, old: str, began: float, struck: float) -> Loss:
    """Silence counts until the fault is undone, two answerers until everything is quiet again."""
    timeline = seen.timeline
    quiet = verdict.loss(timeline, ip, old, began, struck)
    doubled = sum(each.seconds for each in timeline.overlaps(ip, began, timeline.until))
    return verdict.Loss(ip, quiet.taken, quiet.silent, doubled, quiet.by)


def _steady(cluster: Cluster, seen: Observation) -> dict[str, str]:
    """Wait until daemons and observer agree about every IP; the owners."""
    limit = time.monotonic() + STEADY_PATIENCE
    while True:
        owners = cluster.settle(max(limit - time.monotonic(), 0.0), rest=seen.look)
        since = time.monotonic()
        seen.look(STEADY)
        macs = {ip: cluster.places[owner].mac for ip, owner in owners.items()}
        wrong = verdict.steady(seen.timeline, macs, since, seen.timeline.until)
        if not wrong:
            return owners
        if time.monotonic() > limit:
            raise LabError(f"the cluster does not come to rest, {wrong[0]}")


def document(
    cluster: Cluster, seen: Observation, fault: str, done: Sequence[Trial]
) -> dict[str, Any]:
    """The figures of all trials."""
    losses = [each for trial in done for each in trial.losses]
    taken = [each.taken for each in losses if each.taken is not None]
    return {
        "fault": fault,
        "does": strikes.find(fault).does,
        "repeat": len(done),
        "nodes": len(cluster.nodes),
        "ips": len(cluster.ips),
        "lost": len(losses),
        "takeover_seconds": _figures(taken),
        "not_taken_over": len(losses) - len(taken),
        "silence_seconds": _figures(each.silent for each in losses),
        "silent_ips": sum(1 for each in losses if each.silent),
        "all_done_seconds": _figures(each.done for each in done if each.done is not None),
        "two_answerers_seconds": _figures(each.doubled for each in losses),
        "two_answerers_ips": sum(1 for each in losses if each.doubled),
        "needless_moves": sum(len(trial.needless) for trial in done),
        "resolution_seconds": seen.timeline.interval,
        "slowest_seconds": round(seen.timeline.slowest, 6),
        "trials": [trial.plain() for trial in done],
    }


def _figures(values: Iterable[float]) -> dict[str, float] | None:
    found = verdict.summary(values)
    return None if found is None else found.plain()
