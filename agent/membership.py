"""Gossip's events said aloud: log lines, counters, and word to the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import structlog

from agent import news, notices
from agent.inputs import (
    ClaimsHeard,
    ContactReported,
    MembersChanged,
    MembersSeen,
    MovesHeard,
    NoticesHeard,
)
from gossip import events
from gossip.peer import Health

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.mailbox import Mailbox
    from agent.metrics import Metrics
    from egress.model import Claim
    from gossip.events import Event, Plain
    from gossip.machine import Machine


CLAIMS_KIND = 32
"""Kind number of claims among our own messages."""
NOTICES_KIND = 33
"""Kind number of notices: all that the sender has to say, replacing what it said before."""
MOVES_KIND = 36
"""Kind number of finished moves, told by the member on which they ended."""
REMINDER = 60.0
"""Seconds between two warnings that somebody speaks another version."""

log = structlog.get_logger("wayout.gossip")


class Membership:
    """The one listener of the gossip node; `hear` is called on the loop, in order.

    `score` is our health score; `answered_at` is when somebody last answered a burst of pings.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        metrics: Metrics,
        claims: Callable[[Plain], tuple[Claim, ...]],
        machine: Machine,
        clock: Callable[[], float],
    ) -> None:
        self._mailbox = mailbox
        self._metrics = metrics
        self._claims = claims
        self._machine = machine
        self._clock = clock
        self.score = 0
        self.answered_at = float("-inf")
        self._silent: set[str] = set()
        self._lost: dict[str, float] = {}
        self._synced = False
        self._quiet_until = float("-inf")
        self._listeners: dict[int, Callable[[events.UserMessage], None]] = {}
        # Who is alone hears of no change, and sees itself all the same.
        mailbox.put(MembersChanged())

    def seen(self) -> MembersSeen:
        """The picture for the controller, with the members as the machine has them now."""
        members = {each.name: each for each in self._machine.members()}
        self._metrics.members(members.values())
        return MembersSeen(
            members=members,
            silent=frozenset(self._silent),
            lost=dict(self._lost),
            synced=self._synced,
        )

    def route(self, kind: int, hear: Callable[[events.UserMessage], None]) -> None:
        """Messages of this kind are for somebody else."""
        self._listeners[kind] = hear

    def hear(self, event: Event) -> None:
        """One event of the machine."""
        match event:
            case events.HealthChanged() | events.MetaChanged():
                self._member(event)
            case events.Silent() | events.Unreachable() | events.Reachable():
                self._verdict(event)
            case events.ProcessGone(name):
                log.warning("gossip.process_gone", peer=name)
            case events.UserMessage() | events.StateReceived():
                self._application(event)
            case events.Contact(answered, asked, since):
                self.answered_at = self._clock() if answered else self.answered_at
                self._mailbox.put(ContactReported(answered, asked, since))
            case events.Synced() | events.SyncFailed():
                self._sync(event)
            case _:
                self._remark(event)

    def _member(self, event: events.HealthChanged | events.MetaChanged) -> None:
        if isinstance(event, events.HealthChanged):
            name, health = event.member.name, event.member.health
            was = "unknown" if event.was is None else event.was.name.lower()
            log.info(
                "gossip.health_changed",
                peer=name,
                was=was,
                now=health.name.lower(),
                informant=event.informant,
            )
            self._metrics.health_changed(was, health.name.lower())
            if health is Health.DEAD:
                # A death by suspicion took seconds; nobody needs to be waited for any more.
                self._lost.setdefault(name, self._clock() - 1.0)
            elif health is not Health.SUSPECT:
                self._lost.pop(name, None)
                self._silent.discard(name)
        self._mailbox.put(MembersChanged())

    def _verdict(self, event: events.Silent | events.Unreachable | events.Reachable) -> None:
        match event:
            case events.Silent(name, since):
                log.debug("gossip.silent", peer=name, seconds=round(self._clock() - since, 3))
                self._silent.add(name)
            case events.Unreachable(name, since):
                seconds = round(self._clock() - since, 3)
                log.warning("gossip.unreachable", peer=name, seconds=seconds)
                self._lost[name] = since
            case events.Reachable(name):
                log.debug("gossip.reachable", peer=name)
                self._silent.discard(name)
                self._lost.pop(name, None)
            case _:
                assert_never(event)
        self._metrics.verdict(type(event).__name__.lower())
        self._mailbox.put(MembersChanged())

    def _application(self, event: events.UserMessage | events.StateReceived) -> None:
        kind = event.kind if isinstance(event, events.UserMessage) else CLAIMS_KIND
        if isinstance(event, events.UserMessage) and kind in self._listeners:
            self._listeners[kind](event)
            return
        if kind == NOTICES_KIND:
            self._notices(event)
            return
        if kind == MOVES_KIND:
            self._moves(event)
            return
        if kind != CLAIMS_KIND:
            self._metrics.dropped("unknown_kind")
            return
        try:
            claims = self._claims(event.value)
        except ValueError as error:
            self._metrics.dropped("bad_claims")
            log.debug("gossip.claims_refused", peer=event.sender, reason=str(error))
            return
        if claims:
            self._mailbox.put(ClaimsHeard(claims))

    def _notices(self, event: events.UserMessage | events.StateReceived) -> None:
        try:
            said = notices.read(event.value)
        except ValueError as error:
            self._metrics.dropped("bad_notices")
            log.debug("gossip.notices_refused", peer=event.sender, reason=str(error))
            return
        self._mailbox.put(NoticesHeard({event.sender: said}))

    def _moves(self, event: events.UserMessage | events.StateReceived) -> None:
        try:
            told = news.read(event.value, event.sender)
        except ValueError as error:
            self._metrics.dropped("bad_moves")
            log.debug("gossip.moves_refused", peer=event.sender, reason=str(error))
            return
        self._mailbox.put(MovesHeard(told))

    def _sync(self, event: events.Synced | events.SyncFailed) -> None:
        if isinstance(event, events.Synced):
            if not self._synced:
                log.info("gossip.joined", peer=str(event.address))
            self._synced = True
            self._mailbox.put(MembersChanged())
            return
        self._metrics.sync_failed(event.reason)
        say = log.debug
        if event.reason == "versions" and self._clock() >= self._quiet_until:
            # Trying again will not help, so somebody has to be told (gossip.delegate_version).
            self._quiet_until = self._clock() + REMINDER
            say = log.warning
        say("gossip.sync_failed", peer=str(event.address), reason=event.reason)

    def _remark(self, event: Event) -> None:
        match event:
            case events.Refuted(incarnation, accuser):
                log.warning("gossip.refuted", incarnation=incarnation, peer=accuser)
                self._metrics.refuted()
            case events.NameConflict(name, known, claimed):
                log.error("gossip.name_conflict", peer=name, known=str(known), claimed=str(claimed))
                self._metrics.dropped("name_conflict")
            case events.ProbeFailed(name, kind):
                self._metrics.probe_failed(name, kind)
            case events.DatagramsBlocked(name):
                log.warning("gossip.datagrams_blocked", peer=name)
                self._metrics.datagrams_blocked(name)
            case events.ScoreChanged(score):
                self.score = score
                self._metrics.health_score(score)
                log.debug("gossip.score_changed", score=score)
            case events.Dropped(source, reason):
                self._metrics.dropped(reason)
                log.debug("gossip.dropped", peer=source.host, reason=reason)
            case _:
                # The application's own messages and foreign ones are nothing to remark upon.
                pass
