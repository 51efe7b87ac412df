"""What follows from the picture: who should carry what, and what the moves get to see.

Made anew only when its sources are; an idle node must not recompute the same answer for ever.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agent import wiring, world
from egress.decision import View
from egress.election import Election
from egress.partition import not_before

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent.facts import Facts
    from agent.world import World
    from config.schema.settings import Settings
    from egress.claims import Claims
    from egress.election import Rules
    from egress.model import IP, Assignment, Candidate, Egress, Observed
    from egress.placement import Placement

SETTLING = 10.0
"""Seconds that a fail-back that fell due may take, when nodes are busy or an heir is restarting."""
LEAVING = {"draining", "maintenance", "stopping"}


@dataclass(frozen=True, slots=True)
class Stance:
    """Where this node stands beside the picture.

    `mute`: restarting members whose hosts nobody hears any more. `gateways`: by interface.
    """

    fenced: bool = False
    damped: bool = False
    unready: tuple[str, ...] = ()
    mute: frozenset[str] = frozenset()
    gateways: Mapping[str, Sequence[IP]] = field(default_factory=dict)


class Outlook:
    """Owned by the controller; `view` and `own` are the last that were made."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._election = Election()
        self._foresight = Election()
        self._sources: tuple[World, Stance, int] | None = None
        self._made: tuple[Settings, Observed] | None = None
        self._egresses: tuple[Egress, ...] = ()
        self._places: Mapping[IP, Placement] = {}
        self.view: View | None = None
        self.own: Facts | None = None
        self._well_since: float | None = None

    @property
    def again(self) -> float:
        """When the passage of time alone may change the answer."""
        return self._election.again

    def holds(self, at: World, stance: Stance, now: float) -> bool:
        """Whether the last view still says everything."""
        if self._sources is None or now >= self.again:
            return False
        before, where, version = self._sources
        return before is at and where == stance and version == self._claims.version

    async def look(self, at: World, stance: Stance, now: float) -> tuple[View, Facts]:
        """View and own facts; the same view object as before when nothing in it differs."""
        reasons = wiring.own_reasons(
            at, fenced=stance.fenced, damped=stance.damped, unready=stance.unready
        )
        own = wiring.own_facts(at, reasons)
        wanted, placed = self._wanted(at, now)
        candidates = _muted(world.candidates(at, own, self._well(own, now)), stance.mute)
        rules = wiring.rules(at.settings)
        assignments = await self._elected(self._election, wanted, candidates, rules, now)
        view = View(
            egresses=wanted,
            assignments=assignments,
            claims=self._claims,
            candidates=candidates,
            places=placed,
            observed=at.observed,
            controls=wiring.controls(at, stance.gateways, world.peer_addresses(at)),
            ready=not stance.unready,
            fenced=stance.fenced,
            draining=bool(LEAVING & set(reasons)),
            silent=at.silent,
            ahead=await self._ahead(wanted, _feared(candidates, at.silent), rules, now),
            lost=at.lost,
            takeover_not_before=not_before(at.lost),
        )
        if self.view is None or view != self.view:
            self.view = view
        self.own = own
        self._sources = (at, stance, self._claims.version)
        return self.view, own

    def _well(self, own: Facts, now: float) -> float:
        """Since when this node is well, as the others see it: they hear of it about now."""
        if own.reasons:
            self._well_since = None
        elif self._well_since is None:
            self._well_since = now
        return now if self._well_since is None else self._well_since

    async def _ahead(
        self,
        wanted: tuple[Egress, ...],
        feared: dict[str, Candidate] | None,
        rules: Rules,
        now: float,
    ) -> Mapping[str, Assignment]:
        """The answer if those whom somebody misses were lost: whose turn it is to ask the wire."""
        if feared is None:
            return {}
        return await self._elected(self._foresight, wanted, feared, rules, now)

    async def _elected(
        self,
        election: Election,
        wanted: tuple[Egress, ...],
        candidates: dict[str, Candidate],
        rules: Rules,
        now: float,
    ) -> Mapping[str, Assignment]:
        for _ in election.steps(wanted, candidates, self._claims, rules, now):
            # A large cluster takes many slices; a small one is done within the first.
            await asyncio.sleep(0)
        return election.result

    def _wanted(self, at: World, now: float) -> tuple[tuple[Egress, ...], Mapping[IP, Placement]]:
        made = self._made
        if made is None or made[0] is not at.settings:
            self._egresses = wiring.egresses(at.settings)
            wanted = frozenset(ip for each in self._egresses for ip in each.ips)
            settled = now - at.settings.egress.failback_delay - SETTLING
            self._claims.want(wanted, now, settled=settled)
        if made is None or made[0] is not at.settings or made[1] is not at.observed:
            scope = wiring.scope(at.settings)
            self._places = wiring.places(self._egresses, at.observed, scope)
        self._made = (at.settings, at.observed)
        return self._egresses, self._places


def _muted(candidates: dict[str, Candidate], mute: frozenset[str]) -> dict[str, Candidate]:
    """A host that fell silent while its daemon restarts is as good as dead: nobody waits for it."""
    lost = {
        name: replace(candidates[name], unreachable=True, restarting=False)
        for name in mute
        if name in candidates
    }
    return {**candidates, **lost}


def _feared(
    candidates: dict[str, Candidate], silent: frozenset[str]
) -> dict[str, Candidate] | None:
    """The candidates without those that are silent or restarting; None when all is well."""
    names = [name for name, each in candidates.items() if name in silent or each.restarting]
    return _muted(candidates, frozenset(names)) if names else None
