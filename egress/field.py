"""The field of the election: who stands, for what, and how well each suits each.

For each egress a list of seats that may have it, best first, with their scores. Kept up to date
piece by piece, for a score costs a microsecond and there is one for each pair.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from egress import eligibility
from egress.contest import Contest, Seat
from egress.scores import hashed, prefix

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from egress.model import IP, Candidate, Egress, Network, Selector

SLICE = 512
"""Contests that are looked at in one go, some milliseconds."""
SLICE_PAIRS = 1024
"""Scores that are computed in one go."""
FEW = 4
"""So many newcomers are put into a sorted list one by one; more, and it is sorted anew."""
VARIETY = 512
"""Sets of networks, and selectors of old, that are remembered until all begins anew."""

Item = TypeVar("Item")
Range = tuple[int, int, int]
"""A network as numbers: version, mask and address."""


class Field:
    """Contests in the order of names, and seats; `order`: seats in the order of names."""

    def __init__(self) -> None:
        self.contests: list[Contest] = []
        self.by_ip: dict[IP, tuple[Contest, ...]] = {}
        self.seats: list[Seat | None] = []
        self.by_name: dict[str, Seat] = {}
        self.order: list[int] = []
        self.fresh: list[Contest] = []
        self.gone: list[Contest] = []
        self.restless: dict[str, None] = {}
        self.reseated = True
        self._egresses: Sequence[Egress] = ()
        self._seed = ""
        self._selectors: dict[Selector, int] = {}
        self._reaches: dict[tuple[Network, ...], int] = {}
        self._ranges: list[tuple[Range, ...]] = []

    def follow(
        self, egresses: Sequence[Egress], candidates: Mapping[str, Candidate], seed: str
    ) -> Iterator[None]:
        """Take in what is new, in slices; afterwards it says what kind of news it was.

        `fresh` and `gone`: contests that came and went. `reseated`: other contests, ranks or
        capacities. `restless`: names of candidates that changed in any way, or went.
        """
        self.reseated = seed != self._seed
        self.fresh, self.gone, self.restless = [], [], {}
        if seed != self._seed or self._littered():
            self._seed = seed
            self._begin_anew()
        if egresses is not self._egresses:
            yield from self._enter(egresses)
            self._egresses = egresses
        yield from self._seat(candidates)

    def _littered(self) -> bool:
        selectors = len(self._selectors) - len(self.contests)
        return max(len(self._reaches), selectors) > VARIETY

    def _begin_anew(self) -> None:
        self.gone, self.contests, self.by_ip, self._egresses = self.contests, [], {}, ()
        self._selectors, self._reaches, self._ranges = {}, {}, []
        for seat in self.by_name.values():
            self._measure(seat)

    def seat(self, number: int) -> Seat:
        """The seat of that number, which somebody has."""
        seat = self.seats[number]
        assert seat is not None
        return seat

    # -- contests --------------------------------------------------------------------------

    def _enter(self, egresses: Sequence[Egress]) -> Iterator[None]:
        """Other egresses, or the same ones told anew; those that are as they were stay."""
        known = {each.egress.name: each for each in self.contests}
        contests: list[Contest] = []
        for some in _slices(sorted(egresses, key=lambda each: each.name), SLICE):
            for egress in some:
                contest = known.get(egress.name)
                if contest is None or not (contest.egress is egress or contest.egress == egress):
                    contest = self._open(egress)
                    self.fresh.append(contest)
                else:
                    del known[egress.name]
                contest.index = len(contests)
                contests.append(contest)
            yield
        if self.fresh or known:
            self.gone += known.values()
            self.contests = contests
            self.reseated = True
            yield from self._rank_fresh()

    def _open(self, egress: Egress) -> Contest:
        numbers = tuple((ip.version, int(ip)) for ip in egress.ips)
        start = prefix(egress.ips[0], self._seed)
        contest = Contest(egress, egress.priority, start, numbers)
        contest.selector = self._selectors.setdefault(egress.selector, len(self._selectors))
        return contest

    def _rank_fresh(self) -> Iterator[None]:
        """Index by address, and rank what is new among those who are here already."""
        by_ip: dict[IP, tuple[Contest, ...]] = {}
        for some in _slices(self.contests, SLICE):
            for contest in some:
                for ip in contest.egress.ips:
                    by_ip[ip] = (*by_ip[ip], contest) if ip in by_ip else (contest,)
            yield
        self.by_ip = by_ip
        if self.by_name:
            yield from self._suit(self.fresh, list(self.by_name.values()), ())

    # -- seats -----------------------------------------------------------------------------

    def _seat(self, candidates: Mapping[str, Candidate]) -> Iterator[None]:
        leaving = [name for name in self.by_name if name not in candidates]
        coming: list[Seat] = []
        again: list[Seat] = []
        for name, candidate in candidates.items():
            seat = self.by_name.get(name)
            if seat is None:
                seat = self._add(name, candidate)
                coming.append(seat)
            elif candidate is seat.candidate or candidate == seat.candidate:
                continue
            elif _place(candidate) != _place(seat.candidate):
                again.append(seat)
            else:
                self.reseated |= candidate.capacity != seat.candidate.capacity
            self.restless[name] = None
            seat.take(candidate)
        for name in leaving:
            yield from self._remove(self.by_name[name])
        if coming or again:
            self.order = [self.by_name[name].number for name in sorted(self.by_name)]
            for seat in (*coming, *again):
                self._measure(seat)
            yield from self._suit(self.contests, [*coming, *again], again)
            self.reseated = True

    def _add(self, name: str, candidate: Candidate) -> Seat:
        number = self.seats.index(None) if None in self.seats else len(self.seats)
        seat = Seat(number, name, name.encode(), candidate)
        self.seats[number : number + 1] = [seat]
        self.by_name[name] = seat
        return seat

    def _measure(self, seat: Seat) -> None:
        """What its labels and networks come to."""
        nets = seat.candidate.networks
        if nets not in self._reaches:
            self._reaches[nets] = len(self._reaches)
            self._ranges.append(tuple(map(_range, nets)))
        seat.reach = self._reaches[nets]
        seat.selected = []

    def _remove(self, seat: Seat) -> Iterator[None]:
        del self.by_name[seat.name]
        self.order.remove(seat.number)
        self.restless[seat.name] = None
        self.reseated = True
        for some in _slices(self.contests, SLICE):
            for contest in some:
                contest.strike(seat.number)
            yield
        self.seats[seat.number] = None

    # -- who suits what --------------------------------------------------------------------

    def _suit(
        self, contests: Sequence[Contest], coming: Sequence[Seat], again: Sequence[Seat]
    ) -> Iterator[None]:
        """Put seats into the lists of contests; those in `again` may be in there already."""
        standing = [each for each in coming if each.stands]
        # Sorting is stable, so those of one score stay as they are here: the greater name first.
        places = {number: at for at, number in enumerate(reversed(self.order))}
        put = _merge if len(standing) > FEW else _insert
        for some in _slices(contests, min(SLICE, SLICE_PAIRS // len(coming) + 1)):
            for seat in again:
                for contest in some:
                    contest.strike(seat.number)
            for contest in some:
                put(contest, self._costs(contest, standing), places)
            yield

    def _costs(self, contest: Contest, seats: Sequence[Seat]) -> list[tuple[int, float]]:
        return [
            (seat.number, -seat.candidate.weight * hashed(contest.prefix, seat.encoded))
            for seat in seats
            if self._fits(contest, seat)
        ]

    def _fits(self, contest: Contest, seat: Seat) -> bool:
        if len(seat.selected) <= contest.selector:
            labels = dict(seat.candidate.labels)
            seat.selected = [eligibility.selects(each, labels) for each in self._selectors]
        if not seat.selected[contest.selector]:
            return False
        if seat.candidate.lacks and (contest.egress.interface or "") in seat.candidate.lacks:
            return False
        reached = contest.reached
        while len(reached) <= seat.reach:
            reached.append(_reaches(self._ranges[len(reached)], contest))
        return reached[seat.reach]


def _insert(
    contest: Contest, fitting: Sequence[tuple[int, float]], places: Mapping[int, int]
) -> None:
    ranks, costs = contest.ranks, contest.costs
    for number, cost in fitting:
        at = bisect_left(costs, cost)
        while at < len(ranks) and costs[at] == cost and places[ranks[at]] < places[number]:
            at += 1
        ranks.insert(at, number)
        costs.insert(at, cost)


def _merge(
    contest: Contest, fitting: Sequence[tuple[int, float]], places: Mapping[int, int]
) -> None:
    table = dict(zip(contest.ranks, contest.costs, strict=True))
    table.update(fitting)
    numbers = sorted(table, key=places.__getitem__)
    contest.ranks = array("H", sorted(numbers, key=table.__getitem__))
    contest.costs = array("d", [table[number] for number in contest.ranks])


def _slices(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    every = iter(items)
    while some := list(islice(every, size)):
        yield some


def _place(candidate: Candidate) -> tuple[object, ...]:
    """What of a candidate makes its scores."""
    where = candidate.networks, candidate.lacks
    return candidate.weight, candidate.labels, where, eligibility.stands(candidate)


def _range(network: Network) -> Range:
    return network.version, int(network.netmask), int(network.network_address)


def _reaches(ranges: Sequence[Range], contest: Contest) -> bool:
    """As `eligibility.reaches`, on numbers."""
    if contest.egress.interface is not None or not ranges:
        return True
    return all(
        any(version == family and number & mask == base for family, mask, base in ranges)
        for version, number in contest.numbers
    )
