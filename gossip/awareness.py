"""How far this node trusts itself: Lifeguard's local health, with loop lag as one more source."""

from __future__ import annotations

LATE = 0.1
"""Seconds by which our own loop may be late before it counts against us."""
DOUBT = 2.0
"""Seconds for which a late loop keeps us from accusing anybody."""


class Awareness:
    """Score from 0 (well) to `limit` - 1; whoever is unwell waits longer and accuses less."""

    __slots__ = ("_doubt_until", "limit", "score")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.score = 0
        self._doubt_until = 0.0

    def shift(self, delta: int) -> bool:
        """Add to the score within its bounds; whether it changed."""
        before = self.score
        self.score = min(max(before + delta, 0), self.limit - 1)
        return self.score != before

    def lagged(self, seconds: float, now: float) -> bool:
        """Our loop was late by `seconds`; whether the score changed.

        One stall counts once, however many measurements tell of it.
        """
        if seconds < LATE:
            return False
        fresh = now >= self._doubt_until
        self._doubt_until = now + DOUBT
        return fresh and self.shift(1)

    def scale(self, seconds: float) -> float:
        """Patience with others: longer while we are unwell."""
        return seconds * (self.score + 1)

    def degraded(self, now: float) -> bool:
        """Whether others should not be accused on our word.

        Half the scale: two failed probes with mute relays, or many small ones in a row.
        """
        return now < self._doubt_until or self.score >= max(self.limit // 2, 1)
