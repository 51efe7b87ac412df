"""Claims: the published statements "I carry this IP, epoch n", and which of two wins.

Folding is commutative, associative and idempotent, so claims may come in any order and as often
as they like, and all nodes that heard the same claims agree.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING

from egress.model import Cause, Claim
from egress.scores import score

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from egress.model import IP

CLAIMS_MAX = 16_000
"""Addresses that claims are kept for; more than any cluster has egress IPs, and with its fields
no more than one message of ours may hold items."""
FOREIGN_MAX = 2_000
"""Of those, addresses that no egress here names."""
FOREIGN_KEPT = 600.0
"""Seconds after which what no egress names any more is forgotten."""
EPOCH_MAX = (1 << 53) - 1
NAME_MAX = 253
LATEST = 1e11
FIELDS = 7
FIELDS_NEEDED = 5
ROW_BYTES = 39
"""The most that a packed claim takes beside the bytes of its address and names."""

_CAUSES = frozenset(Cause)

Plain = None | bool | int | float | str | bytes | list["Plain"] | dict[str, "Plain"]


def beats(claim: Claim, other: Claim, seed: str = "") -> bool:
    """Which of two claims on one address wins; of equal ones neither does.

    A higher epoch wins; equal epochs (two that bound without hearing each other) go by score and
    name; a release beats the holding of the same owner at the same epoch. The rest only makes
    sure that everybody keeps the same one.
    """
    if claim.epoch != other.epoch:
        return claim.epoch > other.epoch
    if claim.owner != other.owner:
        mine, theirs = score(claim.ip, claim.owner, seed), score(claim.ip, other.owner, seed)
        return (mine, claim.owner) > (theirs, other.owner)
    return _rest(claim) > _rest(other)


def _rest(claim: Claim) -> tuple[bool, str, float, str]:
    return not claim.held, claim.to or "", claim.at, claim.why or ""


class Claims:
    """The top claim on each address; owned by the controller.

    Addresses that no egress here names count as foreign. They are kept for a while, since this
    node may be the one whose configuration is behind, but only so many.
    """

    def __init__(self, seed: str = "") -> None:
        self._seed = seed
        self._tops: dict[IP, Claim] = {}
        self._since: dict[IP, float] = {}
        self._changed: dict[IP, int] = {}
        self._wanted: Collection[IP] | None = None
        self._foreign: dict[IP, float] = {}
        self.version = 0

    def __len__(self) -> int:
        return len(self._tops)

    def fold(self, claim: Claim, now: float = 0.0) -> bool:
        """Take a claim in; whether it became the top one (an equal one did not)."""
        top = self._tops.get(claim.ip)
        if top is None:
            if not self._admits(claim.ip, now):
                return False
        elif not beats(claim, top, self._seed):
            return False
        if top is None or (top.owner, top.held) != (claim.owner, claim.held):
            self._since[claim.ip] = now
        self._tops[claim.ip] = claim
        self._note(claim.ip)
        return True

    def since(self, ip: IP) -> float:
        """When this node first heard that the address is with whom it is now (loop seconds).

        Later, if the addresses became others since: as if it had been told anew.
        """
        return self._since.get(ip, 0.0)

    def changes(self, version: int) -> list[IP]:
        """Addresses whose top claim is another one than at that version."""
        found = []
        for ip in reversed(self._changed):
            if self._changed[ip] <= version:
                break
            found.append(ip)
        return found

    def top(self, ip: IP) -> Claim | None:
        """The claim that counts."""
        return self._tops.get(ip)

    def tops(self) -> list[tuple[Claim, float]]:
        """Every claim that counts, and since when (loop seconds) the address is where it is."""
        return [(top, self.since(ip)) for ip, top in self._tops.items()]

    def holder(self, ip: IP) -> str | None:
        """Who carries the address, by the claim that counts; None after a release."""
        top = self._tops.get(ip)
        return top.owner if top is not None and top.held else None

    def held_by(self, name: str) -> tuple[IP, ...]:
        """Addresses that `name` claims to carry."""
        return tuple(ip for ip, top in self._tops.items() if top.held and top.owner == name)

    def want(self, wanted: Collection[IP], now: float, *, settled: float = float("-inf")) -> None:
        """Say which addresses egresses name; others are forgotten after a while.

        Other addresses mean other homes for the rest, which is no reason to move anything: who
        was well before `settled` (loop seconds) has been given back by now what was to be.
        """
        if self._wanted is not None and wanted != self._wanted:
            self._settle(settled)
        self._wanted = wanted
        self._foreign = {ip: self._foreign.get(ip, now) for ip in self._tops if ip not in wanted}
        for ip, since in list(self._foreign.items()):
            if now - since >= FOREIGN_KEPT:
                self._drop(ip)

    def _settle(self, settled: float) -> None:
        for ip, since in self._since.items():
            if since < settled:
                self._since[ip] = settled
                self._note(ip)

    def _admits(self, ip: IP, now: float) -> bool:
        """Whether there is room for a claim on an address that has none yet."""
        if self._wanted is None or ip in self._wanted:
            return len(self._tops) < CLAIMS_MAX
        if len(self._foreign) >= FOREIGN_MAX:
            return False
        self._foreign[ip] = now
        return True

    def _note(self, ip: IP) -> None:
        self.version += 1
        self._changed.pop(ip, None)
        self._changed[ip] = self.version

    def _drop(self, ip: IP) -> None:
        del self._tops[ip], self._foreign[ip]
        self._since.pop(ip, None)
        self._note(ip)

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
        """Plain data of `claims` in pages whose rows take at most `size` bytes (one row may)."""
        page: list[Plain] = []
        used = 0
        for claim in claims:
            row = _row(claim)
            names = len(claim.owner.encode()) + len((claim.to or "").encode())
            cost = ROW_BYTES + len(claim.ip.packed) + names
            if page and used + cost > size:
                yield page
                page, used = [], 0
            page.append(row)
            used += cost
        if page:
            yield page


def _row(claim: Claim) -> list[Plain]:
    row: list[Plain] = [claim.ip.packed, claim.epoch, claim.owner, claim.held, claim.at, claim.to]
    return row if claim.why is None else [*row, claim.why.value]


def _claim(row: object) -> Claim:
    if not isinstance(row, list) or len(row) < FIELDS_NEEDED:
        raise ValueError("a claim is not a list of its fields")
    try:
        claim = _parsed(*row[: FIELDS - 1])
    except TypeError as error:
        raise ValueError("a claim with a field that holds others") from error
    why = row[FIELDS - 1] if len(row) >= FIELDS else None
    # A word that we do not know comes from a newer member; it decides nothing.
    return _reasoned(claim, Cause(why)) if isinstance(why, str) and why in _CAUSES else claim


@lru_cache(maxsize=CLAIMS_MAX)
def _reasoned(claim: Claim, why: Cause) -> Claim:
    return replace(claim, why=why)


@lru_cache(maxsize=CLAIMS_MAX, typed=True)
def _parsed(
    packed: object, epoch: object, owner: object, held: object, at: object, to: object = None
) -> Claim:
    """A claim from its fields. Remembered, for everybody says the same again and again."""
    if not isinstance(packed, bytes) or len(packed) not in {4, 16}:
        raise ValueError("a claim without an address")
    if not isinstance(epoch, int) or isinstance(epoch, bool) or not 0 < epoch <= EPOCH_MAX:
        raise ValueError("a claim with an impossible epoch")
    if not isinstance(held, bool):
        raise ValueError("a claim that neither holds nor releases")  # noqa: TRY004 - as above
    # Year 5138; what is not a number is not within bounds either.
    if not isinstance(at, int | float) or isinstance(at, bool) or not 0 <= at < LATEST:
        raise ValueError("a claim at an impossible time")
    heir = None if to is None else _name(to)
    return Claim(ip_address(packed), epoch, _name(owner), held, float(at), heir)


def _name(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= NAME_MAX or not value.isprintable():
        raise ValueError("a claim with an impossible name")
    return value
