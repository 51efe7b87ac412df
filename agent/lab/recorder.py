"""What an observer makes of each answer: a change only when somebody starts or stops answering.

    ask, and then
    recorder.heard(ip, mac, at)     for each answer that came since
    recorder.asked(at)              just before the next question

A cluster at rest makes no changes, however often it is asked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from agent.lab.timeline import FOREVER, Announcement, Pulse, Span

if TYPE_CHECKING:
    from agent.lab.timeline import Change

PULSE_EVERY = 0.05
"""Seconds between two pulses: they tell a reader that no change is news, too."""


@dataclass(slots=True)
class _Run:
    asked: float
    first: float
    last: float
    question: int


class Recorder:
    """Folds the answers to one question after the other; `began` is when the first was asked."""

    def __init__(self, began: float) -> None:
        self._question, self._now, self._before = 0, began, began
        self._runs: dict[tuple[str, str], _Run] = {}
        self._changes: list[Change] = []
        self._pulsed, self._spacing = began, 0.0

    def heard(self, ip: str, mac: str, at: float) -> None:
        """An answer; one from before the newest question is an answer to the one before."""
        late = at < self._now
        question = self._question - 1 if late else self._question
        run = self._runs.get((ip, mac))
        if run is None:
            asked = self._before if late else self._now
            self._runs[ip, mac] = _Run(min(asked, at), at, at, question)
            self._changes.append(Span(ip, mac, min(asked, at), at, at))
            return
        run.last, run.question = max(run.last, at), max(run.question, question)

    def announced(self, ip: str, mac: str, at: float) -> None:
        """Somebody said unasked where an address is."""
        self._changes.append(Announcement(ip, mac, at))

    def asked(self, at: float) -> tuple[Change, ...]:
        """The next question goes out; what has changed since the last one did."""
        if any(run.question < self._question for run in self._runs.values()):
            self._close()
        self._spacing = max(self._spacing, at - self._now)
        if at - self._pulsed >= PULSE_EVERY:
            self._changes.append(Pulse(self._now, self._spacing))
            self._pulsed, self._spacing = at, 0.0
        self._question, self._before, self._now = self._question + 1, self._now, at
        changes, self._changes = tuple(self._changes), []
        return changes

    def _close(self) -> None:
        for (ip, mac), run in list(self._runs.items()):
            if run.question < self._question:
                del self._runs[ip, mac]
                missed = max(self._now, run.last)
                self._changes.append(Span(ip, mac, run.asked, run.first, run.last, missed))


def line(change: Change) -> str:
    """One change as a line of JSON, without its end."""
    match change:
        case Span(ip, mac, asked, first, last, missed):
            times = [_short(each) for each in (asked, first, last)]
            end = None if missed == FOREVER else _short(missed)
            return json.dumps(["span", ip, mac, *times, end])
        case Announcement(ip, mac, at):
            return json.dumps(["said", ip, mac, _short(at)])
        case Pulse(at, spacing):
            return json.dumps(["pulse", _short(at), _short(spacing)])
        case _:
            assert_never(change)


def read(text: str) -> Change:
    """A line back to a change; ValueError if it is none."""
    match json.loads(text):
        case ["span", str(ip), str(mac), float(asked), float(first), float(last), missed]:
            return Span(ip, mac, asked, first, last, FOREVER if missed is None else missed)
        case ["said", str(ip), str(mac), float(at)]:
            return Announcement(ip, mac, at)
        case ["pulse", float(at), float(spacing)]:
            return Pulse(at, spacing)
        case _:
            raise ValueError(text)


def _short(seconds: float) -> float:
    # Microseconds are enough, and rounding keeps the order of what was in order.
    return round(seconds, 6)
