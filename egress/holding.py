"""Whether an address that we hold stays.

Given up at once when a living member has the better claim, handed over when the election says
so, kept in every other case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from egress.model import Claim

if TYPE_CHECKING:
    from egress.decision import Timing
    from egress.track import Sight, Track


@dataclass(frozen=True, slots=True)
class Keep:
    """It stays here."""


@dataclass(frozen=True, slots=True)
class Release:
    """Give it up; `heir` may bind it without asking the LAN, because we say when it is gone."""

    reason: str
    heir: str | None = None


KEEP = Keep()


def stance(track: Track, sight: Sight, timing: Timing, now: float) -> Keep | Release:
    """What to do about an address that is bound here, or is being bound."""
    view = sight.view
    if not track.configured:
        return Release("config")
    if view.fenced:
        return Release("partition")
    if _usurped(track, sight, timing, now):
        return Release("claim")
    if not view.ready:
        # Too early to tell who else there is; what we found at the start stays alive meanwhile.
        return KEEP
    return _elected(track, sight)


def _elected(track: Track, sight: Sight) -> Keep | Release:
    assignment = sight.assignment(track)
    if assignment is None or assignment.owner is None:
        return Release("draining" if sight.view.draining else "no_owner")
    if assignment.owner != sight.me:
        return Release(assignment.rule, assignment.owner) if sight.fit(assignment.owner) else KEEP
    place = sight.view.places.get(track.ip)
    if place is None or track.binding is None or place.interface is None:
        # Without carrier the election moves it soon; until then a late owner beats none.
        return KEEP
    return KEEP if place.interface == track.binding.interface else Release("interface")


def _usurped(track: Track, sight: Sight, timing: Timing, now: float) -> bool:
    """A living member has the better claim, or was just given the address by name."""
    top = sight.view.claims.top(track.ip)
    if top is None or not beaten(track, top, sight.me):
        return False
    if top.held:
        return sight.live(top.owner)
    given = top.to is not None and top.to != sight.me and sight.live(top.to)
    return given and now < track.released_at + timing.courtesy


def beaten(track: Track, top: Claim, me: str) -> bool:
    """Whether `top` is another's claim that goes before ours.

    Ours has been folded in by now, so at equal epochs it would be the top one if it won.
    """
    return top.owner != me and top.epoch >= track.epoch


def restated(track: Track, sight: Sight) -> Claim | None:
    """Our claim, where the published ones do not show that we hold the address."""
    top = sight.view.claims.top(track.ip)
    if top is None:
        epoch = max(track.epoch, 1)
        return Claim(track.ip, epoch, sight.me, held=True) if track.epoch == 0 else None
    if top.owner == sight.me and top.held:
        track.epoch = max(track.epoch, top.epoch)
        return None
    if top.epoch < track.epoch or (top.owner != sight.me and not beaten(track, top, sight.me)):
        return None
    return Claim(track.ip, top.epoch + 1, sight.me, held=True)
