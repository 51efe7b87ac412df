"""The times of a move while it goes on, and what history tells of it once it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from egress import causes
from egress.decision import Move

if TYPE_CHECKING:
    from egress.model import Cause
    from egress.track import Sight, Track


class Chronicle:
    """Collects finished moves; `gone` tells since when the word of a member has not counted."""

    def __init__(self, me: str) -> None:
        self._me = me
        self.gone: dict[str, float] = {}
        self._finished: list[Move] = []

    def elected(self, track: Track, sight: Sight, now: float) -> None:
        """We are to have the address, and why; only the first look counts."""
        story = track.story
        if story.elected is not None:
            return
        top = sight.view.claims.top(track.ip)
        story.elected = now
        story.cause = causes.of_arrival(track, sight)
        if top is None or top.owner == self._me:
            return
        story.origin = top.owner
        if top.held:
            story.lost = sight.view.lost.get(top.owner)
            story.detected = self.gone.get(top.owner, now)
        else:
            story.detected = min(max(track.released_at, 0.0), now)

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
                lost=story.lost,
                detected=story.detected,
                elected=story.elected,
                checked=story.checked,
                bound=story.bound,
                announced=now,
            )
        )
        story.bound = None

    def given_up(self, track: Track, heir: str | None, cause: Cause, now: float) -> None:
        """It went, to an heir or to nobody."""
        self._finished.append(
            Move(
                ip=track.ip,
                name=track.egress.name,
                origin=self._me,
                to=heir,
                cause=cause,
                bound=now,
            )
        )

    def take(self) -> tuple[Move, ...]:
        """All moves that finished since the last time."""
        finished, self._finished = tuple(self._finished), []
        return finished
