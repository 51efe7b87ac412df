"""Whether an address that we do not hold may be bound.

Never while a living member claims it, and never while anybody answers for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from egress.decision import NEVER, Condition, Kind
from egress.track import foreign
from egress.wirecheck import Answer

if TYPE_CHECKING:
    from egress.decision import Timing
    from egress.model import Claim
    from egress.track import Sight, Track


@dataclass(frozen=True, slots=True)
class Rest:
    """It is not for us; `reason` if it would be."""

    reason: str | None = None
    until: float = NEVER


@dataclass(frozen=True, slots=True)
class Wait:
    """A living member has it, or has been given it; look again at `until`."""

    holder: str
    until: float = NEVER


@dataclass(frozen=True, slots=True)
class Ask:
    """Nothing but the LAN can tell; silence is wanted at `ready_at`, `ahead` of a decision.

    `watched`: the restarting member whose host this is about.
    """

    ready_at: float
    ahead: bool = False
    watched: str | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """It is for us, but there is something in the way here."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Take:
    """Bind it, not later than `by`. `checked`: the LAN was silent just now."""

    by: float
    checked: bool


Stance = Rest | Wait | Ask | Refuse | Take


def stance(track: Track, sight: Sight, timing: Timing, now: float, calm_at: float) -> Stance:
    """What to do about an address that is not bound here.

    Before `calm_at` what we believe of others may be old, and nothing is taken.
    """
    assignment = sight.assignment(track)
    hindrance = _hindrance(track, sight, now)
    if assignment is None or assignment.owner != sight.me:
        holder = sight.inherits_from(track, assignment)
        if hindrance is None and holder is not None:
            restarts = holder in sight.restarting and holder not in sight.view.silent
            return Ask(NEVER, ahead=True, watched=holder if restarts else None)
        return Rest()
    if hindrance is not None:
        return hindrance
    holder = sight.claimed_by_other(track)
    if holder is not None:
        return Wait(holder)
    return _unclaimed(track, sight, timing, now, calm_at)


def _hindrance(track: Track, sight: Sight, now: float) -> Rest | Refuse | None:
    view = sight.view
    for name, hinders in (
        ("not_ready", not view.ready),
        ("fenced", view.fenced),
        ("draining", view.draining),
    ):
        if hinders:
            return Rest(name)
    if now < track.damped_until:
        return Rest("damped", track.damped_until)
    place = view.places.get(track.ip)
    if place is None or place.interface is None:
        reason = "no_place" if place is None else place.reason or "no_place"
        return Refuse(Condition(Kind.NO_INTERFACE, None, reason))
    found = foreign(track, sight)
    return None if found is None else Refuse(found)


def _unclaimed(
    track: Track, sight: Sight, timing: Timing, now: float, calm_at: float
) -> Ask | Wait | Take:
    top = sight.view.claims.top(track.ip)
    if top is not None and not top.held and top.to is not None:
        ours_until = track.granted_at + timing.grant
        theirs_until = track.released_at + timing.courtesy
        if top.to == sight.me and now <= ours_until:
            return Take(ours_until, checked=False)
        if top.to != sight.me and sight.live(top.to) and now < theirs_until:
            return Wait(top.to, theirs_until)
    ready_at = _ready_at(top, sight, calm_at)
    if now >= ready_at and track.check.silent(now, timing.fresh):
        return Take(track.check.silence + timing.fresh, checked=True)
    return Ask(ready_at)


def _ready_at(top: Claim | None, sight: Sight, calm_at: float) -> float:
    """Others must have had the time to fence before what they carried is bound elsewhere."""
    if top is None or not top.held:
        return calm_at
    return max(sight.view.takeover_not_before.get(top.owner, calm_at), calm_at)


def ask_at(track: Track, ask: Ask, timing: Timing, now: float) -> float:
    """When to ask so that the silence is fresh when it is wanted."""
    earliest = max(now, track.check.next_at)
    if ask.ahead:
        slow = now - track.since > timing.ahead
        return max(earliest, track.check.silence + timing.ahead_slow) if slow else earliest
    return max(earliest, ask.ready_at - timing.window)


def conflict(track: Track, sight: Sight, timing: Timing, now: float) -> Condition | None:
    """What the answers on the LAN amount to for an operator."""
    verdict = track.check.last
    if verdict is None:
        return None
    if verdict.answer is Answer.STRANGER:
        return Condition(Kind.ADDRESS_CONFLICT, verdict.mac, "stranger")
    if verdict.answer is Answer.HOST:
        overdue = track.check.overdue(sight.lease(verdict.who), now, timing)
        if overdue:
            return Condition(Kind.ADDRESS_CONFLICT, verdict.mac, f"still on {verdict.who}")
    if verdict.answer is Answer.BLIND:
        return Condition(Kind.UNCONFIRMED, None, verdict.who or "")
    return None
