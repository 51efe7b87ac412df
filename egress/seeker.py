"""Works on addresses that are not bound here: adopts, waits, asks, takes, or lets others have them.

The rules are in `taking`; here is what following them changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from egress import taking
from egress.decision import Stage
from egress.model import Binding, Cause, Claim
from egress.taking import Ask, Refuse, Rest, Take, Wait
from egress.track import Story, inherited
from egress.wirecheck import Answer

if TYPE_CHECKING:
    from egress.office import Office
    from egress.taking import Stance
    from egress.track import Sight, Track

BIND_PATIENCE = 0.5
"""Seconds beyond its last moment that a bind may take to be reported."""


class Seeker:
    """Changes tracks without a binding."""

    def __init__(self, office: Office) -> None:
        self._office = office
        self._me = office.me
        self._timing = office.timing

    def note_release(self, track: Track, sight: Sight, now: float) -> None:
        """Remember when a release was first seen, and whether it can be an old one.

        It is new if we saw the holding end, of a member that we have been in touch with for
        longer than a push/pull may bring old news after a partition, and did run all the while.
        """
        if now < self._office.calm_at:
            track.granted_at = float("-inf")
        before, top = track.top, sight.view.claims.top(track.ip)
        if top is before:
            return
        track.top = top
        if top is None or top.held:
            return
        track.released_at = now
        saw_it = before is not None and before.held and _same_claim(before, top)
        close = now - self._office.live_since.get(top.owner, now) >= self._timing.acquaintance
        new = saw_it and close and now >= self._office.calm_at
        track.granted_at = now if new else float("-inf")

    def adopt(self, track: Track, sight: Sight, now: float) -> bool:
        """What an earlier life bound is kept from the first moment, unless another has it."""
        if not track.adoptable:
            return False
        track.adoptable = not sight.view.ready
        binding = inherited(track, sight)
        if binding is None or sight.claimed_by_other(track) is not None:
            return False
        track.binding = binding
        track.adoptable = False
        track.seen = True
        track.bound_at = now
        track.enter(Stage.BOUND, None, now)
        return True

    def seek(self, track: Track, sight: Sight, now: float) -> None:
        """Follow the rules for an address that is not bound here."""
        track.wants = False
        if not track.configured:
            return
        stance = taking.stance(track, sight, self._timing, now, self._office.calm_at)
        track.condition = None
        stance = self._watch(track, stance)
        match stance:
            case Rest(reason, until):
                self._rest(track, sight, reason, now)
                track.wake(until)
            case Wait(holder, until):
                track.check.forget()
                track.story = Story()
                track.enter(Stage.WAITING, holder, now)
                track.wake(until)
            case Refuse(condition):
                self._rest(track, sight, condition.detail, now)
                track.condition = condition
                track.enter(Stage.BLOCKED, condition.detail, now)
            case Ask():
                self._ask(track, sight, stance, now)
            case Take(by, checked):
                self._take(track, sight, by, now)
                if checked:
                    track.story.checked = track.check.silence
            case _:
                assert_never(stance)

    def _watch(self, track: Track, stance: Stance) -> Stance:
        """A few addresses are enough to tell whether the host of a restarting member lives."""
        vigil = self._office.vigil
        watched = stance.watched if isinstance(stance, Ask) else None
        if track.watched is not None and track.watched != watched:
            vigil.dismiss(track.watched, track.ip)
        track.watched = watched
        if watched is None or vigil.admits(watched, track.ip):
            return stance
        track.watched = None
        return Rest()

    def _rest(self, track: Track, sight: Sight, reason: str | None, now: float) -> None:
        track.check.forget()
        if track.story.elected is not None:
            track.story = Story()
        track.enter(Stage.IDLE, reason, now)
        self._disown(track, sight)

    def _disown(self, track: Track, sight: Sight) -> None:
        """Others wait while our claim stands, so it must not stand for nothing."""
        top = sight.view.claims.top(track.ip)
        if top is None or not top.held or top.owner != self._me or not sight.view.ready:
            return
        if track.disowned == top.epoch or any(each.ours for each in sight.here(track)):
            return
        track.disowned = top.epoch
        track.epoch = max(track.epoch, top.epoch)
        # No heir: whoever wants it must ask, for we cannot say when it went.
        claim = Claim(track.ip, top.epoch, self._me, held=False, why=Cause.LEASE)
        self._office.publish.append(claim)

    def _ask(self, track: Track, sight: Sight, ask: Ask, now: float) -> None:
        if not ask.ahead:
            self._office.chronicle.elected(track, sight, now)
        track.condition = taking.conflict(track, sight, self._timing, now)
        verdict = track.check.last
        answer = None if verdict is None else verdict.answer
        who = None if verdict is None else verdict.who
        match answer:
            case Answer.STRANGER:
                track.enter(Stage.BLOCKED, who, now)
            case Answer.MEMBER:
                track.enter(Stage.WAITING, who, now)
            case _:
                track.enter(Stage.CHECKING, "ahead" if ask.ahead else who, now)
        at = taking.ask_at(track, ask, self._timing, now)
        if track.check.pending is not None:
            return
        if at <= now:
            self._office.asker.want(track)
        else:
            track.wake(at)

    def _take(self, track: Track, sight: Sight, by: float, now: float) -> None:
        place = sight.view.places[track.ip]
        assert place.interface is not None
        self._office.chronicle.elected(track, sight, now)
        track.binding = Binding(track.ip, place.interface)
        track.bind_by = by
        track.taken_on = sight.view.observed
        track.adoptable = False
        track.enter(Stage.BINDING, None, now)
        track.wake(by + BIND_PATIENCE)


def _same_claim(one: Claim, other: Claim) -> bool:
    return (one.epoch, one.owner) == (other.epoch, other.owner)
