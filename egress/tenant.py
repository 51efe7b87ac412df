"""Works on addresses that are bound here: announces, defends, puts back, hands over.

The rules are in `holding`; here is what following them changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from egress import causes, holding
from egress.decision import NEVER, Condition, Kind, Stage
from egress.holding import Release
from egress.model import Announce, Cause, Claim
from egress.seeker import BIND_PATIENCE
from egress.wirecheck import Answer, Verdict

if TYPE_CHECKING:
    from egress.model import Failure
    from egress.office import Office
    from egress.track import Sight, Track

CHALLENGES_MAX = 3
"""A living member that still answers after so many questions will not go: ours to yield."""
ASK_RIVAL_AGAIN = 0.3
"""Seconds until a member that answers for what we hold is asked about again."""
RETRY = 0.25
"""Seconds after which an address that is still there is released again."""
REPROCLAIM = 2.0
"""Seconds between two defences of an address: two defenders would feed each other."""
HANDOVER = 1.0
"""Seconds within which a delete must be acknowledged for the release to stand for the asking:
later, others may have taken us for dead and asked the LAN themselves."""
FAILURES_MAX = 3
"""Refusals of the kernel after which another host may try."""
FAILURES_COUNTED = 16
SHOWN_BY = 0.5
"""Seconds after which the kernel must show what it said it had bound."""


class Tenant:
    """Changes tracks with a binding."""

    def __init__(self, office: Office) -> None:
        self._office = office
        self._me = office.me
        self._timing = office.timing

    def hold(self, track: Track, sight: Sight, now: float) -> None:
        """Follow the rules for an address that is bound here, or is being bound."""
        verdict = holding.stance(track, sight, self._timing, now)
        if isinstance(verdict, Release):
            self._release(track, sight, verdict, now)
        elif track.stage is Stage.BINDING:
            self._await(track, sight, now)
        elif self._answered(track, sight, now) and self._present(track, sight, now):
            self._restate(track, sight)
            self._speak(track, now)

    def _await(self, track: Track, sight: Sight, now: float) -> None:
        """The kernel was told, or not; if it shows the address, it was."""
        assert track.binding is not None
        shown = sight.bound.get(track.binding.key)
        if shown is not None and shown.ours and sight.view.observed is not track.taken_on:
            self._office.publish += self.bound(track, sight, now, 0.0)
            self._speak(track, now)
        elif now >= track.bind_by + BIND_PATIENCE:
            self.drop(track, now)
            track.wake(now)
        else:
            track.wake(track.bind_by + BIND_PATIENCE)

    def _answered(self, track: Track, sight: Sight, now: float) -> bool:
        """Take in what the LAN said about an address that we hold; False when that ended it."""
        verdict, track.answer = track.answer, None
        if verdict is None:
            return True
        match verdict.answer:
            case Answer.SILENT | Answer.RIVAL | Answer.BLIND:
                track.challenges = 0
                track.condition = None
                return True
            case Answer.STRANGER:
                track.condition = Condition(Kind.ADDRESS_CONFLICT, verdict.mac, "stranger")
                self.defend(track, now)
                track.ask_again = track.check.next_at
                return True
            case Answer.HOST:
                return self._yield(track, sight, verdict, now)
            case Answer.MEMBER:
                return self._contend(track, sight, verdict, now)
            case _:
                assert_never(verdict.answer)

    def _contend(self, track: Track, sight: Sight, verdict: Verdict, now: float) -> bool:
        """Both have it: the claims decide, and they get there; if not, the other one stays."""
        track.challenges += 1
        top = sight.view.claims.top(track.ip)
        beaten = top is not None and holding.beaten(track, top, self._me)
        if beaten or track.challenges > CHALLENGES_MAX:
            return self._yield(track, sight, verdict, now)
        track.repeat_claim = True
        self.defend(track, now)
        track.ask_again = now + ASK_RIVAL_AGAIN
        return True

    def _yield(self, track: Track, sight: Sight, verdict: Verdict, now: float) -> bool:
        track.condition = Condition(Kind.ADDRESS_CONFLICT, verdict.mac, verdict.who or "")
        self._release(track, sight, Release("conflict"), now)
        return False

    def _present(self, track: Track, sight: Sight, now: float) -> bool:
        """Put back what another hand removed; False when that has been tried often enough."""
        assert track.binding is not None
        timing = self._timing
        if sight.has(track.binding):
            track.seen, track.restoring = True, False
            return True
        if not track.seen and now < track.bound_at + SHOWN_BY:
            track.wake(track.bound_at + SHOWN_BY)
            return True
        if track.restoring and now < track.restore_at + SHOWN_BY:
            track.wake(track.restore_at + (SHOWN_BY if now >= track.restore_at else 0.0))
            return True
        if now < self._office.calm_at:
            # It may have run out while we did not run, and be another's by now.
            self.drop(track, now)
            track.lapsed = True
            track.wake(now)
            return False
        while track.restores and now - track.restores[0] > timing.restore_window:
            track.restores.popleft()
        if len(track.restores) >= timing.restores:
            self._damp(track, sight, now)
            return False
        return self._put_back(track, now)

    def _put_back(self, track: Track, now: float) -> bool:
        tries = len(track.restores)
        pause = 0.0 if not tries else min(self._timing.restore_max, 0.1 * 2 ** (tries - 1))
        assert track.binding is not None
        self._office.restores.append(track.binding)
        track.restores.append(now)
        track.restoring = True
        track.restore_at = now + pause
        track.bind_by = track.restore_at + SHOWN_BY
        track.wake(track.restore_at if pause else track.bind_by)
        return True

    def _damp(self, track: Track, sight: Sight, now: float) -> None:
        """Somebody here keeps removing it: elsewhere it may live longer."""
        assignment = sight.assignment(track)
        heir = assignment.standby if assignment is not None else None
        track.damped_until = now + self._timing.damping
        track.restores.clear()
        fit = heir is not None and sight.fit(heir)
        self._release(track, sight, Release("removed", heir if fit else None), now)
        track.trouble = Condition(Kind.ADDRESS_REMOVED, None, "removed by another program")
        track.wake(track.damped_until)

    def _restate(self, track: Track, sight: Sight) -> None:
        if not sight.view.ready:
            return
        claim = holding.restated(track, sight)
        if claim is None and track.repeat_claim and track.epoch:
            claim = Claim(track.ip, track.epoch, self._me, held=True)
        track.repeat_claim = False
        if claim is not None:
            track.epoch = claim.epoch
            self._office.publish.append(claim)

    def _speak(self, track: Track, now: float) -> None:
        """Announce what fell due, and ask what has to be asked, while it is ours."""
        assert track.binding is not None
        due = False
        while track.announcements and track.announcements[0] <= now:
            track.announcements.popleft()
            due = True
        if due:
            self._office.announce.append(Announce(track.binding, first=track.first_due))
            self._office.chronicle.announced(track, now)
        if track.announcements:
            track.wake(track.announcements[0])
        if track.ask_again <= now:
            track.ask_again = NEVER
            self._office.asker.want(track)
        track.wake(track.ask_again)

    # -- what goes -------------------------------------------------------------------------

    def _release(self, track: Track, sight: Sight, release: Release, now: float) -> None:
        if track.stage is Stage.BINDING:
            self.drop(track, now)
            return
        assert track.binding is not None
        top = sight.view.claims.top(track.ip)
        if track.epoch == 0 and top is not None and top.owner == self._me:
            track.epoch = top.epoch  # of an earlier life
        track.heir = release.heir
        track.why = causes.of_release(track, sight, release.reason)
        track.wants = False
        track.announcements.clear()
        track.taken_on = sight.view.observed
        track.enter(Stage.RELEASING, release.reason, now)
        if track.seen and sight.rid_of(track):
            self._office.publish += self.unbound(track, now, 0.0)
        else:
            track.wake(now + RETRY)

    def leave(self, track: Track, sight: Sight, now: float) -> None:
        """Until the kernel says that it is gone, or shows that it is."""
        assert track.binding is not None
        looked = sight.view.observed is not track.taken_on
        shown = track.seen or now - track.since > SHOWN_BY
        if looked and shown and sight.rid_of(track):
            self._office.publish += self.unbound(track, now, 0.0)
        else:
            track.wake(now + RETRY)

    # -- what the kernel did ---------------------------------------------------------------

    def bound(self, track: Track, sight: Sight, now: float, wall: float) -> list[Claim]:
        """The kernel has it: claim it, announce it, and ask whether we are alone with it."""
        track.proclaim(now, self._timing)
        track.seen = False
        track.bound_at = now
        if track.stage is Stage.BOUND:
            return []
        top = sight.view.claims.top(track.ip)
        track.epoch = max(track.epoch, 0 if top is None else top.epoch) + 1
        track.enter(Stage.BOUND, None, now)
        track.trouble = track.condition = None
        track.lapsed = False
        track.failures = 0
        track.story.bound = now
        track.check.forget()
        track.ask_again = now
        return [Claim(track.ip, track.epoch, self._me, held=True, at=wall)]

    def unbound(self, track: Track, now: float, wall: float) -> list[Claim]:
        """The kernel has it no more: say so, if it was ever said that we have it."""
        if track.stage is not Stage.RELEASING:
            self.drop(track, now)
            return []
        heir = track.heir if now - track.since <= HANDOVER else None
        why = track.why or Cause.CONFIG
        claim = Claim(track.ip, track.epoch, self._me, held=False, at=wall, to=heir, why=why)
        if track.detail != "claim":
            self._office.chronicle.given_up(track, heir, why, now)
        self.drop(track, now)
        return [claim] if claim.epoch else []

    def failed(self, track: Track, sight: Sight, failure: Failure, now: float) -> None:
        """The kernel refused to bind it, or there was no time left for it."""
        if track.stage is Stage.BOUND:
            track.restore_at = now
            return
        self.drop(track, now)
        if not failure.errno:
            return
        timing = self._timing
        track.trouble = Condition(Kind.BIND_ERROR, None, failure.message)
        pause = min(timing.stranger_max, timing.blind * 2**track.failures)
        track.check.next_at = now + pause * self._office.rng.uniform(0.75, 1.0)
        track.failures = min(track.failures + 1, FAILURES_COUNTED)
        if track.failures >= FAILURES_MAX and now >= track.passed_until:
            self._pass_on(track, sight, now)

    def _pass_on(self, track: Track, sight: Sight, now: float) -> None:
        """Let the next one try, since our host will not; not if we carry the other half.

        It must ask the LAN, for this is not the release of anything that we held.
        """
        assignment, top = sight.assignment(track), sight.view.claims.top(track.ip)
        heir = assignment.standby if assignment is not None else None
        halves = [each for ip in track.egress.ips for each in sight.on_host(ip) if each.ours]
        if heir is None or not sight.fit(heir) or halves:
            return
        track.passed_until = now + self._timing.damping
        track.epoch = max(track.epoch, 0 if top is None else top.epoch) + 1
        claim = Claim(track.ip, track.epoch, self._me, held=False, to=heir, why=Cause.HEALTH)
        self._office.publish.append(claim)

    def drop(self, track: Track, now: float) -> None:
        """It is not ours any more, and nobody has to be told."""
        track.adoptable = False
        track.let_go(now)

    def defend(self, track: Track, now: float) -> bool:
        """Announce again because another speaks for it; False when that was done just now."""
        if now - track.proclaimed_at < REPROCLAIM:
            return False
        track.proclaim(now, self._timing)
        return True
