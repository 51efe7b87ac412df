"""What a row of results amounts to: rise and fall, and the damping of those that flap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from agent.health import damping
from agent.health.damping import CLEAN, Penalty, Policy


@dataclass(frozen=True, slots=True)
class Result:
    """One round of a check; `detail` says in a few words what was found."""

    passed: bool
    detail: str = ""


def passed(detail: str = "") -> Result:
    """A round that passed."""
    return Result(passed=True, detail=detail)


def failed(detail: str) -> Result:
    """A round that did not."""
    return Result(passed=False, detail=detail)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Results in a row that change a verdict."""

    rise: int = 2
    fall: int = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is thought of a check: `passing` is None until the first result, which decides alone.

    `streak`: results in a row that speak against the verdict. `since`: when the verdict changed.
    `fresh`: what is asked changed, so that the next result decides as a first one does.
    """

    passing: bool | None = None
    streak: int = 0
    since: float = 0.0
    detail: str = ""
    fresh: bool = True
    penalty: Penalty = CLEAN


def heard(
    verdict: Verdict, result: Result, threshold: Threshold, policy: Policy, now: float
) -> Verdict:
    """The verdict after one more result."""
    if result.passed == verdict.passing:
        return replace(verdict, streak=0, detail=result.detail, fresh=False)
    streak = verdict.streak + 1
    needed = threshold.rise if result.passed else threshold.fall
    if streak < needed and not verdict.fresh:
        return replace(verdict, streak=streak)
    penalty = verdict.penalty
    if verdict.passing is True:
        penalty = damping.failed(penalty, policy, now)
    return Verdict(result.passed, 0, now, result.detail, fresh=False, penalty=penalty)


def asked_anew(verdict: Verdict) -> Verdict:
    """The check asks something else now: what is known stands until the next result."""
    return replace(verdict, streak=0, fresh=True)


def damped(verdict: Verdict, policy: Policy, now: float) -> bool:
    """Whether it passes and is not believed."""
    return verdict.passing is True and damping.suppressed(verdict.penalty, policy, now)


def fit(verdict: Verdict, policy: Policy, now: float) -> bool:
    """Whether it stands in nobody's way; so does one that has not been asked yet."""
    return verdict.passing is not False and not damped(verdict, policy, now)


def changes_at(verdict: Verdict, policy: Policy, now: float) -> float:
    """When the passage of time alone makes it fit; infinity if it never does."""
    if not damped(verdict, policy, now):
        return inf
    return damping.reuse_at(verdict.penalty, policy)
