"""Whether this node has lost its cluster, from what bursts of pings brought back.

Gossip reports facts (who answered); the rule is `egress.partition`. While fenced, a burst is
asked for again and again, so that the first sign of a majority lifts the fence.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from agent import wiring
from egress import partition
from egress.partition import Sight

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.inputs import ContactReported
    from agent.world import World

AGAIN = 0.5
"""Seconds between two bursts while fenced."""

log = structlog.get_logger("wayout.egress")


class Isolation:
    """Owned by the controller. `burst` asks gossip for pings; `knock` asks for the gateway."""

    def __init__(self, burst: Callable[[float], None], knock: Callable[[], None]) -> None:
        self._burst = burst
        self._knock = knock
        self._sight: Sight | None = None
        self._gateway: bool | None = None
        self._next_burst = 0.0
        self._fenced = False

    def contact(self, report: ContactReported, world: World, now: float) -> None:
        """A burst came to an end."""
        expected = expected_members(world)
        others = max(expected - 1, 1)
        everybody = len(report.asked) >= others
        # A burst that asked everybody counts heads; a sample of a large cluster is scaled up.
        share = len(report.answered) / max(len(report.asked), 1)
        heard = len(report.answered) if everybody else round(share * others)
        side = report.answered | {world.me}
        lowest = min(side | world.remembered) in side if everybody else None
        self._sight = Sight(1 + heard, expected, self._gateway, lowest)
        if 2 * self._sight.seen == expected:
            self._knock()
        self._judge(world, now)

    def gateway(self, answers: bool | None, world: World, now: float) -> None:  # noqa: FBT001 - a fact
        """The gateway answered or did not; None when there is none."""
        self._gateway = answers
        if self._sight is not None:
            self._sight = replace(self._sight, gateway=answers)
            self._judge(world, now)

    def fenced(self, now: float) -> bool:
        """Whether nothing may be carried now; keeps asking for contact while that is so."""
        if self._fenced and now >= self._next_burst:
            self._next_burst = now + AGAIN
            self._burst(now)
        return self._fenced

    def _judge(self, world: World, now: float) -> None:
        assert self._sight is not None
        was = self._fenced
        self._fenced = partition.fenced(wiring.policy(world.settings), self._sight)
        if self._fenced and not was:
            self._next_burst = now + AGAIN
            log.warning("egress.isolated", seen=self._sight.seen, expected=self._sight.expected)
        elif was and not self._fenced:
            log.info("egress.contact_regained", seen=self._sight.seen)


def expected_members(world: World) -> int:
    """The configured number, the literal seeds, or the members seen and not known to have left."""
    literal = len(wiring.literal_seeds(world.settings))
    seen = 1 + len(world.remembered)
    return partition.expected_members(world.settings.gossip.expected_nodes, literal, seen)
