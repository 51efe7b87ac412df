"""The times of a move while it goes on, and what history tells of it once it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from egress import taking
from egress.decision import Move

if TYPE_CHECKING:
    from egress.track import Sight, Track

CAUSES = {
    "partition": "partition",
    "config": "config",
    "interface": "config",
    "conflict": "conflict",
    "draining": "drain",
}
"""Causes of `history` by the reason of a release; every other reason is one of health."""


class Chronicle:
    """Collects finished moves; `missed` tells since when a member has been silent or gone."""

    def __init__(self, me: str) -> None:
        self._me = me
        self.missed: dict[str, float] = {}
        self._finished: list[Move] = []

    def elected(self, track: Track, sight: Sight, now: float) -> None:
        """We are to have the address, and why; only the first look counts."""
        story = track.story
        if story.elected is not None:
            return
        top = sight.view.claims.top(track.ip)
        story.elected = now
        story.cause = taking.cause_of(track, sight)
        story.origin = None if top is None else top.owner
        story.detected = self.missed.get(story.origin or "", now)

    def announced(self, track: Track, now: float) -> None:
        """The first announcement is out: an arrival is complete with it."""
        story, track.first_due = track.story, False
        if story.bound is None:
            return
        self._finished.append(
            Move(
                ip=track.ip,
                name=track.egress.name,
                origin=story.origin,
                to=self._me,
                cause=story.cause,
                detected=story.detected,
                elected=story.elected,
                checked=story.checked,
                bound=story.bound,
                announced=now,
            )
        )
        story.bound = None

    def given_up(self, track: Track, now: float) -> None:
        """It went without an heir."""
        cause = CAUSES.get(track.detail or "", "health")
        self._finished.append(
            Move(
                ip=track.ip,
                name=track.egress.name,
                origin=self._me,
                to=None,
                cause=cause,
                detected=None,
                elected=None,
                checked=None,
                bound=now,
                announced=None,
            )
        )

    def take(self) -> tuple[Move, ...]:
        """All moves that finished since the last time."""
        finished, self._finished = tuple(self._finished), []
        return finished
