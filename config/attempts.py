"""What was tried last and what came of it: the memory of the reloader, and its log."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from config.flipflop import FlipFlop
from config.problems import lines
from config.report import Report, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config.changes import Pending
    from config.problems import Problem

_EVENTS = {each: f"config.{each.value}" for each in Result}
log = structlog.get_logger("wayout.config")


class Attempts:
    """Owned by the reloader. Times are Unix seconds.

    `content` is what was attempted last, refused or not. `failed` is the last refusal, kept after
    a later success. `inconsistent` stays once a roll-back has failed: only a restart ends it.
    """

    def __init__(self, content: str, report: Report, now: float) -> None:
        self.content = content
        self.last = report
        self.failed = None if report.good else report
        self.succeeded_at = now if report.good else 0.0
        self.stale_since = None if report.good else now
        self.inconsistent = False
        self.flips = FlipFlop()
        self.flips.taken(content, now)
        self._waiting: tuple[Pending, ...] = ()
        if report.good:
            log.info("config.loaded", generation=report.generation)
        else:
            log.error("config.rejected", trigger=report.trigger, errors=lines(report.problems))

    def remember(self, content: str, report: Report, now: float) -> None:
        """One run is over; a refusal is logged once for each content."""
        repeated = content == self.content and not report.good and not self.last.good
        self.content = content
        self.last = report
        self.inconsistent = self.inconsistent or report.inconsistent
        if report.good:
            self.stale_since = None
            self.succeeded_at = now
            self._succeeded(content, report, now)
            return
        self.failed = report
        self.stale_since = self.stale_since if self.stale_since is not None else now
        if not repeated:
            log.error(_EVENTS[report.result], trigger=report.trigger, errors=lines(report.problems))

    def _succeeded(self, content: str, report: Report, now: float) -> None:
        log.info(_EVENTS[report.result], generation=report.generation, trigger=report.trigger)
        if report.pending_restart != self._waiting:
            self._waiting = report.pending_restart
            for each in report.pending_restart:
                row = each.to_plain()
                log.warning("config.pending_restart", **row)
        if self.flips.taken(content, now):
            log.warning(
                "config.flip_flop",
                reason="the same contents come and go: two writers undo each other",
                rest_seconds=self.flips.rest(1.0, now),
            )


def failed_layers(
    problems: Sequence[Problem], main: str, layers: Sequence[tuple[str, str]]
) -> frozenset[str]:
    """Ranks of the layers in which problems stand; `layers` are (name, rank) pairs."""
    ranks = dict(layers)
    found = set()
    for each in problems:
        file = str(each.mark).partition(":")[0]
        found.add("main" if file == main else ranks.get(file, "dropin"))
    return frozenset(found)


def stamp(now: float) -> str:
    """RFC 3339 in UTC with milliseconds."""
    when = datetime.fromtimestamp(now, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
