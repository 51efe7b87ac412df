"""What a network does to what is sent over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

CONNECT_AGAIN = 1.0
"""Seconds until a lost SYN is sent again, doubled each time (RFC 6298, 2.1; Linux)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Shares are between 0 and 1, times are seconds.

    `loss` is the share of datagrams that vanish, `delay` the range of a way from one host to
    another (half a round trip), `duplicate` the share that arrives twice, `reorder` the share
    that is held back by up to `held`, so that later ones overtake it.
    """

    loss: float = 0.0
    delay: tuple[float, float] = (0.0002, 0.001)
    duplicate: float = 0.0
    reorder: float = 0.0
    held: float = 0.05

    def transit(self, random: Random) -> float:
        """Seconds for one way."""
        return random.uniform(*self.delay)

    def arrivals(self, random: Random, loss: float) -> tuple[float, ...]:
        """After how long a datagram arrives: not at all, once or twice."""
        if random.random() < loss:
            return ()
        delay = self.transit(random)
        if self.reorder and random.random() < self.reorder:
            delay += random.uniform(0.0, self.held)
        if self.duplicate and random.random() < self.duplicate:
            return (delay, delay + self.transit(random))
        return (delay,)

    def stream_delay(self, random: Random, loss: float, timeout: float) -> float:
        """Seconds until what is written to a TCP stream is there; `timeout` if it never is."""
        delay, again = self.transit(random), CONNECT_AGAIN
        while loss and delay < timeout and random.random() < loss:
            delay, again = delay + again, again * 2
        return min(delay, timeout)


def combined(*losses: float) -> float:
    """The share that vanishes where each of these is lost independently of the others."""
    kept = 1.0
    for each in losses:
        kept *= 1.0 - each
    return 1.0 - kept
