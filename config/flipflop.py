"""Two writers who undo each other: a content that returns again and again, and the rest it earns.

An operator who goes back once is no reason for alarm; two tools that both believe to own the file
would otherwise have the daemon change over every few seconds.
"""

from __future__ import annotations

from collections import deque

WINDOW = 600.0
"""Seconds that a change is remembered."""
RETURNS = 3
"""So many returns to a content that was left within the window are a quarrel."""
LONGEST = 60.0
"""Seconds of rest at most."""
REMEMBERED = 64


class FlipFlop:
    """Owned by the reloader; times are any seconds that only grow."""

    def __init__(self) -> None:
        self._taken: deque[tuple[float, str]] = deque(maxlen=REMEMBERED)
        self._returns: deque[float] = deque(maxlen=REMEMBERED)
        self._warned = False

    def taken(self, content: str, now: float) -> bool:
        """Another content was taken up; whether that is the moment to warn, once a quarrel."""
        self._forget(now)
        if self._taken and self._taken[-1][1] == content:
            return False
        if any(earlier == content for _, earlier in self._taken):
            self._returns.append(now)
        self._taken.append((now, content))
        warn = len(self._returns) >= RETURNS and not self._warned
        self._warned = self._warned or warn
        return warn

    def rest(self, shortest: float, now: float) -> float:
        """Seconds between two reloads that nobody asked for: doubled with each further return."""
        self._forget(now)
        extra = len(self._returns) - RETURNS + 1
        if extra <= 0:
            return shortest
        return max(shortest, min(shortest * 2.0**extra, LONGEST))

    def _forget(self, now: float) -> None:
        while self._taken and now - self._taken[0][0] > WINDOW:
            self._taken.popleft()
        while self._returns and now - self._returns[0] > WINDOW:
            self._returns.popleft()
        self._warned = self._warned and bool(self._returns)
