"""What this node says to the others: its facts as metadata, its claims as messages and state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from agent import facts, news
from agent.membership import CLAIMS_KIND, MOVES_KIND, NOTICES_KIND
from agent.notices import to_plain
from gossip.peer import Health

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent.desk import Document
    from agent.facts import Facts
    from agent.notices import Notice
    from egress.claims import Claims
    from egress.model import Claim
    from gossip.node import Node

DIRECT_PEERS = 16
"""Up to so many members hear a claim at once and directly; more hear it by gossip."""
NOTICES_PERIOD = 10.0
"""Seconds after which notices are said again, for members that came later."""
PAGE_BYTES = 1100
"""Claims in one datagram: what is left of 1400 bytes after every layer."""

log = structlog.get_logger("wayout.gossip")


class Publisher:
    """The one hand that writes into gossip; says nothing that has been said already."""

    def __init__(self, me: str, node: Node, claims: Claims) -> None:
        self._me = me
        self._node = node
        self._claims = claims
        self._said: Facts | None = None
        self._version = -1
        self._noticed: tuple[Notice, ...] = ()
        self._noticed_at = 0.0
        self._carrying = False
        self._allowance = news.Allowance()

    def facts(self, own: Facts, now: float) -> None:
        """Metadata, when it differs from what was said last; `MetaTooLong` leaves the old."""
        if own != self._said:
            self._said = own
            self._node.perform(self._node.machine.set_meta(facts.to_plain(own), now))

    def claims(self, claims: Sequence[Claim], now: float) -> None:
        """Fold and publish: an heir hears it first, then everybody near, then gossip."""
        if not claims:
            return
        for claim in claims:
            self._claims.fold(claim, now)
        machine = self._node.machine
        for page in self._claims.pages(claims, PAGE_BYTES):
            for name in self._listeners(claims):
                self._node.perform(machine.send(name, CLAIMS_KIND, page, now))
            self._node.perform(machine.broadcast(CLAIMS_KIND, page, now))

    def notices(self, notices: tuple[Notice, ...], now: float) -> None:
        """What is wrong with addresses here, when it changed; and now and then for newcomers."""
        stale = bool(notices) and now - self._noticed_at >= NOTICES_PERIOD
        if notices != self._noticed or stale:
            self._noticed, self._noticed_at = notices, now
            value = to_plain(notices)
            machine = self._node.machine
            self._node.perform(
                machine.broadcast(NOTICES_KIND, value, now, about=f"notices of {self._me}")
            )

    def moves(self, entries: Sequence[Document], now: float) -> None:
        """Moves that ended here, for the histories of the others; not all of a great many."""
        machine = self._node.machine
        for page in news.pages(self._allowance.take(entries, now), PAGE_BYTES):
            self._node.perform(machine.broadcast(MOVES_KIND, page, now))

    def state(self) -> None:
        """What a peer gets with every push/pull: the top claim on each address, of whomever.

        A member that starts learns from it what it carried itself, and must not find it out of
        date, so it follows every claim that was heard.
        """
        if self._claims.version != self._version:
            self._version = self._claims.version
            self._node.machine.set_state(self._claims.to_plain())

    def carrying(self, carrying: bool, now: float) -> None:  # noqa: FBT001 - the one argument
        """Heartbeats to our watchers start and stop with the first and the last address."""
        if carrying != self._carrying:
            self._carrying = carrying
            self._node.perform(self._node.machine.carry(carrying, now))

    def _listeners(self, claims: Iterable[Claim]) -> list[str]:
        heirs = [claim.to for claim in claims if claim.to is not None and claim.to != self._me]
        present = [
            member.name
            for member in self._node.machine.members()
            if member.wayout and member.health <= Health.SUSPECT and member.name != self._me
        ]
        near = present if len(present) <= DIRECT_PEERS else []
        return list(dict.fromkeys([*heirs, *near]))
