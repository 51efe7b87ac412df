"""What all parts of one machine share: who we are, whom we know, and what we want said.

Parts leave datagrams, dials and events here; the machine hands them out as one `Effects`.
"""

from __future__ import annotations

import math
from itertools import count
from typing import TYPE_CHECKING, Protocol

from gossip import addressing
from gossip.awareness import Awareness
from gossip.effects import NOTHING, Datagram, Dial, Effects
from gossip.events import ScoreChanged
from gossip.roster import Roster
from gossip.rumors import FRAMING, Rumors
from gossip.tuning import retransmissions
from gossip.wire import codec, compound, stream
from gossip.wire.messages import Origin, Ping

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from gossip.events import Event
    from gossip.peer import Address, Identity
    from gossip.roster import Record
    from gossip.tuning import Tuning
    from gossip.wire.messages import StreamMessage
    from gossip.wire.packet import Envelope

    Reply = Callable[[StreamMessage | None, float], None]

CRC_PROTOCOL = 5
"""Peers that understand this version take packets with a checksum."""
PACKET_FRAMING = 5 + 2 + FRAMING
"""Checksum, head of a compound, length of its first part."""
SEQUENCE_MAX = 0xFFFFFFFF


class Asker(Protocol):
    """Who waits for the answer to a ping."""

    def acked(self, seq: int, now: float) -> None:
        """The one that was asked, directly or through others, answered."""

    def nacked(self, seq: int, now: float) -> None:
        """A relay lives and says that its target is mute."""


class Local:
    """Owned by one machine."""

    def __init__(self, identity: Identity, tuning: Tuning, envelope: Envelope, rng: Random) -> None:
        self.identity = identity
        self.name = identity.name
        self.address = identity.address
        self.tuning = tuning
        self.envelope = envelope
        self.rng = rng
        self.roster = Roster(identity.name, rng)
        self.rumors = Rumors(longest=tuning.datagram_bytes - PACKET_FRAMING - envelope.overhead)
        self.awareness = Awareness(tuning.awareness_max)
        self.origin = Origin(
            addressing.pack(identity.address.host), identity.address.port, identity.name
        )
        self.leaving = False
        self.heard_at = -math.inf
        self.asked: dict[int, Asker] = {}
        self._sequence = 0
        self._tokens = count(1)
        self._replies: dict[int, Reply] = {}
        self._datagrams: list[Datagram] = []
        self._dials: list[Dial] = []
        self._events: list[Event] = []

    @property
    def said_goodbye(self) -> bool:
        """Whether we leave, and have said so as often as any rumor is said."""
        company = any(each.health.present for each in self.roster.others())
        return self.leaving and (self.name not in self.rumors or not company)

    def sizes(self, now: float) -> tuple[int, int]:
        """Records held now, and the most of late."""
        return len(self.roster), self.roster.size(now, self.tuning.size_memory)

    def retune(self, tuning: Tuning) -> None:
        """Other constants."""
        self.tuning = tuning
        self.rumors.longest = tuning.datagram_bytes - PACKET_FRAMING - self.envelope.overhead
        self.awareness.limit = tuning.awareness_max
        self.feel(0)

    def question(self, asker: Asker) -> int:
        """A fresh sequence number whose answers go to `asker`, until it forgets it."""
        self._sequence = self._sequence % SEQUENCE_MAX + 1
        self.asked[self._sequence] = asker
        return self._sequence

    def ping(self, seq: int, name: str) -> bytes:
        """An encoded ping of ours."""
        return codec.encode(Ping(seq, name, self.origin))

    def tell(self, event: Event) -> None:
        """Publish an event."""
        self._events.append(event)

    def feel(self, delta: int) -> None:
        """Change the health score."""
        if self.awareness.shift(delta):
            self.tell(ScoreChanged(self.awareness.score))

    def doubt(self, seconds: float, now: float) -> None:
        """Our own loop was late by so much."""
        if self.awareness.lagged(seconds, now):
            self.tell(ScoreChanged(self.awareness.score))

    def send(self, to: Address, peer: Record | None, *parts: bytes, gossip: bool = True) -> None:
        """One packet with these messages, filled up with rumors unless `gossip` is false."""
        if gossip and self.rumors:
            parts += tuple(self.draw(peer, sum(map(len, parts)) + FRAMING * len(parts)))
        self.post(to, peer, compound.bundle(parts))

    def post(self, to: Address, peer: Record | None, plain: bytes) -> None:
        """One packet with exactly these bytes."""
        crc = peer is not None and peer.protocol >= CRC_PROTOCOL
        self._datagrams.append(Datagram(to, self.envelope.close(plain, crc=crc)))

    def draw(self, peer: Record | None, taken: int = 0) -> list[bytes]:
        """Rumors for one packet to `peer` in which so many bytes are taken."""
        budget = self.tuning.datagram_bytes - PACKET_FRAMING - self.envelope.overhead - taken
        limit = retransmissions(self.tuning.retransmit_mult, len(self.roster))
        return self.rumors.draw(budget, limit, ours=peer is not None and peer.wayout)

    def dial(
        self, to: Address, message: StreamMessage, timeout: float, reply: Reply | None
    ) -> None:
        """Say `message` over TCP; `reply` is called with what comes back, None for nothing."""
        token = next(self._tokens)
        if reply is not None:
            self._replies[token] = reply
        data = stream.frame(message, self.envelope, dialler=True)
        self._dials.append(Dial(token, to, data, timeout, expects_reply=reply is not None))

    def replied(self, token: int, message: StreamMessage | None, now: float) -> None:
        """The shell's word on a dial of ours."""
        reply = self._replies.pop(token, None)
        if reply is not None:
            reply(message, now)

    def flush(self) -> Effects:
        """Everything that was left here since the last time."""
        if not (self._datagrams or self._dials or self._events):
            return NOTHING
        effects = Effects(tuple(self._datagrams), tuple(self._dials), tuple(self._events))
        self._datagrams, self._dials, self._events = [], [], []
        return effects
