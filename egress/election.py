"""Who carries which egress: sticky claims first, then weighted rendezvous under a load bound.

A pure function of objects, candidates and claims: same input, same answer on every node. The
bound is kept by deferred acceptance (Gale and Shapley, 1962): each egress proposes down its own
list of scores and a full node keeps the highest, which has one stable outcome and does not depend
on order.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappush, heappushpop
from math import ceil
from typing import TYPE_CHECKING

from egress import eligibility
from egress.model import Assignment, Failback
from egress.scores import score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from egress.claims import Claims
    from egress.model import Candidate, Egress

__all__ = ["Rules", "elect", "ranking", "score"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What the election goes by; `failback_delay` in seconds of health."""

    seed: str = ""
    load_factor: float = 1.1
    failback_delay: float = 30.0


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
        for name, each in candidates.items()
    ]
    return sorted(entries, key=lambda entry: (entry.refusal is not None, -entry.score, entry.name))


def elect(
    egresses: Sequence[Egress],
    candidates: Mapping[str, Candidate],
    claims: Claims,
    rules: Rules,
    now: float,
) -> dict[str, Assignment]:
    """The assignment of every egress, by name."""
    return _Round(egresses, candidates, claims, rules, now).result()


class Election:
    """`elect` that is run again only when its answer may differ; owned by the controller."""

    def __init__(self) -> None:
        self._inputs: object = None
        self._again = 0.0
        self._result: dict[str, Assignment] = {}

    def update(
        self,
        egresses: Sequence[Egress],
        candidates: Mapping[str, Candidate],
        claims: Claims,
        rules: Rules,
        now: float,
    ) -> Mapping[str, Assignment]:
        """As `elect`; the same object as the last time when nothing changed."""
        inputs = (tuple(egresses), dict(candidates), claims.version, rules)
        if inputs == self._inputs and now < self._again:
            return self._result
        self._inputs = inputs
        result = elect(egresses, candidates, claims, rules, now)
        if result != self._result:
            self._result = result
        ripe = [each.healthy_since + rules.failback_delay for each in candidates.values()]
        self._again = min((at for at in ripe if at > now), default=float("inf"))
        return self._result

    @property
    def again(self) -> float:
        """When the passage of time alone may change the answer."""
        return self._again


class _Round:
    """One election: rankings once, then who keeps, then who gets what is left."""

    def __init__(
        self,
        egresses: Sequence[Egress],
        candidates: Mapping[str, Candidate],
        claims: Claims,
        rules: Rules,
        now: float,
    ) -> None:
        self._egresses = sorted(egresses, key=lambda each: (-each.priority, each.name))
        self._candidates = {name: candidates[name] for name in sorted(candidates)}
        self._claims = claims
        self._rules = rules
        self._now = now
        self._lists = {
            each.name: [
                entry
                for entry in ranking(each, self._candidates, rules)
                if entry.refusal is None and entry.score > 0
            ]
            for each in self._egresses
        }
        self._taken = {address for each in self._candidates.values() for address in each.addresses}

    def result(self) -> dict[str, Assignment]:
        keepers = self._keepers()
        kept: dict[str, str] = {}
        for each in self._egresses:
            keeper = keepers.get(each.name)
            if keeper is not None and self._room(keeper, kept):
                kept[each.name] = keeper
        free = [each for each in self._egresses if each.name not in kept and self._may(each)]
        won = self._pinned(free, kept)
        won |= self._match([each for each in free if each.name not in won], kept | won)
        # The bound balances, it does not refuse: what it leaves over goes wherever there is room.
        left = [each for each in free if each.name not in won]
        if left:
            won |= self._match(left, kept | won, soft=False)
        return {each.name: self._assignment(each, kept, won) for each in self._egresses}

    def _assignment(
        self, egress: Egress, kept: Mapping[str, str], won: Mapping[str, str]
    ) -> Assignment:
        owner = kept.get(egress.name) or won.get(egress.name)
        standby = next((e.name for e in self._lists[egress.name] if e.name != owner), None)
        if owner is None:
            return Assignment(None, None, "none", self._why_nobody(egress))
        if egress.name in kept:
            return Assignment(owner, standby, "sticky")
        moved = self._incumbent(egress) is not None
        rule = "pinned" if owner == egress.pin else "failback" if moved else "score"
        return Assignment(owner, standby, rule)

    def _why_nobody(self, egress: Egress) -> str:
        if any(ip in self._taken for ip in egress.ips):
            return eligibility.OWN_ADDRESS
        if not egress.failover and not self._may(egress):
            return "failover_none"
        return "no_capacity" if self._lists[egress.name] else "no_eligible_node"

    # -- who keeps -------------------------------------------------------------------------

    def _keepers(self) -> dict[str, str]:
        """Incumbents that keep what they have, by egress."""
        found = {
            each.name: incumbent
            for each in self._egresses
            if (incumbent := self._incumbent(each)) is not None and not self._conflicted(each)
        }
        loads = dict.fromkeys(self._candidates, 0)
        for holder in found.values():
            loads[holder] += 1
        movable = [
            each
            for each in self._egresses
            if each.name in found
            and each.failover
            and each.failback is not Failback.NEVER
            # An heir that has not bound yet was elected a moment ago, by the one who had it.
            and any(self._claims.holder(ip) is not None for ip in each.ips)
        ]
        ideal = self._pinned(movable, {})
        ideal |= self._match(
            [each for each in movable if each.name not in ideal], ideal, settled=True
        )
        for each in movable:
            better, holder = ideal.get(each.name), found[each.name]
            if better in {None, holder} or not self._returns(each, better, holder, loads):
                continue
            loads[better] += 1
            loads[holder] -= 1
            del found[each.name]
        return found

    def _returns(self, egress: Egress, better: str, holder: str, loads: Mapping[str, int]) -> bool:
        """Whether `egress` goes back from `holder` to the node that scores higher.

        Only to one that carries nothing, or if it evens out the load: the bound also widens when
        a member dies, and that alone is no reason to move anything.
        """
        if egress.failback is Failback.DELAYED and not self._settled(better):
            return False
        if better == egress.pin or loads[better] == 0:
            return True
        to, at = self._candidates[better], self._candidates[holder]
        return (loads[better] + 1) * at.weight < loads[holder] * to.weight

    def _incumbent(self, egress: Egress) -> str | None:
        """The living holder, or heir, of the top claim on the first address that has one."""
        for ip in egress.ips:
            top = self._claims.top(ip)
            name = None if top is None else top.owner if top.held else top.to
            candidate = self._candidates.get(name) if name is not None else None
            if candidate is not None and self._keeps(candidate, egress):
                return candidate.name
        return None

    def _keeps(self, candidate: Candidate, egress: Egress) -> bool:
        if not candidate.present or candidate.left:
            return False
        if candidate.restarting:
            return True
        return not candidate.unreachable and eligibility.unfit(candidate, egress) is None

    def _settled(self, name: str) -> bool:
        return self._now - self._candidates[name].healthy_since >= self._rules.failback_delay

    # -- who gets the rest -----------------------------------------------------------------

    def _pinned(self, egresses: Sequence[Egress], kept: Mapping[str, str]) -> dict[str, str]:
        """Those whose pinned node can take them; a pin goes before the bound, not the capacity."""
        won: dict[str, str] = {}
        for each in egresses:
            fit = any(entry.name == each.pin for entry in self._lists[each.name])
            if each.pin is not None and fit and self._room(each.pin, {**kept, **won}):
                won[each.name] = each.pin
        return won

    def _may(self, egress: Egress) -> bool:
        """Without failover an address stays with its first owner, and is nobody's after that."""
        if self._conflicted(egress):
            return False
        if egress.failover:
            return True
        tops = [self._claims.top(ip) for ip in egress.ips]
        return all(top is None or not top.held for top in tops)

    def _conflicted(self, egress: Egress) -> bool:
        return any(ip in self._taken for ip in egress.ips)

    def _room(self, name: str, kept: Mapping[str, str]) -> bool:
        capacity = self._candidates[name].capacity
        return capacity is None or sum(owner == name for owner in kept.values()) < capacity

    def _match(
        self,
        egresses: Sequence[Egress],
        kept: Mapping[str, str],
        *,
        settled: bool = False,
        soft: bool = True,
    ) -> dict[str, str]:
        """Deferred acceptance among those with room; kept ones count against it."""
        bounds = self._bounds(len(egresses) + len(kept), kept, soft=soft)
        held: dict[str, list[tuple[int, float, str]]] = {name: [] for name in self._candidates}
        lists = {
            each.name: [
                entry
                for entry in self._lists[each.name]
                if not settled or self._settled(entry.name)
            ]
            for each in egresses
        }
        position = dict.fromkeys(lists, 0)
        priority = {each.name: each.priority for each in egresses}
        waiting = [each.name for each in reversed(egresses)]
        while waiting:
            name = waiting.pop()
            while position[name] < len(lists[name]):
                entry = lists[name][position[name]]
                position[name] += 1
                rejected = _offer(held[entry.name], bounds[entry.name], name, entry, priority)
                if rejected != name:
                    if rejected is not None:
                        waiting.append(rejected)
                    break
        return {name: owner for owner, rows in held.items() for _, _, name in rows}

    def _bounds(self, total: int, kept: Mapping[str, str], *, soft: bool) -> dict[str, int]:
        able = {
            name: each
            for name, each in self._candidates.items()
            if each.present and not each.left and not each.reasons
        }
        weight = sum(each.weight for each in able.values())
        bounds = {}
        for name, each in self._candidates.items():
            share = each.weight / weight if weight and name in able else 0.0
            bound = ceil(self._rules.load_factor * total * share) if soft else total
            if each.capacity is not None:
                bound = min(bound, each.capacity)
            bounds[name] = max(bound - sum(owner == name for owner in kept.values()), 0)
        return bounds


def _offer(
    rows: list[tuple[int, float, str]],
    bound: int,
    name: str,
    entry: Entry,
    priority: Mapping[str, int],
) -> str | None:
    """Propose `name` to a node that holds `rows`; the egress that is turned away, if one is."""
    row = (priority[name], entry.score, name)
    if len(rows) < bound:
        heappush(rows, row)
        return None
    if bound == 0:
        return name
    return heappushpop(rows, row)[2]
