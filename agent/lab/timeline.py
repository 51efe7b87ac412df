"""Who answered for an address, and when: from answers to silences, overlaps and moves.

An observer asks for every address again and again. Its answers are folded into spans: a MAC
that answered every question of a while. All times are monotonic seconds. Everything here errs to
the bad side: a silence includes the time to the next question, and two MACs that answered the
same question count as two owners for the whole time until the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, assert_never

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FOREVER = float("inf")
BREAK = 3.5
"""Asking intervals: a MAC that is silent for less is taken to have been there all the while."""


@dataclass(frozen=True, slots=True)
class Span:
    """`mac` answered each question about `ip` from the one at `asked` on.

    `first` and `last` are its first and last answer; `missed` is the first question that it did
    not answer, FOREVER if there is none yet.
    """

    ip: str
    mac: str
    asked: float
    first: float
    last: float
    missed: float = FOREVER


@dataclass(frozen=True, slots=True)
class Silence:
    """Nobody answered for `ip` between two moments; at least one question was in vain."""

    ip: str
    since: float
    until: float

    @property
    def seconds(self) -> float:
        """How long."""
        return self.until - self.since


@dataclass(frozen=True, slots=True)
class Overlap:
    """More than one MAC answered for `ip`."""

    ip: str
    macs: tuple[str, ...]
    since: float
    until: float

    @property
    def seconds(self) -> float:
        """How long."""
        return self.until - self.since


@dataclass(frozen=True, slots=True)
class Move:
    """`ip` was answered by one MAC and then by another; `at` is the first answer of the other."""

    ip: str
    source: str
    target: str
    left: float
    at: float

    @property
    def seconds(self) -> float:
        """From the last answer of the old to the first of the new; negative in an overlap."""
        return self.at - self.left


@dataclass(frozen=True, slots=True)
class Announcement:
    """Somebody said unasked that `ip` is at `mac`."""

    ip: str
    mac: str
    at: float


@dataclass(frozen=True, slots=True)
class Pulse:
    """All answers up to the question at `at` are in; `spacing` is the longest time between two."""

    at: float
    spacing: float


Change = Span | Announcement | Pulse


@dataclass(slots=True)
class Timeline:
    """What an observer has seen so far.

    `interval` is the time between questions as planned, `slowest` the longest that there was:
    if it is much longer, the observer was kept from asking. `until` is the last question whose
    answers are in.
    """

    interval: float
    began: float = 0.0
    until: float = 0.0
    slowest: float = 0.0
    closed: list[Span] = field(default_factory=list)
    open: dict[tuple[str, str], Span] = field(default_factory=dict)
    announcements: list[Announcement] = field(default_factory=list)

    def fold(self, change: Change) -> None:
        """Take in one more change."""
        match change:
            case Announcement():
                self.announcements.append(change)
            case Span(ip, mac, missed=missed):
                self.open.pop((ip, mac), None)
                if missed == FOREVER:
                    self.open[ip, mac] = change
                else:
                    self.closed.append(change)
            case Pulse(at, spacing):
                self.until, self.began = at, self.began or at
                self.slowest = max(self.slowest, spacing)
            case _:
                assert_never(change)

    def spans(self, ip: str) -> tuple[Span, ...]:
        """Of one address, in the order of their first answers, short breaks closed."""
        every = [each for each in self.closed if each.ip == ip]
        every += [
            replace(each, last=max(each.last, self.until))
            for each in self.open.values()
            if each.ip == ip
        ]
        return joined(every, BREAK * self.interval)

    def macs(self, ip: str, since: float, until: float) -> frozenset[str]:
        """Everybody who answered within a time."""
        here = self.spans(ip)
        return frozenset(each.mac for each in here if each.first <= until and each.last >= since)

    def silences(self, ip: str, since: float, until: float) -> tuple[Silence, ...]:
        """When nobody answered, within a time."""
        return silences(ip, self.spans(ip), since, until)

    def overlaps(self, ip: str, since: float, until: float) -> tuple[Overlap, ...]:
        """When more than one answered, within a time."""
        return overlaps(ip, self.spans(ip), since, until)

    def moves(self, ip: str, since: float, until: float) -> tuple[Move, ...]:
        """Every change of the one who answers, within a time."""
        return tuple(
            Move(ip, old.mac, new.mac, old.last, new.first)
            for old, new in pairwise(self.spans(ip))
            if old.mac != new.mac and since <= new.first <= until
        )

    def taken(self, ip: str, since: float, old: str) -> float | None:
        """The first answer by another than `old` after a moment; None if there is none yet."""
        others = [each for each in self.spans(ip) if each.mac != old and each.last >= since]
        return min((max(each.first, since) for each in others), default=None)

    def forget(self, before: float) -> None:
        """Drop what had ended by then, so that looking at the rest stays quick."""
        self.closed = [each for each in self.closed if each.missed >= before]
        self.announcements = [each for each in self.announcements if each.at >= before]

    def document(self, ips: Iterable[str]) -> dict[str, Any]:
        """For JSON."""
        return {
            "interval_seconds": self.interval,
            "slowest_seconds": round(self.slowest, 6),
            "from": round(self.began, 6),
            "until": round(self.until, 6),
            "answers": {ip: [_plain(each) for each in self.spans(ip)] for ip in ips},
            "announcements": [
                {"ip": each.ip, "mac": each.mac, "at": round(each.at, 6)}
                for each in self.announcements
            ],
        }


def joined(spans: Sequence[Span], pause: float) -> tuple[Span, ...]:
    """Spans of one address in order, those of one MAC made one if less than `pause` is between."""
    latest: dict[str, int] = {}
    result: list[Span] = []
    for each in sorted(spans, key=lambda span: (span.asked, span.first, span.mac)):
        number = latest.get(each.mac)
        if number is not None and each.asked - result[number].missed <= pause:
            former = result[number]
            last, missed = max(former.last, each.last), max(former.missed, each.missed)
            result[number] = replace(former, last=last, missed=missed)
            continue
        latest[each.mac] = len(result)
        result.append(each)
    return tuple(result)


def silences(ip: str, spans: Sequence[Span], since: float, until: float) -> tuple[Silence, ...]:
    """Times within [since, until] in which a question stayed without any answer.

    `spans` are of one address, in the order of their questions.
    """
    found: list[Silence] = []
    heard, missed = since, since
    for each in spans:
        if each.missed <= since and each.last <= since:
            continue
        if each.asked > missed and each.first > heard:
            found.append(Silence(ip, heard, min(each.first, until)))
        heard, missed = max(heard, each.last), max(missed, each.missed)
    if missed < until:
        found.append(Silence(ip, heard, until))
    return tuple(each for each in found if each.seconds > 0)


def overlaps(ip: str, spans: Sequence[Span], since: float, until: float) -> tuple[Overlap, ...]:
    """Times within [since, until] of which each question was answered by more than one MAC.

    Each presence lasts from the first question answered to the first one that was not.
    """
    edges = sorted({at for each in spans for at in (each.asked, each.missed)} | {since, until})
    found: list[Overlap] = []
    for start, stop in pairwise(edges):
        if start < since or stop > until:
            continue
        macs = tuple(sorted({e.mac for e in spans if e.asked <= start and stop <= e.missed}))
        if len(macs) < 2:  # noqa: PLR2004 - two owners are what this is about
            continue
        continued = bool(found) and found[-1].until == start and found[-1].macs == macs
        found.append(Overlap(ip, macs, found.pop().since if continued else start, stop))
    return tuple(found)


def _plain(span: Span) -> dict[str, Any]:
    return {
        "mac": span.mac,
        "first": round(span.first, 6),
        "last": round(span.last, 6),
        "missed": None if span.missed == FOREVER else round(span.missed, 6),
    }
