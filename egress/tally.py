"""The election kept up to date: what changed is judged anew, what nobody keeps is shared out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from egress.contest import NOBODY, Rules
from egress.eligibility import Vacancy
from egress.field import SLICE, Field
from egress.matching import Room, share
from egress.model import Assignment
from egress.tenure import Judge

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from egress.claims import Claims
    from egress.contest import Contest
    from egress.model import IP, Candidate, Egress

FOREVER = float("inf")

Marked = dict["Contest", None]
"""A set of contests that keeps its order."""


class Tally:
    """State of one election; `count` takes in everything, `result` is the answer."""

    def __init__(self) -> None:
        self.result: Mapping[str, Assignment] = {}
        self.again = FOREVER
        self._field = Field()
        self._claims: Claims | None = None
        self._version = 0
        self._rules = Rules()
        self._now = -FOREVER
        self._taken: dict[IP, frozenset[str]] = {}
        self._claimed: dict[str, Marked] = {}
        self._homes: dict[int, list[Contest]] = {}
        self._kept: list[Marked] = []
        self._free: Marked = {}
        self._wishing: Marked = {}
        self._placed: Marked = {}

    def count(
        self,
        egresses: Sequence[Egress],
        candidates: Mapping[str, Candidate],
        claims: Claims,
        rules: Rules,
        now: float,
    ) -> Iterator[None]:
        """Bring the result up to date, in slices."""
        field = self._field
        yield from field.follow(egresses, candidates, rules.seed)
        dirty: Marked = dict.fromkeys(field.fresh)
        for contest in field.gone:
            self._forget(contest)
        yield from self._settle_homes(rules, dirty)
        yield from self._mark_claims(claims, dirty)
        self._mark_addresses(candidates, dirty)
        self._mark_nodes(rules, now, dirty)
        still = rules == self._rules and not field.reseated and not field.restless
        self._rules, self._now = rules, now
        if still and not dirty:
            return
        yield from self._judge(dirty)
        placed, self._placed = self._placed, {}
        yield from self._place()
        moved = {**dirty, **placed, **self._placed}
        yield from self._conclude(field.contests if field.reseated or field.restless else moved)

    # -- what may have changed ----------------------------------------------------------------

    def _forget(self, contest: Contest) -> None:
        """It is no longer in the race."""
        self._withdraw(contest)
        self._index(contest, ())
        self._placed.pop(contest, None)

    def _withdraw(self, contest: Contest) -> None:
        if contest.incumbent != NOBODY:
            self._kept[contest.incumbent].pop(contest, None)
        self._free.pop(contest, None)
        self._wishing.pop(contest, None)

    def _settle_homes(self, rules: Rules, dirty: Marked) -> Iterator[None]:
        """Where everything would live if everybody were well and nothing were claimed."""
        contests, seats = self._field.contests, self._field.seats
        self._kept += [{} for _ in range(len(seats) - len(self._kept))]
        if not self._field.reseated and self._rules.load_factor == rules.load_factor:
            return
        homes: dict[Contest, int] = {}
        room = self._room([0] * len(seats), [seat is not None and seat.stands for seat in seats])
        terms = (len(contests), rules.load_factor)
        yield from share(contests, room, self._pins(), terms, homes)
        self._homes = {}
        for contest in contests:
            home = homes.get(contest, NOBODY)
            if home != contest.home:
                contest.home = home
                dirty[contest] = None
            self._homes.setdefault(home, []).append(contest)

    def _mark_claims(self, claims: Claims, dirty: Marked) -> Iterator[None]:
        if claims is not self._claims:
            self._claims = claims
            dirty.update(dict.fromkeys(self._field.contests))
        else:
            changes = claims.changes(self._version)
            for start in range(0, len(changes), SLICE):
                self._mark_ips(changes[start : start + SLICE], dirty)
                yield
        self._version = claims.version

    def _mark_addresses(self, candidates: Mapping[str, Candidate], dirty: Marked) -> None:
        """Egresses that ask for an address which a member has as its own, or had."""
        if not self._field.restless and not self._field.fresh:
            return
        taken: dict[IP, frozenset[str]] = {}
        for name, candidate in candidates.items():
            for ip in candidate.addresses if not candidate.left else ():
                if ip in self._field.by_ip:
                    taken[ip] = taken.get(ip, frozenset()) | {name}
        if taken != self._taken:
            self._mark_ips((*self._taken, *taken), dirty)
            self._taken = taken

    def _mark_ips(self, ips: Iterable[IP], dirty: Marked) -> None:
        for ip in ips:
            dirty.update(dict.fromkeys(self._field.by_ip.get(ip, ())))

    def _mark_nodes(self, rules: Rules, now: float, dirty: Marked) -> None:
        """What candidates that changed hold or are home to; and homes that time has healed."""
        restless, delay = self._field.restless, rules.failback_delay
        if self._rules.failback_delay != delay:
            dirty.update(dict.fromkeys(self._field.contests))
        for name in restless:
            dirty.update(self._claimed.get(name, {}))
        self.again = FOREVER
        for name, seat in self._field.by_name.items():
            ripe = seat.candidate.healthy_since + delay
            if name in restless or self._now < ripe <= now:
                dirty.update(dict.fromkeys(self._homes.get(seat.number, ())))
            if ripe > now:
                self.again = min(self.again, ripe)

    # -- who keeps ----------------------------------------------------------------------------

    def _judge(self, dirty: Marked) -> Iterator[None]:
        assert self._claims is not None
        judge = Judge(self._field, self._claims, self._rules, self._now, self._taken)
        for at, contest in enumerate(dirty, 1):
            self._withdraw(contest)
            tenure = judge.tenure(contest)
            self._index(contest, tenure.names)
            contest.incumbent, contest.wish = tenure.incumbent, tenure.wish
            contest.bar = tenure.bar
            if contest.incumbent != NOBODY:
                self._kept[contest.incumbent][contest] = None
            elif contest.bar is None:
                self._free[contest] = None
            if contest.wish != NOBODY:
                self._wishing[contest] = None
            if at % SLICE == 0:
                yield

    def _index(self, contest: Contest, names: tuple[str, ...]) -> None:
        if names == contest.claimants:
            return
        for name in contest.claimants:
            self._claimed[name].pop(contest, None)
        for name in names:
            self._claimed.setdefault(name, {})[contest] = None
        contest.claimants = names

    # -- who gets what ------------------------------------------------------------------------

    def _place(self) -> Iterator[None]:
        """Hold keepers to their capacity, send home who may go, share out the rest."""
        seats = self._field.seats
        loads = [len(kept) for kept in self._kept]
        ready = [seat is not None and seat.well for seat in seats]
        room = self._room(loads, ready)
        spilled = self._spill(room)
        won: dict[Contest, int] = {}
        lost = [each for each in self._free if each.claimants]
        yield from self._share([*lost, *spilled], room, won)
        # What nobody ever had can wait for those that start together with us, so that the first
        # to be ready does not take it all.
        room = self._room(loads, [seat is not None and seat.awaited for seat in seats])
        unclaimed = [each for each in self._free if not each.claimants]
        yield from self._share(unclaimed, room, won)
        # Last, for what was shared out counts: the next election would see it and go on.
        self._go_home(self._room(loads, ready), set(spilled))
        for contest in (*self._free, *spilled):
            contest.owner, contest.rule = won.get(contest, NOBODY), "score"
            self._placed[contest] = None

    def _share(
        self, free: Sequence[Contest], room: Room, won: dict[Contest, int]
    ) -> Iterator[None]:
        terms = (len(self._field.contests), self._rules.load_factor)
        return share(free, room, self._pins(), terms, won)

    def _spill(self, room: Room) -> list[Contest]:
        """Those that are too many for their keeper: the least important go."""
        found: list[Contest] = []
        for number, kept in enumerate(self._kept):
            capacity = room.capacity[number]
            if capacity is not None and len(kept) > capacity:
                ranked = [(each.merit(number), each) for each in kept]
                found += [each for _, each in sorted(ranked, reverse=True)[capacity:]]
                room.loads[number] = capacity
        return found

    def _go_home(self, room: Room, spilled: Collection[Contest]) -> None:
        """Send back those that wish it, the most important first, as far as it evens out."""
        wishing = [(each.merit(each.wish), each) for each in self._wishing if each not in spilled]
        waiting = [contest for _, contest in sorted(wishing, reverse=True)]
        while waiting:
            # Who went may have made room for somebody who could not go before.
            left = [contest for contest in waiting if not self._gone_home(contest, room)]
            if len(left) == len(waiting):
                return
            waiting = left

    def _gone_home(self, contest: Contest, room: Room) -> bool:
        home, at = contest.wish, contest.incumbent
        loads, weights = room.loads, room.weights
        pinned = contest.egress.pin == self._field.seat(home).name
        even = (loads[home] + 1) * weights[at] < loads[at] * weights[home]
        if room.left(home) == 0 or not (pinned or even or loads[home] == 0):
            return False
        loads[home] += 1
        loads[at] -= 1
        contest.owner, contest.rule = home, "failback"
        self._placed[contest] = None
        return True

    def _room(self, loads: list[int], ready: Sequence[bool]) -> Room:
        """`ready` tells by seat who may be given something."""
        seats = self._field.seats
        weights = [
            seat.candidate.weight if seat is not None and able else 0.0
            for seat, able in zip(seats, ready, strict=True)
        ]
        capacity = [seat.candidate.capacity if seat is not None else None for seat in seats]
        return Room(self._field.order, weights, loads, capacity)

    def _pins(self) -> dict[str, int]:
        return {name: seat.number for name, seat in self._field.by_name.items()}

    # -- what came out ------------------------------------------------------------------------

    def _conclude(self, moved: Iterable[Contest]) -> Iterator[None]:
        """Say it; the result stays the same object if it says the same."""
        names = ["" if seat is None else seat.name for seat in self._field.seats]
        well = [seat is not None and seat.well for seat in self._field.seats]
        news: dict[str, Assignment] = {}
        for at, contest in enumerate(moved, 1):
            found = self._finding(contest, names, well)
            if contest.finding != found:
                contest.finding = found
                contest.assignment = news[contest.egress.name] = Assignment(*found)
            if at % SLICE == 0:
                yield
        if self._field.gone:
            told = {each.egress.name: each.assignment for each in self._field.contests}
            self.result = {name: each for name, each in told.items() if each is not None}
        elif news:
            self.result = {**self.result, **news}

    def _finding(
        self, contest: Contest, names: Sequence[str], well: Sequence[bool]
    ) -> tuple[str | None, str | None, str, str | None]:
        """The fields of the assignment."""
        owner, rule = contest.incumbent, "sticky"
        if contest in self._placed:
            owner, rule = contest.owner, contest.rule
        standby = None
        for seat in contest.ranks:
            if seat != owner and well[seat]:
                standby = names[seat]
                break
        if owner == NOBODY:
            empty = Vacancy.NO_ELIGIBLE_NODE if standby is None else Vacancy.NO_CAPACITY
            return None, None, "none", contest.bar or empty
        if rule != "sticky" and names[owner] == contest.egress.pin:
            rule = "pinned"
        return names[owner], standby, rule, None
