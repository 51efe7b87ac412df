"""The suspicion clock: long at first, shorter with every independent accuser (Lifeguard)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gossip.tuning import SuspicionBounds


class Suspicion:
    """One suspicion that runs; at `deadline` (loop seconds) the suspect is dead.

    `extra` seconds are added throughout: a member that announced its restart is waited for.
    """

    __slots__ = ("_accusers", "_bounds", "_extra", "_started", "deadline")

    def __init__(
        self, accuser: str, bounds: SuspicionBounds, now: float, *, extra: float = 0.0
    ) -> None:
        self._accusers = [accuser]
        self._bounds = bounds
        self._started = now
        self._extra = extra
        self.deadline = now + extra + length(bounds, 0)

    @property
    def confirmations(self) -> int:
        """Accusers that count: the first one does not."""
        return len(self._accusers) - 1

    def confirm(self, accuser: str) -> bool:
        """Count another accuser; false when it said so before or enough have."""
        if self.confirmations >= self._bounds.wanted or accuser in self._accusers:
            return False
        self._accusers.append(accuser)
        self._settle()
        return True

    def postpone(self, seconds: float) -> None:
        """Leave out time in which we could not have heard a refutation."""
        self._started += seconds
        self._settle()

    def _settle(self) -> None:
        self.deadline = self._started + self._extra + length(self._bounds, self.confirmations)


def length(bounds: SuspicionBounds, confirmations: int) -> float:
    """Seconds from the start to the death, given so many confirmations."""
    if bounds.wanted < 1:
        return bounds.least
    share = math.log(confirmations + 1) / math.log(bounds.wanted + 1)
    seconds = bounds.most - (bounds.most - bounds.least) * share
    return max(bounds.least, math.floor(seconds * 1000) / 1000)
