"""The single writer: take what is new, fold it, decide, act, report.

Only this loop binds and releases addresses and publishes claims; the keeper beside it may only
renew or end what was bound here. Every turn starts from a picture of everything, so lost,
merged and repeated inputs are harmless.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from agent import notices, status, world
from agent.inputs import (
    ClaimsHeard,
    ContactReported,
    DrainWished,
    GatewayAnswered,
    KernelChanged,
    LeaseLapsed,
    MembersChanged,
    MembersSeen,
    MovesHeard,
    Nudged,
    RivalsHeard,
    WireAnswered,
)
from agent.outlook import Stance
from agent.snapshot import Snapshot
from egress.actuator import apply
from egress.kernel import KernelError
from egress.model import Bind, Unbind
from egress.plan import plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent.facts import Facts
    from agent.inputs import Input
    from agent.isolation import Isolation
    from agent.journal import Journal
    from agent.mailbox import Mailbox
    from agent.membership import Membership
    from agent.metrics import Metrics
    from agent.outlook import Outlook
    from agent.publisher import Publisher
    from agent.records import Records
    from agent.world import World
    from egress.claims import Claims
    from egress.decision import Decision, View
    from egress.keeper import Keeper
    from egress.kernel import Kernel, Lan
    from egress.model import IP, Binding, Claim, Outcome, Question, Step
    from egress.moves import Moves

OBSERVE_PATIENCE = 5.0
ASK_PATIENCE = 2.0
APPLY_PATIENCE = 5.0
LONGEST_SLEEP = 2.0
SHORTEST_SLEEP = 0.005

log = structlog.get_logger("wayout.egress")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the controller works with; `gateways` gives the gateways of each interface."""

    mailbox: Mailbox
    membership: Membership
    publisher: Publisher
    isolation: Isolation
    kernel: Kernel
    lan: Lan
    keeper: Keeper
    outlook: Outlook
    claims: Claims
    moves: Moves
    metrics: Metrics
    records: Records
    journal: Journal
    gateways: Callable[[], Mapping[str, Sequence[IP]]]
    clock: Callable[[], float]
    wall: Callable[[], float]


class Controller:
    """One loop; `snapshot` is what it knew after its last turn."""

    def __init__(self, start: World, parts: Parts, known: frozenset[Binding]) -> None:
        self._world = start
        self._parts = parts
        self._deadline = 0.0
        self._known = known
        self._damped = False
        self._desired: frozenset[Binding] = frozenset()
        self._mute: frozenset[str] = frozenset()
        self._rest: tuple[object, ...] = ()
        self._told: tuple[object, ...] = ()
        self._gateways: Mapping[str, Sequence[IP]] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self.snapshot: Snapshot | None = None
        self.turned = asyncio.Condition()

    async def run(self) -> None:
        """Turn until cancelled; a failure here ends the daemon."""
        async with asyncio.TaskGroup() as self._tasks:
            await self._observe()
            while True:
                now = self._parts.clock()
                deadline = min(self._deadline, now + LONGEST_SLEEP)
                await self._turn(await self._parts.mailbox.take(deadline))

    async def _turn(self, items: Sequence[Input]) -> None:
        parts = self._parts
        for item in items:
            self._hear(item, parts.clock())
        if any(isinstance(item, KernelChanged) for item in items):
            await self._observe()
        now = parts.clock()
        self._world = world.expire(self._world, now)
        view, own = await self._look(now)
        decision = parts.moves.consider(view, now)
        self._damped, self._mute = bool(decision.damped), decision.mute
        if decision.desired is not self._desired:
            self._desired = decision.desired
            parts.keeper.retain(decision.desired)
        parts.publisher.claims(self._dated(decision.publish), now)
        parts.publisher.state()
        self._ask(decision.asks)
        parts.journal.removed(decision.restores)
        await self._act(view, decision)
        await self._report(view, own, decision)

    # -- what comes in ---------------------------------------------------------------------

    def _hear(self, item: Input, now: float) -> None:
        parts = self._parts
        match item:
            case ClaimsHeard(claims):
                beaten = [claim for claim in claims if not parts.claims.fold(claim, now)]
                parts.moves.challenged(beaten, now)
            case WireAnswered(replies):
                parts.moves.heard(replies, now)
            case LeaseLapsed(bindings):
                parts.moves.lapsed(bindings, now)
                self._know(self._known.difference(bindings))
                parts.metrics.lease_lapsed(len(bindings))
            case RivalsHeard(macs):
                parts.moves.rivalled(macs, now)
            case MovesHeard(entries):
                parts.journal.heard(entries)
            case MembersChanged():
                item = parts.membership.seen()
            case _:
                pass
        self._note_contact(item, now)
        self._world = world.fold(self._world, item, now)

    def _note_contact(self, item: Input, now: float) -> None:
        """What outlives the turn elsewhere: the fence, and what is kept on disk."""
        parts = self._parts
        match item:
            case ContactReported():
                parts.isolation.contact(item, self._world, now)
            case GatewayAnswered(answers):
                parts.isolation.gateway(answers, self._world, now)
            case MembersSeen():
                parts.records.members(world.expected_names(self._world, item, now))
            case DrainWished(draining, until):
                wall = None if until is None else parts.wall() + until - now
                parts.records.drain(draining=draining, until=wall)
            case _:
                pass

    async def _observe(self) -> None:
        try:
            async with asyncio.timeout(OBSERVE_PATIENCE):
                observed = await self._parts.kernel.observe()
        except (KernelError, TimeoutError) as error:
            log.warning("egress.observe_failed", reason=str(error) or "timeout")
            return
        self._gateways = self._parts.gateways()
        if observed != self._world.observed:
            self._world = replace(self._world, observed=observed)

    # -- what follows ----------------------------------------------------------------------

    def _stance(self, now: float) -> Stance:
        return Stance(
            fenced=self._parts.isolation.fenced(now),
            damped=self._damped,
            unready=world.unready(self._world, now),
            mute=self._mute,
            gateways=self._gateways,
        )

    async def _look(self, now: float) -> tuple[View, Facts]:
        outlook, stance = self._parts.outlook, self._stance(now)
        if outlook.holds(self._world, stance, now):
            assert outlook.view is not None
            assert outlook.own is not None
            return outlook.view, outlook.own
        view, own = await outlook.look(self._world, stance, now)
        self._parts.publisher.facts(own, now)
        return view, own

    # -- what is done ----------------------------------------------------------------------

    def _ask(self, questions: Sequence[Question]) -> None:
        if questions:
            assert self._tasks is not None
            self._tasks.create_task(self._wire_check(tuple(questions)), name="wire-check")

    async def _wire_check(self, questions: tuple[Question, ...]) -> None:
        try:
            async with asyncio.timeout(ASK_PATIENCE):
                replies = await self._parts.lan.ask(questions)
        except (KernelError, TimeoutError) as error:
            log.warning("egress.wire_check_failed", reason=str(error) or "timeout")
            return
        self._parts.mailbox.put(WireAnswered(replies))

    async def _act(self, view: View, decision: Decision) -> None:
        parts = self._parts
        now = parts.clock()
        late = {binding for binding, by in decision.bind_by.items() if now > by}
        parts.moves.missed(late, now)
        self._deadline = now if late else min(decision.deadline, parts.outlook.again)
        # Whatever a part asks for, the loop gets its turn in between.
        self._deadline = max(self._deadline, now + SHORTEST_SLEEP)
        sources = (decision.desired, view.observed, self._known)
        if not late and not decision.announcements and _same(sources, self._rest):
            return
        wanted = decision.desired - late
        self._adopt(wanted)
        steps = (*plan(wanted, view.observed, self._known), *decision.announcements)
        # Planned once and found at rest: until one of the three is another there is nothing to do.
        self._rest = () if late or steps else sources
        if not steps:
            return
        outcome = await self._apply(steps, decision.bind_by)
        self._remember(outcome)
        now = parts.clock()
        parts.publisher.claims(parts.moves.applied(outcome, now, parts.wall()), now)
        parts.publisher.state()
        parts.journal.done(outcome)
        if any(isinstance(step, Bind | Unbind) for step in steps):
            await self._observe()
            parts.mailbox.put(Nudged("acted"))

    def _adopt(self, wanted: frozenset[Binding]) -> None:
        """What a predecessor left and we want is renewed from the first moment, and only then.

        Later on an address that the keeper does not hold has lapsed, whatever was seen before.
        """
        if self.snapshot is None:
            found = self._world.observed.bound
            self._parts.keeper.adopt(each for each in found if each.ours and each.binding in wanted)

    async def _apply(self, steps: Sequence[Step], bind_by: Mapping[Binding, float]) -> Outcome:
        """Under the keeper's lock if it releases: a renewal under way would bring it back."""
        parts = self._parts
        keeper = parts.keeper
        releases = [step.binding for step in steps if isinstance(step, Unbind)]
        lease = self._world.settings.egress.lease
        keeper.lease = lease
        since = parts.clock()
        async with keeper.still() if releases else contextlib.nullcontext():
            keeper.drop(releases)
            outcome = await apply(
                steps,
                parts.kernel,
                parts.lan,
                lease=lease,
                patience=APPLY_PATIENCE,
                bind_by=bind_by,
            )
        bound = [step.binding for step in outcome.done if isinstance(step, Bind)]
        keeper.hold(bound, since=since)
        return outcome

    def _remember(self, outcome: Outcome) -> None:
        """Note on disk what is ours, so that it is known as such when its mark is stripped."""
        bound = {step.binding for step in outcome.done if isinstance(step, Bind)}
        gone = {step.binding for step in outcome.done if isinstance(step, Unbind)}
        self._know((self._known | bound) - gone)

    def _know(self, known: frozenset[Binding]) -> None:
        if known != self._known:
            self._known = known
            self._parts.records.bound(known)

    # -- what is told ----------------------------------------------------------------------

    def _dated(self, claims: Sequence[Claim]) -> tuple[Claim, ...]:
        wall = self._parts.wall()
        return tuple(replace(claim, at=claim.at or wall) for claim in claims)

    async def _report(self, view: View, own: Facts, decision: Decision) -> None:
        parts, now = self._parts, self._parts.clock()
        parts.metrics.renewal_lag(parts.keeper.lag)
        parts.publisher.notices(notices.of(decision.conditions), now)
        await parts.journal.decided(decision, now, parts.wall())
        told = (
            self._world,
            view,
            own,
            decision.desired,
            decision.phases,
            decision.conditions,
            parts.claims.version,
            parts.membership.score,
        )
        if _same(told, self._told):
            return
        self._told = told
        carried = frozenset(binding.ip for binding in decision.desired & self._world.observed.ours)
        parts.publisher.carrying(bool(carried), now)
        self.snapshot = Snapshot(
            world=self._world,
            own=own,
            now=now,
            wall=parts.wall(),
            egresses=view.egresses,
            candidates=view.candidates,
            assignments=view.assignments,
            claims=parts.claims,
            phases=decision.phases,
            conditions=decision.conditions,
            places=view.places,
            carried=carried,
            score=parts.membership.score,
            fenced=view.fenced,
            unready=() if view.ready else world.unready(self._world, now),
        )
        parts.metrics.owned([str(ip) for ip in carried], status.states(self.snapshot))
        async with self.turned:
            self.turned.notify_all()

    async def empty(self) -> None:
        """Return once nothing is carried here and nothing is on its way."""
        await self.until(lambda shot: shot.empty)

    @property
    def world(self) -> World:
        """The picture of this moment."""
        return self._world

    async def until(self, holds: Callable[[Snapshot], bool]) -> None:
        """Return after the first turn that leaves a snapshot for which `holds`."""
        async with self.turned:
            await self.turned.wait_for(lambda: self.snapshot is not None and holds(self.snapshot))


def _same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    """Whether these are the very same objects: equal ones may take long to compare."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
