"""Why an address changes hands: the one who gives it up knows best, and says so in its release.

Who takes over from a member that said nothing has to conclude it from what became of that member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from egress.eligibility import Refusal, misfit
from egress.model import Cause

if TYPE_CHECKING:
    from egress.model import Candidate, Egress
    from egress.track import Sight, Track

OF_RELEASE = {
    "claim": Cause.CONFLICT,
    "config": Cause.CONFIG,
    "conflict": Cause.CONFLICT,
    "failback": Cause.FAILBACK,
    "interface": Cause.CONFIG,
    "partition": Cause.PARTITION,
    "pinned": Cause.CONFIG,
    "removed": Cause.GUARD,
}
"""By the reason of a release, where that says it all."""
OF_REASON = {
    Refusal.STOPPING.value: Cause.NODE_LEFT,
    Refusal.DRAINING.value: Cause.DRAIN,
    Refusal.MAINTENANCE.value: Cause.DRAIN,
    Refusal.ISOLATED.value: Cause.PARTITION,
    Refusal.DAMPED.value: Cause.GUARD,
    Refusal.NOT_ELIGIBLE.value: Cause.CONFIG,
}
"""By what a member says against itself; every other word is about its health."""


def of_release(track: Track, sight: Sight, reason: str) -> Cause:
    """Why this node gives the address up; `reason` is that of `holding`."""
    found = OF_RELEASE.get(reason)
    if found is not None:
        return found
    me = sight.view.candidates.get(sight.me)
    if reason == "draining" and (me is None or not me.reasons):
        return Cause.DRAIN
    return Cause.CONFIG if me is None else of_member(me, track.egress)


def of_arrival(track: Track, sight: Sight) -> Cause:
    """Why the address comes to this node."""
    top = sight.view.claims.top(track.ip)
    if track.lapsed:
        return Cause.LEASE
    if top is None:
        return Cause.START
    if not top.held and top.why is not None:
        return top.why
    if top.owner == sight.me:
        return Cause.START
    holder = sight.view.candidates.get(top.owner)
    if holder is not None and holder.left:
        return Cause.NODE_LEFT
    if top.held or holder is None:
        return Cause.NODE_DEAD
    return of_member(holder, track.egress)


def of_member(member: Candidate, egress: Egress) -> Cause:
    """Why a member that is there does not keep an egress."""
    if member.reasons:
        return OF_REASON.get(member.reasons[0], Cause.HEALTH)
    match misfit(member, egress):
        case Refusal.SELECTOR:
            return Cause.SELECTOR
        case None:
            # Nothing is wrong with it: it had too many, or the objects are others now.
            return Cause.CONFIG if member.capacity is None else Cause.CAPACITY
        case _:
            return Cause.HEALTH
