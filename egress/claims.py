"""Claims: the published statements "I carry this IP, epoch n", and which of two wins.

Folding is commutative, associative and idempotent, so claims may come in any order and as often
as they like, and all nodes that heard the same claims agree.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from egress.model import Claim
from egress.scores import score

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from egress.model import IP

CLAIMS_MAX = 20_000
"""Addresses that claims are kept for; more than any cluster has egress IPs."""
EPOCH_MAX = (1 << 53) - 1
NAME_MAX = 253
FIELDS = 6

Plain = None | bool | int | float | str | bytes | list["Plain"] | dict[str, "Plain"]


def position(claim: Claim, seed: str = "") -> tuple[int, float, str, bool, str]:
    """Claims on one address in order: the greatest wins.

    A higher epoch wins; equal epochs (two that bound without hearing each other) go by score and
    name; a release beats the holding of the same owner at the same epoch.
    """
    weight = score(claim.ip, claim.owner, seed)
    return claim.epoch, weight, claim.owner, not claim.held, claim.to or ""


class Claims:
    """The top claim on each address; owned by the controller."""

    def __init__(self, seed: str = "") -> None:
        self._seed = seed
        self._tops: dict[IP, Claim] = {}
        self.version = 0

    def __len__(self) -> int:
        return len(self._tops)

    def fold(self, claim: Claim) -> bool:
        """Take a claim in; whether it became the top one (an equal one did not)."""
        top = self._tops.get(claim.ip)
        if top is None:
            if len(self._tops) >= CLAIMS_MAX:
                return False
        elif position(claim, self._seed) <= position(top, self._seed):
            return False
        self._tops[claim.ip] = claim
        self.version += 1
        return True

    def top(self, ip: IP) -> Claim | None:
        """The claim that counts."""
        return self._tops.get(ip)

    def holder(self, ip: IP) -> str | None:
        """Who carries the address, by the claim that counts; None after a release."""
        top = self._tops.get(ip)
        return top.owner if top is not None and top.held else None

    def held_by(self, name: str) -> tuple[IP, ...]:
        """Addresses that `name` claims to carry."""
        return tuple(ip for ip, top in self._tops.items() if top.held and top.owner == name)

    def forget(self, wanted: Collection[IP]) -> None:
        """Drop released claims on addresses that no egress names any more."""
        stale = [ip for ip, top in self._tops.items() if ip not in wanted and not top.held]
        for ip in stale:
            del self._tops[ip]

    def to_plain(self, claims: Iterable[Claim] | None = None) -> list[Plain]:
        """Plain data for gossip: of `claims`, or of every top one."""
        return [_row(claim) for claim in (self._tops.values() if claims is None else claims)]

    @staticmethod
    def read(value: object) -> tuple[Claim, ...]:
        """Claims out of plain data from the network; ValueError says what is wrong with it."""
        if not isinstance(value, list):
            raise ValueError("claims are not a list")  # noqa: TRY004 - the sender's error, not ours
        if len(value) > CLAIMS_MAX:
            raise ValueError("too many claims")
        return tuple(map(_claim, value))

    def pages(self, claims: Sequence[Claim], size: int) -> Iterable[list[Plain]]:
        """Plain data of `claims` in pages that take at most about `size` bytes each."""
        page: list[Plain] = []
        used = 0
        for claim in claims:
            row = _row(claim)
            cost = 24 + len(claim.ip.packed) + len(claim.owner) + len(claim.to or "")
            if page and used + cost > size:
                yield page
                page, used = [], 0
            page.append(row)
            used += cost
        if page:
            yield page


def _row(claim: Claim) -> list[Plain]:
    return [claim.ip.packed, claim.epoch, claim.owner, claim.held, claim.at, claim.to]


def _claim(row: object) -> Claim:
    if not isinstance(row, list) or len(row) < FIELDS - 1:
        raise ValueError("a claim is not a list of its fields")
    packed, epoch, owner, held, at = row[: FIELDS - 1]
    to = row[FIELDS - 1] if len(row) >= FIELDS else None
    if not isinstance(packed, bytes) or len(packed) not in {4, 16}:
        raise ValueError("a claim without an address")
    if not isinstance(epoch, int) or isinstance(epoch, bool) or not 0 < epoch <= EPOCH_MAX:
        raise ValueError("a claim with an impossible epoch")
    if not isinstance(held, bool):
        raise ValueError("a claim that neither holds nor releases")  # noqa: TRY004 - as above
    if not isinstance(at, int | float) or not 0 <= at < 1e11:  # noqa: PLR2004 - year 5138
        raise ValueError("a claim at an impossible time")
    heir = None if to is None else _name(to)
    return Claim(ip_address(packed), epoch, _name(owner), held, float(at), heir)


def _name(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= NAME_MAX:
        raise ValueError("a claim with an impossible name")
    return value
