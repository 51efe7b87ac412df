"""Contact: when this node last heard anybody, and the burst of pings that tells who still answers.

Silence alone means little (a healthy cluster has plenty of it), so it only starts the burst. What
the burst brings back is a fact; what follows from it is not decided here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gossip.events import Contact as ContactEvent
from gossip.peer import Health

if TYPE_CHECKING:
    from gossip.local import Local
    from gossip.roster import Record

QUIET = 0.25
"""Seconds of silence from everybody after which a node that carries addresses asks."""
PINGS = 3
SPACING = 0.04
"""Seconds between the pings of a burst: all of them within 100 ms."""
PATIENCE = 0.2
"""Seconds from the beginning of a burst to its result."""
REST = 0.5
"""Seconds from the beginning of a burst to the next one, while silence lasts."""
EVERYBODY = 16
"""Up to so many members everybody is asked; more are sampled."""
ASKED_MAX = 8


class Burst:
    """One burst under way; `asked` maps each peer to the sequence number it was asked with."""

    __slots__ = ("answered", "asked", "began", "pings", "since")

    def __init__(self, asked: dict[int, Record], now: float, since: float) -> None:
        self.asked = asked
        self.answered: set[str] = set()
        self.began = now
        self.since = since
        self.pings = 0

    @property
    def deadline(self) -> float:
        """When the next pings leave, or the result is due."""
        return self.began + (PATIENCE if self.pings == PINGS else self.pings * SPACING)


class Contact:
    """Owned by one machine."""

    def __init__(self, local: Local) -> None:
        self._local = local
        self._burst: Burst | None = None
        self._rested = -math.inf
        self.carrying = False
        self.last = -math.inf

    @property
    def deadline(self) -> float:
        """When to ask, or to report."""
        if self._burst is not None:
            return self._burst.deadline
        if not self.carrying or len(self._local.roster) < 2:  # noqa: PLR2004 - us and another
            return math.inf
        return max(self.last + QUIET, self._rested)

    def heard(self, now: float) -> None:
        """Anything that makes sense arrived from anybody."""
        self.last = max(self.last, now)

    def carry(self, carrying: bool, now: float) -> None:  # noqa: FBT001 - a state, not a mode
        """Whether silence matters."""
        if carrying and not self.carrying:
            self.last = max(self.last, now)
        self.carrying = carrying

    def postpone(self, seconds: float, now: float) -> None:
        """We slept: that silence was ours."""
        self.last = min(self.last + seconds, now)
        if self._burst is not None:
            self._burst.began += seconds

    def burst(self, now: float) -> None:
        """Ask who is there, unless that was done a moment ago."""
        if self._burst is not None or now < self._rested:
            return
        self._rested = now + REST
        peers = self._peers()
        if not peers:
            return
        asked = {self._local.question(self): peer for peer in peers}
        self._burst = Burst(asked, now, self.last)
        self._ping(self._burst)

    def advance(self, now: float) -> None:
        """Ask again, or report."""
        burst = self._burst
        if burst is None:
            if now >= self.deadline:
                self.burst(now)
        elif now >= burst.began + PATIENCE:
            self._report(burst)
        elif now >= burst.deadline:
            self._ping(burst)

    def acked(self, seq: int, now: float) -> None:
        """One of those who were asked is there."""
        del now
        burst = self._burst
        if burst is None or seq not in burst.asked:
            return
        burst.answered.add(burst.asked[seq].name)
        self._local.asked.pop(seq, None)
        if len(burst.answered) == len(burst.asked):
            self._report(burst)

    def nacked(self, seq: int, now: float) -> None:
        """Nobody is asked to relay a burst."""

    def _peers(self) -> list[Record]:
        """Whoever has not left: the dead count among those who do not answer."""
        roster = self._local.roster
        if len(roster) <= EVERYBODY:
            return [each for each in roster.others() if each.health is not Health.LEFT]
        return roster.sample(ASKED_MAX, lambda each: each.health is not Health.LEFT)

    def _ping(self, burst: Burst) -> None:
        burst.pings += 1
        for seq, peer in burst.asked.items():
            if peer.name not in burst.answered:
                ping = self._local.ping(seq, peer.name)
                self._local.send(peer.address, peer, ping, gossip=False)

    def _report(self, burst: Burst) -> None:
        self._burst = None
        if 2 * len(burst.answered) > len(burst.asked):
            # No silence to speak of; the next alarm may be the real one and must not wait.
            self._rested = burst.began
        for seq in burst.asked:
            self._local.asked.pop(seq, None)
        asked = frozenset(peer.name for peer in burst.asked.values())
        self._local.tell(ContactEvent(frozenset(burst.answered), asked, burst.since))
