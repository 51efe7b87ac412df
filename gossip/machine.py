"""One member of the cluster as a pure machine: inputs and time in, `Effects` out.

It owns the parts and hands inputs to them; the rules are theirs. The shell calls `advance` no
earlier than `deadline`, answers every dial with `replied`, and performs the effects in order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from gossip import beat
from gossip.addressing import locate
from gossip.bulletin import FIRST_KIND, Bulletin
from gossip.contact import Contact
from gossip.effects import NOTHING
from gossip.events import Dropped, ForeignMessage
from gossip.healing import Healing
from gossip.hearsay import Hearsay, encoded
from gossip.local import Local
from gossip.probe import Prober
from gossip.pulse import Pulse
from gossip.relay import Relay
from gossip.requests import Requests
from gossip.spread import Spread
from gossip.sync import Sync, claim
from gossip.tuning import NEVER
from gossip.verdicts import WORDS, Verdicts
from gossip.watch import Watch
from gossip.wire import own, stream
from gossip.wire.messages import (
    Ack,
    Alive,
    Dead,
    Err,
    IndirectPing,
    Nack,
    Ping,
    PushPull,
    Suspect,
    User,
    WireError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from gossip.effects import Effects
    from gossip.events import Plain
    from gossip.peer import Address, Identity, Member
    from gossip.requests import Done
    from gossip.tuning import Tuning
    from gossip.wire.messages import PacketMessage, PeerState, StreamMessage
    from gossip.wire.packet import Envelope

META_MAX = 512
"""Bytes of metadata that a record has room for (memberlist's MetaMaxSize)."""
STALL = 0.05
"""Seconds by which the shell may be late before we count as having slept."""


class MetaTooLong(ValueError):  # noqa: N818 - the seam's name
    """Metadata that fits no record; nothing was changed."""


class Machine:
    """A member of the cluster. Times are loop seconds; `envelope` may be replaced while running."""

    def __init__(
        self, identity: Identity, tuning: Tuning, envelope: Envelope, rng: Random, now: float
    ) -> None:
        if not identity.meta:
            identity = replace(identity, meta=own.pack(own.META, {}))
        if len(identity.meta) > META_MAX:
            raise MetaTooLong(f"{len(identity.meta)} bytes of metadata, {META_MAX} at most")
        local = self._local = Local(identity, tuning, envelope, rng)
        self._spread = Spread(local)
        self._verdicts = Verdicts(local, self._spread)
        self._hearsay = Hearsay(local, self._verdicts)
        self._relay = Relay(local, self._hearsay)
        self._prober = Prober(local, self._hearsay)
        self._sync = Sync(local, self._hearsay)
        self._healing = Healing(local, self._hearsay, self._sync)
        self._contact = Contact(local)
        self._watch = Watch(local, self._verdicts, self._contact)
        self._pulse = Pulse(local, self._contact, self._watch)
        self._bulletin = Bulletin(local, self._spread)
        self._requests = Requests(local)
        self.serve = self._requests.serve
        self._parts = (
            self._relay,
            self._prober,
            self._hearsay,
            self._contact,
            self._pulse,
            self._watch,
            self._sync,
            self._healing,
            self._spread,
        )
        self._started = False
        self._due = NEVER
        self._woke = now
        self._hearsay.me.since = now

    # State.

    @property
    def deadline(self) -> float:
        """When `advance` is to be called; infinity when there is nothing to wait for."""
        return self._due

    @property
    def calm(self) -> bool:
        """Whether heartbeats may wait in the kernel until the deadline: nobody is missed."""
        return self._watch.calm(carrying=self._pulse.carrying)

    @property
    def left(self) -> bool:
        """Whether goodbye has been said, as often as any rumor is."""
        return self._local.said_goodbye

    @property
    def score(self) -> int:
        """Our local health score: 0 is well."""
        return self._local.awareness.score

    @property
    def watching(self) -> tuple[Address, ...]:
        """Where the members live whose heartbeats we watch."""
        return tuple(self._watch.places)

    @property
    def envelope(self) -> Envelope:
        """The outer layers of what we send, for streams that the shell reads."""
        return self._local.envelope

    @envelope.setter
    def envelope(self, envelope: Envelope) -> None:
        self._local.envelope = envelope
        self._local.retune(self._local.tuning)

    def members(self) -> tuple[Member, ...]:
        """Everybody known, ourselves and the dead that are still knocked at included."""
        return tuple(record.member() for record in self._local.roster.everybody())

    def member(self, name: str) -> Member | None:
        """One of them."""
        roster = self._local.roster
        record = roster.get(name) or roster.graves.get(name)
        return None if record is None else record.member()

    def sizes(self, now: float) -> tuple[int, int]:
        """Members counted now, and the largest number of late, which timing goes by."""
        return self._local.sizes(now)

    # Inputs of the shell.

    def start(self, now: float) -> Effects:
        """Become a member: say that we live, and dial the seeds."""
        local = self._local
        if local.leaving:
            local.leaving = False
            self._hearsay.restate(
                self._hearsay.me.claim.meta, self._hearsay.me.incarnation + 1, now
            )
        self._started = True
        self._hearsay.announce()
        self._spread.start(now)
        self._prober.start(now)
        self._sync.start(now)
        self._healing.start(now)
        return self._done(now)

    def advance(self, now: float) -> Effects:
        """Do whatever has fallen due."""
        if not self._started:
            return NOTHING
        self._notice_sleep(now)
        for part in self._parts:
            if part.deadline <= now:
                part.advance(now)
        return self._done(now)

    def receive(self, data: bytes, source: Address, now: float) -> Effects:
        """A datagram arrived."""
        return self.receive_all(((data, source, 0.0),), now)

    def receive_all(self, waiting: Iterable[tuple[bytes, Address, float]], now: float) -> Effects:
        """Datagrams: bytes, whence, and how many seconds ago they came, oldest first."""
        self._notice_sleep(now)
        for data, source, age in waiting:
            self._take(data, source, now - age)
        return self._done(now)

    def refused(self, to: Address, now: float) -> Effects:
        """The host at `to` said that nobody listens on our port there."""
        record = self._local.roster.at(to)
        if record is not None and record.health.present and record is not self._hearsay.me:
            self._prober.refused(record, now)
            self._watch.refused(record, now)
        return self._done(now)

    def answer(
        self, message: StreamMessage, source: Address, now: float
    ) -> tuple[bytes | None, Effects]:
        """A peer dialled us; the bytes to answer before closing, if any."""
        self._contact.heard(now)
        reply = None
        match message:
            case PushPull():
                reply = self._sync.answer(message, source, now)
            case Ping(seq, node, origin):
                if origin is not None:
                    self._heard(locate(origin.addr, origin.port) or source, now)
                if node in ("", self._local.name):
                    reply = stream.frame(Ack(seq), self._local.envelope, dialler=False)
            case User(payload):
                reply = self._requests.answer(payload, source)
                if reply is None:
                    self._user(payload, source, now)
            case Ack() | Err():
                self._local.tell(Dropped(source, "unexpected"))
            case _:
                assert_never(message)
        return reply, self._done(now)

    def replied(self, token: int, message: StreamMessage | None, now: float) -> Effects:
        """What came of a dial; None when nothing did."""
        if message is not None:
            self._contact.heard(now)
        self._local.replied(token, message, now)
        return self._done(now)

    def lag(self, seconds: float, now: float) -> Effects:
        """The shell's loop was late by so much: doubt ourselves before others."""
        fresh = min(seconds, now - self._woke)
        if fresh > STALL:
            self._slept(fresh, now)
        elif self._local.tuning.additions:
            self._local.doubt(seconds, now)
        return self._done(now)

    # Inputs of the application.

    def set_seeds(self, seeds: tuple[Address, ...], now: float) -> Effects:
        """Whom to dial until they are members."""
        self._healing.set_seeds(seeds, now, started=self._started)
        return self._done(now)

    def set_meta(self, value: dict[str, Plain], now: float) -> Effects:
        """Publish other metadata; MetaTooLong before anything changes."""
        meta = own.pack(own.META, value)
        if len(meta) > META_MAX:
            raise MetaTooLong(f"{len(meta)} bytes of metadata, {META_MAX} at most")
        me = self._hearsay.me
        if meta != me.claim.meta and not self._local.leaving:
            self._hearsay.restate(meta, me.incarnation + self._started, now)
            if self._started:
                self._hearsay.announce()
        return self._done(now)

    def set_state(self, value: Plain) -> None:
        """What wayout members get with every push/pull."""
        self._sync.state = value

    def set_tuning(self, tuning: Tuning, now: float) -> Effects:
        """Other constants, in force from the next step of each part."""
        self._local.retune(tuning)
        for part in (self._prober, self._sync, self._healing):
            part.retune(now)
        return self._done(now)

    def carry(self, carrying: bool, now: float) -> Effects:  # noqa: FBT001 - the one argument
        """Whether we carry addresses, so that others should watch us."""
        self._contact.carry(carrying, now)
        self._pulse.carry(carrying, now)
        return self._done(now)

    def burst(self, now: float) -> Effects:
        """Ask who is there; a `Contact` event tells, unless one is about to."""
        self._contact.burst(now)
        return self._done(now)

    def broadcast(self, kind: int, value: Plain, now: float, about: str | None = None) -> Effects:
        """Tell all wayout members; TooLongError when it fits no datagram."""
        self._bulletin.broadcast(kind, value, about)
        return self._done(now)

    def send(self, name: str, kind: int, value: Plain, now: float) -> Effects:
        """Tell one wayout member; nothing happens when it is none."""
        self._bulletin.send(name, kind, value)
        return self._done(now)

    def request(self, name: str, kind: int, value: Plain, now: float, done: Done) -> Effects:
        """Ask one wayout member over TCP; `done` gets its answer, None if there is none."""
        self._requests.begin(name, kind, value, done)
        return self._done(now)

    def leave(self, now: float) -> Effects:
        """Say goodbye; keep answering until `left`."""
        local = self._local
        if not local.leaving and self._started:
            self._contact.carry(carrying=False, now=now)
            self._pulse.carry(carrying=False, now=now)
            local.leaving = True
            self._prober.stop()
            self._healing.stop()
            self._spread.goodbye(encoded(self._hearsay.leave(now)))
        return self._done(now)

    def assume(self, states: Iterable[PeerState], now: float) -> None:
        """Take these members as known without telling anybody: a warm start for simulations."""
        for state in states:
            self._hearsay.assume(claim(state, self._local.address.port), now)
        if self._started:
            self._sync.start(now)

    def _done(self, now: float) -> Effects:
        if self._started:
            # What was idle may be due since long ago; we are not late for it.
            self._due = max(now, min([part.deadline for part in self._parts]))
        return self._local.flush()

    def _notice_sleep(self, now: float) -> None:
        # What was counted when we woke is not counted again by the inputs that had piled up.
        late = now - max(self._due, self._woke)
        if late > STALL:
            self._slept(late, now)

    def _slept(self, seconds: float, now: float) -> None:
        """We did not run, so nobody was silent: answers may still wait in the sockets."""
        self._woke = now
        if not self._local.tuning.additions:
            return
        self._local.doubt(seconds, now)
        self._hearsay.postpone(seconds)
        self._prober.postpone(now)
        self._contact.postpone(seconds, now)
        self._pulse.postpone(now)
        self._watch.postpone(seconds, now)

    def _take(self, data: bytes, source: Address, now: float) -> None:
        try:
            messages = self._local.envelope.open(data)
        except WireError as error:
            self._local.tell(Dropped(source, error.reason))
            return
        self._heard(source, now)
        for message in messages:
            self._packet(message, source, now)

    def _heard(self, source: Address, now: float) -> None:
        self._local.heard_at = now
        self._contact.heard(now)
        self._watch.heard_from(source, now)

    def _packet(self, message: PacketMessage, source: Address, now: float) -> None:
        match message:
            case Ping():
                self._ping(message, source, now)
            case Ack(seq) | Nack(seq):
                asker = self._local.asked.get(seq)
                if asker is not None:
                    (asker.acked if isinstance(message, Ack) else asker.nacked)(seq, now)
            case Alive() | Suspect() | Dead():
                self._hearsay.hear(message, now)
            case User(payload):
                self._user(payload, source, now)
            case IndirectPing():
                self._relay.indirect(message, source, now)
            case _:
                assert_never(message)

    def _ping(self, ping: Ping, source: Address, now: float) -> None:
        if ping.node not in ("", self._local.name):
            return
        self._relay.ping(ping, source)
        self._healing.pinged(ping, now)

    def _user(self, payload: bytes, source: Address, now: float) -> None:
        if not own.is_ours(payload):
            self._local.tell(ForeignMessage(payload))
            return
        try:
            if payload.startswith(beat.PREFIX):
                self._pulse.heard(beat.read(payload), now)
                return
            kind, value = own.unpack(payload)
            if kind in WORDS:
                self._verdicts.heard_word(kind, value, now)
            elif kind >= FIRST_KIND:
                self._bulletin.received(payload, kind, value)
            else:
                self._local.tell(Dropped(source, "unknown_kind"))
        except WireError as error:
            self._local.tell(Dropped(source, error.reason))
        except ValueError:
            self._local.tell(Dropped(source, "bad_value"))
