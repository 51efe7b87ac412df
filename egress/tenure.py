"""Whether the one who has an egress keeps it, ought to send it home, or nobody may have it at all.

A holder keeps an egress while it may. It gives it back to the home, where the egress would live
if everybody were well, once the home is well again; never to a node that was well all the while,
for a bound that widens is no reason to move anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from egress import eligibility
from egress.contest import NOBODY
from egress.eligibility import Vacancy
from egress.model import Failback

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from egress.claims import Claims
    from egress.contest import Contest, Rules, Seat
    from egress.field import Field
    from egress.model import IP, Claim

NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Tenure:
    """`incumbent`: who has it and keeps it. `wish`: its home, if it ought to go back there.

    `bar`: why nobody may have it. `names` are all who claim it, or are to have it.
    """

    names: tuple[str, ...]
    incumbent: int = NOBODY
    wish: int = NOBODY
    bar: Vacancy | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    """What a tenure follows from; `taken`: addresses that members have as their own, by whom."""

    field: Field
    claims: Claims
    rules: Rules
    now: float
    taken: Mapping[IP, frozenset[str]]

    def tenure(self, contest: Contest) -> Tenure:
        """Where things stand with this egress."""
        tops = self._tops(contest)
        names = tuple(dict.fromkeys(name for top in tops for name in (top.owner, top.to) if name))
        if bar := self._bar(contest, tops):
            return Tenure(names, bar=bar)
        for top in tops:
            name = top.to if not top.held and contest.egress.failover else top.owner
            seat = self.field.by_name.get(name) if name is not None else None
            if seat is not None and self._may_stay(contest, seat):
                wish = contest.home if self._homesick(contest, top, seat) else NOBODY
                return Tenure(names, seat.number, wish)
        return Tenure(names)

    def _tops(self, contest: Contest) -> list[Claim]:
        """The claims on its addresses, the highest epoch first."""
        found = [self.claims.top(ip) for ip in contest.egress.ips]
        tops = [top for top in found if top is not None]
        return sorted(tops, key=lambda top: -top.epoch) if len(tops) > 1 else tops

    def _bar(self, contest: Contest, tops: Sequence[Claim]) -> Vacancy | None:
        egress = contest.egress
        for ip in egress.ips if self.taken else ():
            # Not the holder's: an address whose mark was taken away looks like its own.
            if self.taken.get(ip, NONE) - {self.claims.holder(ip)}:
                return Vacancy.OWN_ADDRESS
        if egress.failover or not tops:
            return None
        last = self.field.by_name.get(tops[0].owner)
        stays = last is not None and self._may_stay(contest, last)
        return None if stays else Vacancy.FAILOVER_NONE

    def _may_stay(self, contest: Contest, seat: Seat) -> bool:
        """As `eligibility.keeps`; the ranks know already what fits."""
        if seat.well:
            return contest.fits(seat.number)
        return eligibility.keeps(seat.candidate, contest.egress)

    def _homesick(self, contest: Contest, top: Claim, keeper: Seat) -> bool:
        """Whether it ought to leave its keeper for its home, if there is room."""
        egress = contest.egress
        if contest.home in {NOBODY, keeper.number} or egress.failback is Failback.NEVER:
            return False
        # An heir that has not bound yet was elected a moment ago; one that is restarting cannot
        # give anything up in good order.
        if not (top.held and keeper.well and egress.failover):
            return False
        home = self.field.seat(contest.home)
        since = home.candidate.healthy_since
        wait = self.rules.failback_delay if egress.failback is Failback.DELAYED else 0.0
        if not home.well or self.now < since + wait:
            return False
        if egress.pin == home.name:
            return True
        better = contest.prefers(home.number, keeper.number)
        return better and since >= self.claims.since(top.ip)
