"""One consistent view for everybody who asks: what the controller knew after its last turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from egress.decision import Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent.facts import Facts
    from agent.world import World
    from egress.claims import Claims
    from egress.decision import Condition, Phase
    from egress.model import IP, Assignment, Candidate, Egress
    from egress.placement import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """`now` is loop time, `wall` Unix time of the same moment; both tell ages apart.

    `assignments` are keyed by egress name, `phases`, `conditions` and `places` by address.
    `carried`: addresses that this node holds now.
    """

    world: World
    own: Facts
    now: float
    wall: float
    egresses: tuple[Egress, ...]
    candidates: Mapping[str, Candidate]
    assignments: Mapping[str, Assignment]
    claims: Claims
    phases: Mapping[IP, Phase] = field(default_factory=dict)
    conditions: Mapping[IP, Condition] = field(default_factory=dict)
    places: Mapping[IP, Placement] = field(default_factory=dict)
    carried: frozenset[IP] = frozenset()
    score: int = 0
    fenced: bool = False
    unready: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Nothing is carried, and nothing is on its way in or out."""
        moving = {Stage.BOUND, Stage.BINDING, Stage.RELEASING}
        return not self.carried and not any(phase.stage in moving for phase in self.phases.values())

    def awaited(self, ips: Iterable[IP]) -> list[IP]:
        """Those that the one who is to have them has not claimed yet."""
        heirs = {ip: self.assignments.get(each.name) for each in self.egresses for ip in each.ips}
        return [
            ip
            for ip in ips
            if not self._with_another(ip)
            and (heir := heirs.get(ip)) is not None
            and heir.owner not in {None, self.world.me}
        ]

    def orphaned(self, ips: Iterable[IP]) -> list[IP]:
        """Those that nobody has, here or elsewhere."""
        return [ip for ip in ips if ip not in self.carried and not self._with_another(ip)]

    def _with_another(self, ip: IP) -> bool:
        top = self.claims.top(ip)
        return top is not None and top.held and top.owner != self.world.me

    @property
    def inherited(self) -> bool:
        """Another living member claims every address, or nobody is left who could."""
        if not any(self._able(name) for name in self.candidates):
            return True
        tops = [self.claims.top(ip) for egress in self.egresses for ip in egress.ips]
        return all(top is None or (top.held and top.owner != self.world.me) for top in tops)

    def _able(self, name: str) -> bool:
        candidate = self.candidates[name]
        fit = candidate.present and not candidate.reasons and not candidate.unreachable
        return fit and name != self.world.me
