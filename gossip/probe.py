"""Probing: every member in turn, directly, then through others and over TCP at once.

A suspect hears the accusation along with the ping (Lifeguard's buddy system). A round that fails
makes the target a suspect, unless we have reason to doubt ourselves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gossip import addressing
from gossip.events import DatagramsBlocked, ProbeFailed
from gossip.peer import Health
from gossip.wire import codec
from gossip.wire.messages import Ack, IndirectPing, Ping, Suspect

if TYPE_CHECKING:
    from gossip.hearsay import Hearsay
    from gossip.local import Local
    from gossip.roster import Record
    from gossip.wire.messages import StreamMessage

NACK_PROTOCOL = 4
TCP_PROTOCOL = 3
BLOCKED_MAX = 1024
ALONE = 10.0
"""Seconds without a word from anybody after which even the unwell may accuse."""


class Round:
    """One probe under way. Relays are asked at `patience`, the verdict falls at `ends`."""

    __slots__ = (
        "asked",
        "ends",
        "indirect",
        "nacks",
        "patience",
        "seq",
        "started",
        "stream_answered",
        "target",
    )

    def __init__(self, target: Record, seq: int, now: float, timeout: float, length: float) -> None:
        self.target = target
        self.seq = seq
        self.started = now
        self.patience = now + timeout
        self.ends = now + length
        self.indirect = False
        self.asked = 0
        self.nacks = 0
        self.stream_answered = False

    @property
    def deadline(self) -> float:
        """When something is to be done about it."""
        return self.ends if self.indirect else self.patience


class Prober:
    """Owned by one machine; one round at a time."""

    def __init__(self, local: Local, hearsay: Hearsay) -> None:
        self._local = local
        self._hearsay = hearsay
        self._round: Round | None = None
        self._next = math.inf
        self._blocked: set[str] = set()

    def start(self, now: float) -> None:
        """A random first moment keeps nodes that booted together out of lockstep."""
        self._next = now + self._local.rng.random() * self._local.tuning.probe_interval

    def stop(self) -> None:
        """Whoever leaves accuses nobody any more."""
        self._end()
        self._next = math.inf

    @property
    def deadline(self) -> float:
        """When the next step is due."""
        return self._next if self._round is None else self._round.deadline

    def advance(self, now: float) -> None:
        """Take the steps that are due."""
        probe = self._round
        if probe is not None and not probe.indirect and now >= probe.patience:
            self._ask_others(probe, now)
        if probe is not None and now >= probe.ends:
            self._conclude(probe, now)
        if self._round is None and now >= self._next:
            self._begin(now)

    def postpone(self, now: float) -> None:
        """We slept: the round under way proves nothing."""
        self._end()
        if self._next != math.inf:
            self._next = now + self._local.rng.random() * self._local.tuning.probe_timeout

    def retune(self, now: float) -> None:
        """Do not sleep through a new, shorter interval."""
        if self._next != math.inf:
            self._next = min(self._next, now + self._local.tuning.probe_interval)

    def refused(self, record: Record, now: float) -> None:
        """The target's host says that nobody listens: no use to wait for the timeout."""
        probe = self._round
        if probe is not None and probe.target is record and not probe.indirect:
            self._ask_others(probe, now)

    def acked(self, seq: int, now: float) -> None:
        """The target answered."""
        probe = self._round
        if probe is None or probe.seq != seq:
            return
        if not probe.indirect:
            probe.target.rtt = now - probe.started
        else:
            # Not from its own address, perhaps; but somebody reaches it.
            self._hearsay.reached(probe.target.name, now)
        self._blocked.discard(probe.target.name)
        self._end()
        self._local.feel(-1)

    def nacked(self, seq: int, now: float) -> None:
        """A relay reports that the target is mute, so we are not the ones who are cut off."""
        del now
        if self._round is not None and self._round.seq == seq:
            self._round.nacks += 1

    def _begin(self, now: float) -> None:
        local, tuning = self._local, self._local.tuning
        # A round that outlasted the interval skips ticks; it does not make them up.
        onward = self._next + tuning.probe_interval
        self._next = onward if onward > now else now + tuning.probe_interval
        target = local.roster.next_target(now, tuning.dead_retention)
        if target is None:
            self._next = now + tuning.probe_interval
            return
        length = local.awareness.scale(tuning.probe_interval)
        probe = Round(target, local.question(self), now, tuning.probe_timeout, length)
        self._round = probe
        ping = local.ping(probe.seq, target.name)
        if target.health is Health.SUSPECT:
            word = codec.encode(Suspect(target.incarnation, target.name, local.name))
            local.send(target.address, target, ping, word, gossip=False)
        else:
            local.send(target.address, target, ping)

    def _ask_others(self, probe: Round, now: float) -> None:
        local, target = self._local, probe.target
        probe.indirect = True
        local.tell(ProbeFailed(target.name, "direct"))
        relays = local.roster.sample(
            local.tuning.indirect_checks,
            lambda each: each.health is Health.ALIVE and each is not target,
        )
        for relay in relays:
            probe.asked += relay.protocol >= NACK_PROTOCOL
            ask_relay(local, relay, target, probe.seq)
        if target.protocol >= TCP_PROTOCOL and probe.ends > now:
            seq = probe.seq
            local.dial(
                target.address,
                Ping(seq, target.name, local.origin),
                probe.ends - now,
                lambda message, now: self._streamed(seq, message, now),
            )

    def _streamed(self, seq: int, message: StreamMessage | None, now: float) -> None:
        del now
        probe = self._round
        if probe is not None and probe.seq == seq and isinstance(message, Ack):
            probe.stream_answered = probe.stream_answered or message.seq == seq

    def _conclude(self, probe: Round, now: float) -> None:
        local, target = self._local, probe.target
        self._end()
        if probe.stream_answered:
            local.feel(-1)
            self._hearsay.reached(target.name, now)
            self._note_blocked(target.name)
            return
        if probe.asked:
            local.tell(ProbeFailed(target.name, "indirect"))
        if target.protocol >= TCP_PROTOCOL:
            local.tell(ProbeFailed(target.name, "tcp"))
        # Who hears nobody at all is alone, and then there is nobody to be wronged either.
        alone = now - local.heard_at > ALONE
        distrust = local.tuning.additions and local.awareness.degraded(now) and not alone
        local.feel(probe.asked - probe.nacks if probe.asked else 1)
        if not distrust:
            self._hearsay.suspect(Suspect(target.incarnation, target.name, local.name), now)

    def _note_blocked(self, name: str) -> None:
        if name not in self._blocked:
            if len(self._blocked) >= BLOCKED_MAX:
                self._blocked.clear()
            self._blocked.add(name)
            self._local.tell(DatagramsBlocked(name))

    def _end(self) -> None:
        if self._round is not None:
            self._local.asked.pop(self._round.seq, None)
            self._round = None


def ask_relay(local: Local, relay: Record, target: Record, seq: int) -> None:
    """Have somebody else ping the target, and say so if it does not answer."""
    request = IndirectPing(
        seq=seq,
        target=addressing.pack(target.address.host),
        port=target.address.port,
        node=target.name,
        nack=relay.protocol >= NACK_PROTOCOL,
        origin=local.origin,
    )
    local.send(relay.address, relay, codec.encode(request))
