"""What the observer's timeline says about a failover: exactly one answerer before and after."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent.lab.timeline import Timeline

FEW_INTERVALS = 3.0


@dataclass(frozen=True, slots=True)
class Loss:
    """One IP whose owner was lost at a moment.

    `taken`: seconds until another answered, None if nobody did. `silent`: the longest time
    without an answer since then. `doubled`: time in which two MACs answered. `by`: the MACs that
    answered at the end.
    """

    ip: str
    taken: float | None
    silent: float
    doubled: float
    by: frozenset[str]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "ip": self.ip,
            "takeover_seconds": None if self.taken is None else round(self.taken, 6),
            "silence_seconds": round(self.silent, 6),
            "two_answerers_seconds": round(self.doubled, 6),
            "answered_by": sorted(self.by),
        }


@dataclass(frozen=True, slots=True)
class Summary:
    """Of many values: the middle one, the one that 99 of 100 do not exceed, and the worst."""

    median: float
    p99: float
    worst: float

    def plain(self) -> dict[str, float]:
        """For JSON."""
        return {
            "median": round(self.median, 6),
            "p99": round(self.p99, 6),
            "max": round(self.worst, 6),
        }


def summary(values: Iterable[float]) -> Summary | None:
    """None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    rank = -(-99 * len(ordered) // 100)
    return Summary(median(ordered), ordered[rank - 1], ordered[-1])


def loss(timeline: Timeline, ip: str, old: str, since: float, until: float) -> Loss:
    """What became of an IP that the host with MAC `old` carried at `since`."""
    taken = timeline.taken(ip, since, old)
    quiet = [each.seconds for each in timeline.silences(ip, since, until)]
    double = sum(each.seconds for each in timeline.overlaps(ip, since, until))
    settled = until - FEW_INTERVALS * timeline.interval
    return Loss(
        ip,
        None if taken is None else taken - since,
        max(quiet, default=0.0),
        double,
        timeline.macs(ip, settled, until),
    )


def steady(timeline: Timeline, owners: Mapping[str, str], since: float, until: float) -> list[str]:
    """What is wrong if every IP should have been answered by its owner's MAC alone."""
    wrong = []
    for ip, mac in owners.items():
        others = timeline.macs(ip, since, until) - {mac}
        if mac not in timeline.macs(ip, since, until):
            wrong.append(f"{ip} was not answered by {mac}")
        if others:
            wrong.append(f"{ip} was answered by {', '.join(sorted(others))} beside {mac}")
    return wrong


def moved(losses: Sequence[Loss], old: str) -> list[str]:
    """What is wrong if every IP should have gone from `old` to exactly one other host."""
    wrong = []
    for each in losses:
        if each.taken is None:
            wrong.append(f"{each.ip} was taken over by nobody")
        elif old in each.by:
            wrong.append(f"{each.ip} was answered by {old} again after the failover")
        elif len(each.by) != 1:
            wrong.append(f"{each.ip} was answered by {len(each.by)} hosts after the failover")
        if each.doubled:
            wrong.append(f"{each.ip} was answered by two hosts for {each.doubled * 1000:.0f} ms")
    return wrong
