"""Moves: decides for each egress IP when this node binds, keeps, releases, asks and announces.

Never acquire while a living member claims an address or anybody answers for it; give it up at
once when a living member has the better claim. Everything else here serves those two rules.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, assert_never

from egress.asking import interface_of
from egress.decision import NEVER, Decision, Stage
from egress.ledger import Ledger
from egress.model import Announce, Bind, Unbind
from egress.office import Office
from egress.seeker import Seeker
from egress.tenant import Tenant
from egress.track import Sight, Track, at_rest
from egress.wirecheck import Answer, judge

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from random import Random

    from egress.decision import Timing, View
    from egress.model import IP, Binding, Claim, Outcome, Reply

GRAIN = 0.001
"""Nothing is looked at twice within so many seconds, so that no rounding can make us spin."""
HEAP_SLACK = 4
"""Outdated deadlines are swept once there are so many entries for each address."""


class Moves:
    """The state of all addresses on this node; one writer calls it, nothing here acts.

    The caller applies each decision before it asks for the next one, and reads `observed` anew
    after that. `lapsed` comes before the `consider` that follows a stall.
    """

    def __init__(self, me: str, timing: Timing, rng: Random) -> None:
        self._me = me
        self._timing = timing
        self._rng = rng
        self._office = Office(me, timing, rng)
        self._seeker = Seeker(self._office)
        self._tenant = Tenant(self._office)
        self._tracks: dict[IP, Track] = {}
        self._sight: Sight | None = None
        self._looked: float | None = None
        self._dirty: dict[IP, Track] = {}
        self._heap: list[tuple[float, int, Track]] = []
        self._pushed = 0
        self._ledger = Ledger()

    def consider(self, view: View, now: float) -> Decision:
        """What follows from `view`; to be called on every change, and at the last `deadline`.

        With the same view object, and no claim folded since, only what fell due, or was told
        since, is looked at.
        """
        self.look(now)
        if view.fenced:
            # Shortcuts rest on having been in touch with the others all the while.
            self._office.calm_at = now + self._timing.stall
        sight = self._sight
        if sight is None or sight.view is not view or sight.version != view.claims.version:
            sight = self._turn(view, now)
            told = {each.ip for each in self._due(now)}
            todo: Iterable[Track] = [
                each
                for each in self._tracks.values()
                if not at_rest(each, sight, now) or each.ip in told
            ]
        else:
            todo = self._due(now)
        for track in todo:
            self._settle(track, sight, now)
        return self._decision(sight, now)

    def look(self, now: float) -> None:
        """The clock was looked at; shortcuts rest on our having run since the last time.

        To be called by whoever is awake; before anything is done with what waited meanwhile.
        """
        if self._looked is not None and now - self._looked > self._timing.stall:
            self._office.calm_at = now + self._timing.stall
        self._looked = now

    def heard(self, replies: Sequence[Reply], now: float) -> None:
        """Answers of the LAN; they take effect at the next `consider`."""
        sight = self._sight
        for reply in replies:
            track = self._tracks.get(reply.question.ip)
            if track is None or sight is None or not track.check.expects(reply):
                continue
            self._office.asker.answered(track)
            self._dirty[track.ip] = track
            if reply.question.interface == interface_of(track, sight.view):
                self._hear(track, sight, reply, now)

    def applied(self, outcome: Outcome, now: float, wall: float) -> tuple[Claim, ...]:
        """Take in what the kernel did; the claims that are true from now on, to be published."""
        claims: list[Claim] = []
        sight = self._sight
        for step in outcome.done:
            track = self._tracks.get(step.binding.ip)
            if track is None or sight is None or track.binding != step.binding:
                continue
            match step:
                case Bind():
                    claims += self._tenant.bound(track, sight, now, wall)
                case Unbind():
                    claims += self._tenant.unbound(track, now, wall)
                case Announce():
                    self._announced(track, step, now)
                case _:
                    assert_never(step)
            self._dirty[track.ip] = track
        for failure in outcome.failed:
            track = self._tracks.get(failure.step.binding.ip)
            mine = track is not None and track.binding == failure.step.binding
            if track is not None and sight is not None and mine and isinstance(failure.step, Bind):
                self._tenant.failed(track, sight, failure, now)
                self._dirty[track.ip] = track
        return tuple(claims)

    def missed(self, bindings: Collection[Binding], now: float) -> None:
        """It was too late to bind these when their turn came: silence has to be fresh again."""
        for binding in bindings:
            track = self._tracks.get(binding.ip)
            if track is not None and track.binding == binding and track.stage is Stage.BINDING:
                self._tenant.drop(track, now)
                self._dirty[track.ip] = track

    def lapsed(self, bindings: Sequence[Binding], now: float) -> None:
        """Our lease on these ran out, or may have: they are nobody's, we ask like anybody else."""
        for binding in bindings:
            track = self._tracks.get(binding.ip)
            held = track is not None and track.stage in {Stage.BOUND, Stage.BINDING}
            if track is not None and held and track.binding == binding:
                self._tenant.drop(track, now)
                track.lapsed = True
                self._dirty[track.ip] = track

    def rivalled(self, macs: Mapping[IP, str], now: float) -> None:
        """Another MAC was seen speaking for these addresses: defend them, and ask who it is."""
        for ip in macs:
            track = self._tracks.get(ip)
            if track is not None and track.stage is Stage.BOUND:
                self._tenant.defend(track, now)
                track.ask_again = now
                self._dirty[ip] = track

    def challenged(self, claims: Sequence[Claim], now: float) -> None:
        """Other members claimed these, in vain: let them and the LAN hear that they are ours.

        Old news of a dead member, or of a release, is no challenge.
        """
        for claim in claims:
            track = self._tracks.get(claim.ip)
            if track is None or track.stage is not Stage.BOUND or not self._rivals(claim):
                continue
            if self._tenant.defend(track, now):
                track.repeat_claim = True
                self._dirty[track.ip] = track

    def _rivals(self, claim: Claim) -> bool:
        sight = self._sight
        return (
            claim.held and claim.owner != self._me and sight is not None and sight.live(claim.owner)
        )

    def _hear(self, track: Track, sight: Sight, reply: Reply, now: float) -> None:
        check, timing = track.check, self._timing
        verdict = judge(reply, sight.company(track), timing.window)
        up_since = self._office.carrier_since.get(reply.question.interface, now)
        if reply.control is None and now < up_since + timing.carrier:
            # A port may take its time before it forwards (K35), and nobody else could tell.
            verdict = verdict.doubted()
        check.hear(verdict, min(reply.heard, now), timing, self._rng)
        if verdict.answer is Answer.HOST and check.overdue(sight.lease(verdict.who), now, timing):
            check.next_at = now + check.back_off(timing.stranger, timing.stranger_max, self._rng)
        if track.stage is Stage.BOUND:
            track.answer = verdict
        watched = track.watched or verdict.who
        if watched is not None:
            self._office.vigil.hear(watched, track.ip, verdict)
        if track.watched is not None and track.watched not in self._office.vigil.mute:
            check.next_at = now + timing.vigil

    def _announced(self, track: Track, step: Announce, now: float) -> None:
        if step.first and track.first_due and track.stage is Stage.BOUND:
            if track.announcements and track.announcements[0] <= now:
                track.announcements.popleft()
            self._office.chronicle.announced(track, now)

    def _turn(self, view: View, now: float) -> Sight:
        before = self._sight
        sight = self._sight = Sight(self._me, view)
        if before is None or before.view.egresses is not view.egresses:
            self._enrol(view)
        gone = [name for name in view.candidates if not sight.live(name)]
        before_now = self._office.chronicle.gone
        self._office.chronicle.gone = {name: before_now.get(name, now) for name in gone}
        since = self._office.live_since
        live = [name for name in view.candidates if sight.live(name)]
        self._office.live_since = {name: since.get(name, now) for name in live}
        present = {name for name, each in view.candidates.items() if each.present}
        links = {name for name, link in sight.links.items() if link.carrier}
        up = self._office.carrier_since
        self._office.carrier_since = {name: up.get(name, now) for name in sorted(links)}
        self._office.vigil.keep(sight.restarting | (present - set(live)))
        if before is not None and before.links != sight.links:
            self._links_changed(before, sight, now)
        return sight

    def _enrol(self, view: View) -> None:
        """Follow the configuration; what is no longer in it is released before it is forgotten."""
        for track in self._tracks.values():
            track.configured = False
        for egress in view.egresses:
            for ip in egress.ips:
                if ip not in self._tracks:
                    self._tracks[ip] = Track(ip, egress)
                self._tracks[ip].egress = egress
                self._tracks[ip].configured = True

    def _links_changed(self, before: Sight, sight: Sight, now: float) -> None:
        """A link that came back, or has another MAC, must be announced on again (K10, K35)."""
        news = set()
        for name, link in sight.links.items():
            old = before.links.get(name)
            if old is None or old.mac != link.mac or (link.carrier and not old.carrier):
                news.add(name)
        for track in self._tracks.values():
            binding = track.binding
            if binding is not None and track.stage is Stage.BOUND and binding.interface in news:
                track.proclaim(now, self._timing)
                self._dirty[track.ip] = track

    def _due(self, now: float) -> list[Track]:
        todo, self._dirty = self._dirty, {}
        while self._heap and self._heap[0][0] <= now:
            due, _, track = heapq.heappop(self._heap)
            if track.due == due:
                track.due = NEVER
                todo[track.ip] = track
        return list(todo.values())

    def _settle(self, track: Track, sight: Sight, now: float) -> None:
        was = track.due
        track.due = NEVER
        self._office.asker.expire(track, now)
        self._seeker.note_release(track, sight, now)
        if track.stage is Stage.RELEASING:
            self._tenant.leave(track, sight, now)
        elif track.binding is not None or self._seeker.adopt(track, sight, now):
            self._tenant.hold(track, sight, now)
        else:
            self._seeker.seek(track, sight, now)
        if track.check.pending is not None:
            track.wake(track.check.pending + self._timing.lost_reply)
        track.due = max(track.due, now + GRAIN)
        self._schedule(track, was)
        self._ledger.note(track, now)
        if not track.configured and track.binding is None:
            self._forget(track)

    def _forget(self, track: Track) -> None:
        """If the address comes back into the configuration, it begins anew."""
        del self._tracks[track.ip]
        self._ledger.strike(track)
        track.wants, track.due = False, NEVER
        if track.check.pending is not None:
            self._office.asker.answered(track)

    def _schedule(self, track: Track, was: float) -> None:
        if track.due in {was, NEVER}:
            return
        self._pushed += 1
        heapq.heappush(self._heap, (track.due, self._pushed, track))
        if len(self._heap) > HEAP_SLACK * (len(self._tracks) + HEAP_SLACK):
            self._heap = [entry for entry in self._heap if entry[2].due == entry[0]]
            heapq.heapify(self._heap)

    def _decision(self, sight: Sight, now: float) -> Decision:
        office, ledger = self._office, self._ledger
        asks = office.asker.questions(sight.view, now, self._asked)
        ledger.freeze()
        decision = Decision(
            desired=ledger.desired,
            bind_by=ledger.bind_by,
            asks=asks,
            announcements=tuple(office.announce),
            publish=tuple(office.publish),
            phases=ledger.phases,
            conditions=ledger.conditions,
            moves=office.chronicle.take(),
            damped=ledger.damped,
            mute=office.vigil.mute,
            deadline=min(self._heap[0][0] if self._heap else NEVER, self._tick(sight, now)),
            restores=tuple(office.restores),
        )
        office.announce, office.publish, office.restores = [], [], []
        return decision

    def _tick(self, sight: Sight, now: float) -> float:
        """When to look at the clock, if nobody else does: heartbeats wake who carries."""
        desired = self._ledger.desired
        carrying = any(each.ours and each.binding in desired for each in sight.view.observed.bound)
        return NEVER if carrying else now + self._timing.tick

    def _asked(self, track: Track) -> None:
        was = track.due
        assert track.check.pending is not None
        track.wake(track.check.pending + self._timing.lost_reply)
        self._schedule(track, was)
