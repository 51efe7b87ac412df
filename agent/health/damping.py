"""Flap damping: a penalty for each failure, forgotten by halves (after RFC 2439).

Something that keeps failing and recovering is not believed once its penalty passes `suppress`,
and believed again when it has decayed to `reuse`. The penalty has a ceiling, so that a bad hour
costs no more than `longest`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp2, inf, log2

EACH = 1.0
"""The penalty of one failure, the unit of `suppress` and `reuse`."""


@dataclass(frozen=True, slots=True)
class Policy:
    """`half_life` and `longest` in seconds; `reuse` is below `suppress`."""

    half_life: float = 60.0
    suppress: float = 3.0
    reuse: float = 1.0
    longest: float = 300.0

    @property
    def ceiling(self) -> float:
        """The most that the penalty may be: it decays to `reuse` in `longest` (RFC 2439, 4.2)."""
        # Beyond 2^60 nothing is a number of failures; it would only overflow.
        most = self.reuse * exp2(min(self.longest / self.half_life, 60.0))
        return max(most, self.suppress)


@dataclass(frozen=True, slots=True)
class Penalty:
    """What stood at `at` (loop seconds)."""

    level: float = 0.0
    at: float = 0.0
    suppressed: bool = False


CLEAN = Penalty()


def level(penalty: Penalty, policy: Policy, now: float) -> float:
    """What is left of the penalty."""
    return penalty.level * exp2(-max(now - penalty.at, 0.0) / policy.half_life)


def failed(penalty: Penalty, policy: Policy, now: float) -> Penalty:
    """One more failure."""
    held = suppressed(penalty, policy, now)
    raised = min(level(penalty, policy, now) + EACH, policy.ceiling)
    return Penalty(raised, now, held or raised > policy.suppress)


def suppressed(penalty: Penalty, policy: Policy, now: float) -> bool:
    """Whether it is not believed now."""
    return penalty.suppressed and level(penalty, policy, now) > policy.reuse


def reuse_at(penalty: Penalty, policy: Policy) -> float:
    """When it is believed again if nothing fails until then; infinity if it is believed now."""
    if not penalty.suppressed or penalty.level <= policy.reuse:
        return inf
    return penalty.at + policy.half_life * log2(penalty.level / policy.reuse)
