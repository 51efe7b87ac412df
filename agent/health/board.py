"""The verdicts on all checks of this node, and what they come to: reasons to be given nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from agent.health import verdict as verdicts
from agent.health.damping import Policy
from agent.health.verdict import Threshold, Verdict
from config.schema.health import Action

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.health.verdict import Result
    from config.schema.health import CheckEntry, HealthSection

FAILED = "unhealthy"
DAMPED = "damped"
"""First words of a reason; the name of the check follows after a colon."""
REASONS_MAX = 3
"""Names of checks in the metadata of a node at one time: bytes are few there."""

PACE = ("interval", "timeout", "rise", "fall", "action")
"""Options that do not change what a check asks."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One check as people see it; `state` is unknown, passing, failing or damped.

    `since`: loop seconds. `counts`: whether it decides over the node.
    """

    name: str
    kind: str
    state: str
    detail: str
    since: float
    counts: bool


@dataclass(frozen=True, slots=True)
class Fitness:
    """What all checks come to. `awaited`: names of those that nothing is known of yet."""

    reasons: tuple[str, ...] = ()
    awaited: tuple[str, ...] = ()
    checks: tuple[Standing, ...] = ()


class Board:
    """Owned by the runner; times are loop seconds."""

    def __init__(self) -> None:
        self._checks: Mapping[str, CheckEntry] = {}
        self._policy = Policy()
        self._verdicts: dict[str, Verdict] = {}

    def configure(self, section: HealthSection) -> None:
        """Follow the settings: a check that is asked as before keeps all that is known of it."""
        self._policy = Policy(
            half_life=section.damping_half_life,
            suppress=section.damping_suppress,
            reuse=section.damping_reuse,
            longest=section.damping_longest,
        )
        kept: dict[str, Verdict] = {}
        for name, check in section.checks.items():
            before = self._checks.get(name)
            if before is None:
                kept[name] = Verdict()
            elif asked(before) == asked(check):
                kept[name] = self._verdicts[name]
            else:
                kept[name] = verdicts.asked_anew(self._verdicts[name])
        self._checks, self._verdicts = dict(section.checks), kept

    def hear(self, name: str, result: Result, now: float) -> Verdict | None:
        """One more result; the new verdict if it says something else. Strange names are ignored."""
        check, before = self._checks.get(name), self._verdicts.get(name)
        if check is None or before is None:
            return None
        threshold = Threshold(check.rise, check.fall)
        after = verdicts.heard(before, result, threshold, self._policy, now)
        self._verdicts[name] = after
        return after if after.passing is not before.passing else None

    def damped(self, name: str, now: float) -> bool:
        """Whether a check passes and is not believed."""
        return verdicts.damped(self._verdicts[name], self._policy, now)

    def fitness(self, now: float) -> Fitness:
        """Where this node stands."""
        deciding = [name for name in sorted(self._checks) if self._counts(name)]
        failing = [name for name in deciding if self._verdicts[name].passing is False]
        flapping = [name for name in deciding if self.damped(name, now)]
        reasons = [f"{FAILED}:{name}" for name in failing]
        reasons += [f"{DAMPED}:{name}" for name in flapping]
        return Fitness(
            reasons=tuple(reasons[:REASONS_MAX]),
            awaited=tuple(name for name in deciding if self._verdicts[name].passing is None),
            checks=tuple(self._standing(name, now) for name in sorted(self._checks)),
        )

    def changes_at(self, now: float) -> float:
        """When time alone changes the fitness; infinity if it does not."""
        found = (verdicts.changes_at(each, self._policy, now) for each in self._verdicts.values())
        return min(found, default=inf)

    def _counts(self, name: str) -> bool:
        return self._checks[name].action is Action.INELIGIBLE

    def _standing(self, name: str, now: float) -> Standing:
        check, verdict = self._checks[name], self._verdicts[name]
        words = {None: "unknown", True: "passing", False: "failing"}
        state = DAMPED if self.damped(name, now) else words[verdict.passing]
        kind, counts = check.type.value, self._counts(name)
        return Standing(name, kind, state, verdict.detail, verdict.since, counts)


def asked(check: CheckEntry) -> CheckEntry:
    """The check without its pace: equal for two that ask the same."""
    fields = type(check).model_fields
    return check.model_copy(update={name: fields[name].default for name in PACE})


def largest(section: HealthSection) -> tuple[str, ...]:
    """The longest reasons that these checks can ever give, to keep room for them."""
    longer = max(FAILED, DAMPED, key=len)
    found = [f"{longer}:{name}" for name, each in section.checks.items() if _decides(each)]
    return tuple(sorted(found, key=len, reverse=True)[:REASONS_MAX])


def _decides(check: CheckEntry) -> bool:
    return check.action is Action.INELIGIBLE


def quiet(fitness: Fitness) -> Fitness:
    """The same without what may differ from one round to the next."""
    checks = tuple(replace(each, detail="") for each in fitness.checks)
    return replace(fitness, checks=checks)
