"""Answering: pings to us, and pings that others ask us to send on their behalf."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gossip import addressing
from gossip.wire import codec
from gossip.wire.messages import Ack, Nack, Ping

if TYPE_CHECKING:
    from gossip.hearsay import Hearsay
    from gossip.local import Local
    from gossip.peer import Address
    from gossip.roster import Record
    from gossip.wire.messages import IndirectPing, Origin

RELAYS_MAX = 1024
"""Pings on behalf of others that are under way at once."""


@dataclass(frozen=True, slots=True)
class Errand:
    """One ping for somebody else: whom to answer, by when to say that nobody did."""

    seq: int
    asker: Address
    asker_seq: int
    nack: bool
    nack_at: float
    ends: float


class Relay:
    """Owned by one machine. Errands end in the order in which they began."""

    def __init__(self, local: Local, hearsay: Hearsay) -> None:
        self._local = local
        self._hearsay = hearsay
        self._errands: dict[int, Errand] = {}
        self._nacks: deque[Errand] = deque()

    @property
    def deadline(self) -> float:
        """When the next asker is to be told that nobody answered."""
        return self._nacks[0].nack_at if self._nacks else math.inf

    def advance(self, now: float) -> None:
        """Say whose targets are mute, and forget errands that are over."""
        while self._nacks and self._nacks[0].nack_at <= now:
            errand = self._nacks.popleft()
            if errand.seq in self._errands and errand.nack:
                self._local.send(errand.asker, None, codec.encode(Nack(errand.asker_seq)))
        while self._errands:
            oldest = next(iter(self._errands.values()))
            if oldest.ends > now and len(self._errands) < RELAYS_MAX:
                break
            self._finish(oldest.seq)

    def ping(self, ping: Ping, source: Address) -> Record | None:
        """Answer a ping that is meant for us; the member that asked, if it is known.

        A member that we do not hold alive hears so at once, whoever accused it.
        """
        local = self._local
        if ping.node and ping.node != local.name:
            return None
        asker = self._known(ping.origin)
        ack = codec.encode(Ack(ping.seq))
        to = _place(ping.origin) or source
        word = None
        if asker is not None and local.tuning.additions:
            word = self._hearsay.accusation(asker)
        local.send(to, asker, ack, *([] if word is None else [word]))
        return asker

    def indirect(self, request: IndirectPing, source: Address, now: float) -> None:
        """Ping somebody for somebody."""
        local, tuning = self._local, self._local.tuning
        target = addressing.locate(request.target, request.port or local.address.port)
        if target is None:
            return
        self.advance(now)
        seq = local.question(self)
        errand = Errand(
            seq=seq,
            asker=_place(request.origin) or source,
            asker_seq=request.seq,
            nack=request.nack,
            nack_at=now + tuning.nack_share * tuning.probe_timeout,
            ends=now + tuning.probe_timeout,
        )
        self._errands[seq] = errand
        self._nacks.append(errand)
        known = local.roster.get(request.node)
        peer = known if known is not None and known.address == target else None
        local.send(target, peer, local.ping(seq, request.node))

    def acked(self, seq: int, now: float) -> None:
        """The target answered: pass it on, if the asker still waits."""
        errand = self._finish(seq)
        if errand is not None and now <= errand.ends:
            self._local.send(errand.asker, None, codec.encode(Ack(errand.asker_seq)))

    def nacked(self, seq: int, now: float) -> None:
        """Nobody relays for a relay."""

    def _finish(self, seq: int) -> Errand | None:
        self._local.asked.pop(seq, None)
        return self._errands.pop(seq, None)

    def _known(self, origin: Origin | None) -> Record | None:
        if origin is None or not origin.node:
            return None
        record = self._local.roster.get(origin.node)
        if record is None or record.address != _place(origin):
            return None
        return record


def _place(origin: Origin | None) -> Address | None:
    return None if origin is None else addressing.locate(origin.addr, origin.port)
