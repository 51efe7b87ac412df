"""Who carries which egress: sticky claims first, then weighted rendezvous under a load bound.

A pure function of objects, candidates and claims: same input, same answer on every node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from egress import eligibility
from egress.contest import Rules
from egress.scores import score
from egress.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from egress.claims import Claims
    from egress.model import Assignment, Candidate, Egress

__all__ = ["Election", "Entry", "Rules", "elect", "ranking", "score"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate in the ranking of an egress: its score, or why it is refused."""

    name: str
    score: float
    refusal: str | None


def ranking(egress: Egress, candidates: Mapping[str, Candidate], rules: Rules) -> list[Entry]:
    """All candidates, the best first; refused ones last, with the reason."""
    entries = [
        Entry(
            name,
            score(egress.ips[0], name, rules.seed, each.weight),
            eligibility.refusal(each, egress),
        )
        for name, each in sorted(candidates.items(), reverse=True)
    ]
    return sorted(entries, key=lambda entry: (entry.refusal is not None, -entry.score))


def elect(
    egresses: Sequence[Egress],
    candidates: Mapping[str, Candidate],
    claims: Claims,
    rules: Rules,
    now: float,
) -> Mapping[str, Assignment]:
    """The assignment of every egress, by name."""
    return Election().update(egresses, candidates, claims, rules, now)


class Election:
    """`elect` for somebody who asks often: works on what changed alone; same answers."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._whole = True

    def update(
        self,
        egresses: Sequence[Egress],
        candidates: Mapping[str, Candidate],
        claims: Claims,
        rules: Rules,
        now: float,
    ) -> Mapping[str, Assignment]:
        """As `elect`; the same object as the last time when the answer is the same."""
        for _ in self.steps(egresses, candidates, claims, rules, now):
            pass
        return self.result

    def steps(
        self,
        egresses: Sequence[Egress],
        candidates: Mapping[str, Candidate],
        claims: Claims,
        rules: Rules,
        now: float,
    ) -> Iterator[None]:
        """As `update` in slices of some milliseconds each, `result` when it has run out.

        Nothing that was given may change meanwhile. If it is dropped before its end, the next
        one begins from nothing.
        """
        if not self._whole:
            self._tally = Tally()
        self._whole = False
        yield from self._tally.count(egresses, candidates, claims, rules, now)
        self._whole = True

    @property
    def result(self) -> Mapping[str, Assignment]:
        """The last answer."""
        return self._tally.result

    @property
    def again(self) -> float:
        """When the passage of time alone may change the answer."""
        return self._tally.again
