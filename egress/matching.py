"""Shares egresses out among nodes: deferred acceptance under a load bound, pins first.

Each egress proposes down its own list and a full node keeps those it wants most (Gale and
Shapley, 1962). Both sides go by the same scores, so there is one stable outcome: it does not
depend on any order, and it moves least when a node comes or goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from egress.contest import NOBODY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from egress.contest import Contest

SLICE = 1024
"""Contests that are looked at in one go, some milliseconds."""
ROUNDING = 1e-9
"""A share that is a hair above a whole number is that number: 1.1 · 40 / 4 is 11."""

Row = tuple[int, float, int, "Contest"]
"""Priority, score and number of a contest: the greatest is wanted most."""


@dataclass(slots=True)
class Room:
    """What there is on each seat: its weight (0: it takes nothing), load, and capacity or None.

    `order` are the seats by name, so that sums come out the same on every node.
    """

    order: Sequence[int]
    weights: Sequence[float]
    loads: list[int]
    capacity: Sequence[int | None]

    def left(self, seat: int) -> int | None:
        """Places until the hard capacity; None without one."""
        capacity = self.capacity[seat]
        return None if capacity is None else max(capacity - self.loads[seat], 0)

    def bounds(self, total: int, factor: float, among: Sequence[int], *, loaded: bool) -> list[int]:
        """Places by seat when `total` are shared in proportion to weight among some seats.

        `loaded`: what they carry already counts.
        """
        places = [0] * len(self.weights)
        whole = sum(self.weights[seat] for seat in among)
        for seat in among:
            share = factor * total * self.weights[seat] / whole
            bound = max(ceil(share - ROUNDING), 1) - (self.loads[seat] if loaded else 0)
            left = self.left(seat)
            places[seat] = max(bound if left is None else min(bound, left), 0)
        return places


def share(
    free: Sequence[Contest],
    room: Room,
    pins: Mapping[str, int],
    terms: tuple[int, float],
    won: dict[Contest, int],
) -> Iterator[None]:
    """Find a seat for each free contest, into `won`; `terms` are the total and the load factor.

    The bound balances, it does not refuse: what it leaves over is shared out again among those
    that may have it, and only the capacities are final. Yields between slices of work.
    """
    total, factor = terms
    _pinned(free, room, pins, won)
    rest: Sequence[Contest] = [each for each in free if each not in won] if won else free
    among = [seat for seat in room.order if room.weights[seat] > 0]
    loaded = True
    while rest and among:
        bounds = room.bounds(total, factor, among, loaded=loaded)
        left: list[Contest] = []
        yield from _match(rest, bounds, room, won, left)
        wanted = {seat for each in left for seat in each.ranks}
        among = [seat for seat in among if seat in wanted and room.left(seat) != 0]
        # Every seat takes one at least, from the second time on, so this ends.
        rest, total, loaded = left, len(left), False


def _pinned(
    free: Sequence[Contest], room: Room, pins: Mapping[str, int], won: dict[Contest, int]
) -> None:
    """A pin goes before the bound, not before the capacity."""
    wishes: dict[int, list[Row]] = {}
    for each in free:
        if each.egress.pin is None:
            continue
        seat = pins.get(each.egress.pin, NOBODY)
        if seat != NOBODY and room.weights[seat] > 0 and each.fits(seat):
            wishes.setdefault(seat, []).append((*each.merit(seat), each))
    for seat, rows in wishes.items():
        rows.sort(reverse=True)
        for row in rows[: room.left(seat)]:
            won[row[3]] = seat
            room.loads[seat] += 1


def _match(
    proposers: Sequence[Contest],
    bounds: Sequence[int],
    room: Room,
    won: dict[Contest, int],
    left: list[Contest],
) -> Iterator[None]:
    """Deferred acceptance in rounds: all propose, then every overfull node turns some away."""
    tables: list[list[Row]] = [[] for _ in bounds]
    for each in proposers:
        each.asked = 0
    waiting: Sequence[Contest] = proposers
    while waiting:
        for start in range(0, len(waiting), SLICE):
            left += _propose(waiting[start : start + SLICE], bounds, tables)
            yield
        waiting = []
        for seat, table in enumerate(tables):
            if len(table) > bounds[seat]:
                table.sort(reverse=True)
                waiting += [row[3] for row in table[bounds[seat] :]]
                del table[bounds[seat] :]
    for seat, table in enumerate(tables):
        room.loads[seat] += len(table)
        won.update((row[3], seat) for row in table)
    yield


def _propose(
    some: Sequence[Contest], bounds: Sequence[int], tables: Sequence[list[Row]]
) -> list[Contest]:
    """Each asks the next seat on its list that takes anything; returns those without one."""
    left = []
    for each in some:
        for at in range(each.asked, len(each.ranks)):
            seat = each.ranks[at]
            if bounds[seat]:
                each.asked = at + 1
                tables[seat].append((each.priority, -each.costs[at], each.index, each))
                break
        else:
            left.append(each)
    return left
