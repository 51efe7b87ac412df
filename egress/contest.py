"""One egress in the election, and one candidate: what is known of each, as numbers.

Candidates have seats, numbered as they came; the numbers mean nothing to other nodes, so nothing
may be decided by them. A contest knows the score of every seat and which seats may have it, best
first.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from egress.eligibility import awaited, stands, unwell

if TYPE_CHECKING:
    from egress.model import Assignment, Candidate, Egress

NOBODY = -1
"""The seat of nobody."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the election goes by; `failback_delay` in seconds of health."""

    seed: str = ""
    load_factor: float = 1.1
    failback_delay: float = 30.0


@dataclass(eq=False, slots=True)
class Seat:
    """A candidate. `stands`: it may have something at all. `well`: it may be given something now.

    `awaited`: it is well, or will be once it has started. `selected` tells by selector number
    whether its labels meet it, `reach` is the number of its set of networks.
    """

    number: int
    name: str
    encoded: bytes
    candidate: Candidate
    stands: bool = False
    well: bool = False
    awaited: bool = False
    selected: list[bool] = field(default_factory=list)
    reach: int = 0

    def take(self, candidate: Candidate) -> None:
        """The same member, as it is now."""
        self.candidate = candidate
        self.stands = stands(candidate)
        self.well = unwell(candidate) is None
        self.awaited = awaited(candidate)


@dataclass(eq=False, slots=True)
class Contest:
    """An egress. `ranks`: seats that may have it, the best first.

    `costs` go with them: scores with the sign turned, so that they ascend. Both are arrays, which
    the garbage collector need not look into: there is an entry for each pair.

    `home`: where it would live if everybody were well. `incumbent`, `wish` and `bar`: its tenure.
    `claimants`: all who claim it. `owner` and `rule`: where it goes, if not sticky. `finding`
    and `assignment`: what was said of it last. `asked`: seats that it has proposed to.
    """

    egress: Egress
    priority: int
    prefix: bytes
    numbers: tuple[tuple[int, int], ...]
    selector: int = 0
    index: int = 0
    reached: list[bool] = field(default_factory=list)
    ranks: array[int] = field(default_factory=lambda: array("H"))
    costs: array[float] = field(default_factory=lambda: array("d"))
    claimants: tuple[str, ...] = ()
    home: int = NOBODY
    incumbent: int = NOBODY
    wish: int = NOBODY
    bar: str | None = None
    owner: int = NOBODY
    rule: str = "none"
    finding: tuple[str | None, str | None, str, str | None] | None = None
    assignment: Assignment | None = None
    asked: int = 0

    def fits(self, seat: int) -> bool:
        """Whether it may live there at all."""
        return seat in self.ranks

    def merit(self, seat: int) -> tuple[int, float, int]:
        """How much a full node wants it: by priority, then score, then name."""
        score = -self.costs[self.ranks.index(seat)] if seat in self.ranks else 0.0
        return self.priority, score, self.index

    def prefers(self, seat: int, other: int) -> bool:
        """Whether the first seat suits it better than the other one."""
        return seat in self.ranks and self.merit(seat) > self.merit(other)

    def strike(self, seat: int) -> None:
        """That seat is no longer for it."""
        if seat in self.ranks:
            at = self.ranks.index(seat)
            del self.ranks[at], self.costs[at]
