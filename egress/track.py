"""What one node remembers about one address, and what a look at the world adds to that."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from egress.decision import NEVER, Condition, Kind, Stage
from egress.model import Cause
from egress.scores import score
from egress.wirecheck import Check, Company, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from egress.decision import Timing, View
    from egress.model import (
        IP,
        Assignment,
        Binding,
        Bound,
        Candidate,
        Claim,
        Egress,
        Interface,
        Observed,
    )

Key = tuple[int, int, str]

LIFE_WORTH_KEEPING = 0.5
"""Seconds that an address of an earlier life must have left to be taken over rather than dropped:
less may be gone before the first renewal reaches the kernel."""


@dataclass(slots=True)
class Story:
    """The times of a move that is under way; becomes a `Move`."""

    origin: str | None = None
    cause: Cause = Cause.START
    lost: float | None = None
    detected: float | None = None
    elected: float | None = None
    checked: float | None = None
    bound: float | None = None


@dataclass(slots=True, eq=False)
class Track:
    """One address. `binding` is set while it is bound, being bound, or being released.

    `epoch`: of our own claim, 0 when unknown. `seen`: the kernel has shown it since it was bound.
    `adoptable`: what the kernel holds with our mark may be of an earlier life. `heir`: to whom a
    release under way goes. `top`: the claim that counted at the last look; `released_at`: when it
    was first seen to be a release, `granted_at`: the same, if it is certain that it was new then.
    `why`: the cause of a release under way.
    `answer`: what the LAN said about an address that we hold, not yet taken in. `watched`: the
    restarting member whose host we ask about.
    """

    ip: IP
    egress: Egress
    configured: bool = True
    stage: Stage = Stage.IDLE
    detail: str | None = None
    since: float = 0.0
    due: float = NEVER
    binding: Binding | None = None
    epoch: int = 0
    bind_by: float = NEVER
    bound_at: float = 0.0
    taken_on: Observed | None = None
    seen: bool = False
    adoptable: bool = True
    lapsed: bool = False
    heir: str | None = None
    why: Cause | None = None
    top: Claim | None = None
    released_at: float = float("-inf")
    granted_at: float = float("-inf")
    disowned: int = 0
    check: Check = field(default_factory=Check)
    watched: str | None = None
    answer: Verdict | None = None
    ask_again: float = NEVER
    queued: bool = False
    wants: bool = False
    announcements: deque[float] = field(default_factory=deque)
    proclaimed_at: float = float("-inf")
    first_due: bool = False
    challenges: int = 0
    repeat_claim: bool = False
    restores: deque[float] = field(default_factory=deque)
    restoring: bool = False
    restore_at: float = float("-inf")
    damped_until: float = float("-inf")
    failures: int = 0
    passed_until: float = float("-inf")
    condition: Condition | None = None
    trouble: Condition | None = None
    story: Story = field(default_factory=Story)
    wished: Binding | None = None
    wished_by: float | None = None
    shown: tuple[object, ...] | None = None

    @property
    def restless(self) -> bool:
        """Something is going on that the world alone does not tell."""
        if self.stage is Stage.BOUND:
            wants = self.answer is not None or self.repeat_claim or self.restoring
            return wants or not self.seen
        return self.adoptable or self.detail is not None or self.condition is not None

    def enter(self, stage: Stage, detail: str | None, now: float) -> None:
        """Move to a stage; `since` changes only with the stage or its detail."""
        if (stage, detail) != (self.stage, self.detail):
            self.stage, self.detail, self.since = stage, detail, now

    def wake(self, at: float) -> None:
        """Be looked at again no later than `at`."""
        self.due = min(self.due, at)

    def proclaim(self, now: float, timing: Timing) -> None:
        """Announce at once and at the usual intervals from now."""
        self.announcements = deque(now + pause for pause in timing.announcements)
        self.proclaimed_at = now
        self.first_due = True

    def let_go(self, now: float) -> None:
        """Nothing of ours is bound any more, and nothing is remembered of how it was."""
        self.binding = self.answer = self.heir = self.why = None
        self.bind_by = self.ask_again = NEVER
        self.restore_at = float("-inf")
        self.seen = self.first_due = self.restoring = self.repeat_claim = False
        self.announcements.clear()
        self.challenges = 0
        self.check.forget()
        self.story = Story()
        self.enter(Stage.IDLE, None, now)


class Sight:
    """One view of the world, indexed; made once for each view."""

    def __init__(self, me: str, view: View) -> None:
        self.me = me
        self.view = view
        self.version = view.claims.version
        self.bound: dict[Key, Bound] = {each.binding.key: each for each in view.observed.bound}
        self.links: dict[str, Interface] = {each.name: each for each in view.observed.interfaces}
        self._by_ip: dict[tuple[int, int], list[Bound]] = {}
        for each in view.observed.bound:
            self._by_ip.setdefault(each.binding.key[:2], []).append(each)
        self._alive = {name for name, each in view.candidates.items() if _alive(each)} | {me}
        self.restarting = {
            name for name, each in view.candidates.items() if each.restarting and self.live(name)
        }
        self.owners = _owners(view.candidates, me)

    def live(self, name: str) -> bool:
        """Present (alive or suspect) and reachable: its word counts."""
        return name in self._alive

    def fit(self, name: str) -> bool:
        """Live and willing to carry something."""
        candidate = self.view.candidates.get(name)
        return (
            candidate is not None
            and name in self._alive
            and not candidate.reasons
            and not candidate.restarting
        )

    def assignment(self, track: Track) -> Assignment | None:
        """What the election says about the egress of this address."""
        return self.view.assignments.get(track.egress.name)

    def inherits_from(self, track: Track, assignment: Assignment | None) -> str | None:
        """The holder, if we come next and hear nothing from it: the time to ask, not to bind.

        Watchers miss it, or it restarts.
        """
        view = self.view
        if assignment is None or not (view.silent or self.restarting):
            return None
        heir = view.ahead.get(track.egress.name)
        if self.me != (assignment.standby if heir is None else heir.owner):
            return None
        top = view.claims.top(track.ip)
        if top is None or not top.held:
            return None
        return top.owner if top.owner in view.silent or top.owner in self.restarting else None

    def here(self, track: Track) -> list[Bound]:
        """What this host has of the address, on any interface and by any hand."""
        return self.on_host(track.ip)

    def on_host(self, ip: IP) -> list[Bound]:
        """The same for any address."""
        return self._by_ip.get((ip.version, int(ip)), [])

    def has(self, binding: Binding) -> bool:
        """The kernel shows the binding, with or without our mark."""
        return binding.key in self.bound

    def rid_of(self, track: Track) -> bool:
        """Nothing of ours is left of the address, on no interface: links may be renamed (K32)."""
        return not any(each.ours or each.binding == track.binding for each in self.here(track))

    def lease(self, name: str | None) -> float:
        """How long an address of this member may outlive its daemon, by its own word."""
        candidate = self.view.candidates.get(name or "")
        return candidate.lease if candidate is not None else 3.0

    def company(self, track: Track) -> Company:
        """Whose MACs are whose, for judging an answer about this address."""
        return Company(
            owners=self.owners,
            live=self.live,
            outranks=lambda name: outranks(track.egress, name, self.me),
            me=self.me,
        )

    def claimed_by_other(self, track: Track) -> str | None:
        """A living member other than us that claims any address of the same egress."""
        for ip in track.egress.ips:
            top = self.view.claims.top(ip)
            if top is not None and top.held and top.owner != self.me and self.live(top.owner):
                return top.owner
        return None


def at_rest(track: Track, sight: Sight, now: float) -> bool:
    """Whether the rules would change nothing; cheap, for so it is with most addresses."""
    view = sight.view
    assignment = view.assignments.get(track.egress.name)
    if track.due <= now or not track.configured or assignment is None:
        return False
    top = view.claims.top(track.ip)
    if top is not track.top:
        return False
    if track.stage is Stage.IDLE:
        ours = top is not None and top.held and top.owner == sight.me
        if ours or assignment.owner == sight.me or track.restless:
            return False
        return sight.inherits_from(track, assignment) is None
    if track.stage is not Stage.BOUND or track.restless or track.binding is None:
        return False
    if view.fenced or not view.ready or assignment.owner != sight.me or top is None:
        return False
    place = view.places.get(track.ip)
    return (
        top.owner == sight.me
        and top.held
        and top.epoch == track.epoch
        and place is not None
        and place.interface == track.binding.interface
        and track.binding.key in sight.bound
    )


def outranks(egress: Egress, rival: str, me: str) -> bool:
    """Whether `rival` goes before us when both ask for an address at the same time.

    Any order will do that both sides know without talking; the rendezvous score most often
    favours the one whom the election favours.
    """
    key = egress.ips[0]
    return (score(key, rival), rival) > (score(key, me), me)


def foreign(track: Track, sight: Sight) -> Condition | None:
    """Somebody else on this host has the address already: it is not ours to touch."""
    for each in sight.here(track):
        if not each.ours:
            where = f"{each.binding.interface}/{each.prefix}"
            return Condition(Kind.FOREIGN_ADDRESS, None, where)
    return None


def inherited(track: Track, sight: Sight) -> Binding | None:
    """What an earlier life of this daemon bound and what has enough of its lease left."""
    for each in sight.here(track):
        if each.ours and (each.valid is None or each.valid > LIFE_WORTH_KEEPING):
            return each.binding
    return None


def _alive(candidate: Candidate) -> bool:
    return candidate.present and not candidate.left and not candidate.unreachable


def _owners(candidates: Mapping[str, Candidate], me: str) -> dict[str, str]:
    owners = {mac: name for name, each in sorted(candidates.items()) for mac in each.macs}
    owners.update(dict.fromkeys(candidates[me].macs, me) if me in candidates else {})
    return owners
