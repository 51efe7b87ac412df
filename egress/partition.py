"""When a node that has lost its peers must let go, and how long a taker waits for that.

Fence before decision: a node on the small side of a partition gives up what it carries by
0.5 s of silence, and nobody binds an address of a lost member sooner than 0.5 s after its last
sign of life (0.8 s when two or more vanished at once, for then the others may be the larger
side). Even splits in which both sides reach a gateway but not each other cannot be decided from
inside; the wire check is what is left there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FENCE_BY = 0.5
"""Seconds of silence after which an isolated owner has let go at the latest."""
MASS_LOSS_WAIT = 0.8
"""Seconds that takers wait when two or more members vanished at once."""
TOGETHER = 1.0
"""Members lost within this many seconds vanished at once."""


class Policy(Enum):
    """What a node does that sees less than half of the expected members."""

    MAJORITY = "majority"
    KEEP = "keep"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Sight:
    """What a node sees of its cluster: itself included in `seen`, `expected` at least one.

    `gateway`: whether it answers; None when there is none to ask. `lowest`: this side has the
    lowest name of all expected members; None when that cannot be told.
    """

    seen: int
    expected: int
    gateway: bool | None
    lowest: bool | None = None


def fenced(policy: Policy, sight: Sight) -> bool:
    """Whether this node must carry nothing now."""
    if policy is Policy.KEEP or sight.expected <= 1:
        return False
    if policy is Policy.RELEASE:
        return sight.seen <= 1
    if 2 * sight.seen != sight.expected:
        return 2 * sight.seen < sight.expected
    if sight.gateway is not None:
        return not sight.gateway
    # Two nodes without a gateway: the survivor takes over, and the promise says so.
    return sight.expected > 2 and sight.lowest is False  # noqa: PLR2004 - two nodes


def expected_members(configured: int | None, seeds: int, seen: int) -> int:
    """How many members there ought to be: the largest of what anybody says."""
    return max(configured or 0, seeds, seen, 1)


def not_before(lost: Mapping[str, float]) -> dict[str, float]:
    """The loop time before which nobody may bind what each lost member carried.

    `lost` maps a name to the loop time at which the member was last heard.
    """
    return {
        name: heard + (MASS_LOSS_WAIT if _company(heard, lost.values()) else FENCE_BY)
        for name, heard in lost.items()
    }


def _company(heard: float, times: Iterable[float]) -> bool:
    return sum(abs(other - heard) <= TOGETHER for other in times) >= 2  # noqa: PLR2004 - a pair
