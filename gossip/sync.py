"""Push/pull: two nodes exchange all that they know, over TCP."""

from __future__ import annotations

import math
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING

from gossip import addressing
from gossip.events import Dropped, ForeignMessage, StateReceived, Synced, SyncFailed
from gossip.peer import Health
from gossip.tuning import push_pull_period
from gossip.wire import own, stream
from gossip.wire.messages import Alive, Dead, Err, PeerState, PushPull, Suspect, WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gossip.events import Plain
    from gossip.hearsay import Hearsay
    from gossip.local import Local
    from gossip.peer import Address
    from gossip.roster import Record
    from gossip.wire.messages import StreamMessage

    Done = Callable[[bool, float], None]

TURN = 500
"""Records that are folded in one go: some ten milliseconds when all of them are new."""
UNFOLDED_MAX = 1 << 15
"""Records that may wait for their turn."""
VERSIONS = 6
"""Bytes of a full version field: protocol min, max, current; delegate min, max, current."""


class Sync:
    """Owned by one machine. `state` is what the application sends along to wayout members."""

    def __init__(self, local: Local, hearsay: Hearsay) -> None:
        self._local = local
        self._hearsay = hearsay
        self._next = math.inf
        self._unfolded: deque[PeerState] = deque()
        self.state: Plain = None
        self.completed = 0

    def start(self, now: float) -> None:
        """The first exchange comes at a random time within one interval."""
        self._next = now + self._local.rng.random() * self._period()

    def retune(self, now: float) -> None:
        """Do not sleep through a new, shorter interval."""
        if self._next != math.inf:
            self._next = min(self._next, now + self._period())

    @property
    def deadline(self) -> float:
        """When the next periodic exchange is due; at once while records wait to be folded."""
        return -math.inf if self._unfolded else self._next

    def advance(self, now: float) -> None:
        """Fold what waits, and exchange with one random living member."""
        self._fold_some(now)
        if now < self._next:
            return
        self._next = now + self._period()
        for peer in self._local.roster.sample(1, lambda each: each.health is Health.ALIVE):
            self.begin(peer.address, join=False)

    def begin(self, to: Address, *, join: bool, done: Done | None = None) -> None:
        """Dial a peer; `done` hears whether an exchange came of it."""
        peer = self._local.roster.at(to)
        message = self._message(join=join, ours=peer is not None and peer.wayout)

        def reply(answer: StreamMessage | None, now: float) -> None:
            reason = self._concluded(answer, to, join=join, now=now)
            if reason is not None:
                self._local.tell(SyncFailed(to, join, reason))
            if done is not None:
                done(reason is None, now)

        self._local.dial(to, message, self._local.tuning.stream_timeout, reply)

    def answer(self, message: PushPull, source: Address, now: float) -> bytes:
        """The reply to a peer that dialled, made before its news is merged (as in Go)."""
        ours = self._speaks_ours(message, source)
        reply = self._message(join=message.join, ours=ours)
        data = stream.frame(reply, self._local.envelope, dialler=False)
        reason = self._merge(message, source, now)
        if reason is None:
            self.completed += 1
            self._local.tell(Synced(source, message.join))
        else:
            self._local.tell(SyncFailed(source, message.join, reason))
        return data

    def _concluded(
        self, answer: StreamMessage | None, to: Address, *, join: bool, now: float
    ) -> str | None:
        if isinstance(answer, Err):
            return "refused"
        if not isinstance(answer, PushPull):
            return "no_answer"
        reason = self._merge(answer, to, now)
        if reason is None:
            self.completed += 1
            self._local.tell(Synced(to, join))
        return reason

    def _period(self) -> float:
        return push_pull_period(self._local.tuning.push_pull_interval, len(self._local.roster))

    def _message(self, *, join: bool, ours: bool) -> PushPull:
        states = tuple(
            PeerState(
                name=each.claim.node,
                addr=each.claim.addr,
                port=each.claim.port,
                meta=each.claim.meta,
                incarnation=each.incarnation,
                health=int(each.health),
                versions=each.claim.versions,
            )
            for each in self._local.roster.records.values()
        )
        return PushPull(join, states, self._user_state() if ours else b"")

    def _user_state(self) -> bytes:
        name = self._local.name.encode("utf-8", "surrogateescape")
        return own.pack(own.STATE, [name, self.state])

    def _speaks_ours(self, message: PushPull, source: Address) -> bool:
        """Whether the dialler is a wayout member; it does not say which record is its own."""
        if own.is_ours(message.user_state):
            return True
        there = [
            state
            for state in message.states
            if (place := addressing.locate(state.addr, state.port)) is not None
            and place.host == source.host
        ]
        return bool(there) and all(own.is_ours(state.meta) for state in there)

    def _merge(self, message: PushPull, source: Address, now: float) -> str | None:
        """Take over what the peer knows; or why nothing of it."""
        if message.unread:
            self._local.tell(Dropped(source, "bad_record"))
        whole = [state for state in message.states if len(state.versions) >= VERSIONS]
        records = self._local.roster.records.values()
        known = [(each.health is Health.ALIVE, each.claim.versions) for each in records]
        if not compatible(
            [(state.health == Health.ALIVE, state.versions) for state in whole] + known
        ):
            return "versions"
        room = max(0, UNFOLDED_MAX - len(self._unfolded))
        if len(whole) > room:
            self._local.tell(Dropped(source, "too_many_records"))
        self._unfolded += whole[:room]
        self._fold_some(now)
        if message.user_state:
            self._application(message, now)
        return None

    def _fold_some(self, now: float) -> None:
        """A turn's worth; a long table must not hold the loop."""
        for _ in range(min(TURN, len(self._unfolded))):
            self._fold(self._unfolded.popleft(), now)

    def _fold(self, state: PeerState, now: float) -> None:
        record = self._local.roster.get(state.name)
        if record is not None and _known(state, record):
            return
        match state.health:
            case Health.ALIVE:
                self._hearsay.alive(claim(state, self._local.address.port), now)
            case Health.LEFT:
                self._hearsay.dead(Dead(state.incarnation, state.name, state.name), now)
            case Health.SUSPECT | Health.DEAD:
                # From a table, death is hearsay: the subject must get its chance to refute.
                word = Suspect(state.incarnation, state.name, self._local.name)
                self._hearsay.suspect(word, now)
            case _:
                pass  # States of protocols to come are ignored, as memberlist does.

    def _application(self, message: PushPull, now: float) -> None:
        del now
        if not own.is_ours(message.user_state):
            self._local.tell(ForeignMessage(message.user_state))
            return
        try:
            kind, value = own.unpack(message.user_state)
        except WireError:
            return
        match value:
            case [bytes(name), state] if kind == own.STATE and state is not None:
                sender = name.decode("utf-8", "surrogateescape")
                self._local.tell(StateReceived(sender, state, message.join))
            case _:
                pass  # A peer without state, or of a later version.


@lru_cache(maxsize=1 << 14)
def claim(state: PeerState, port: int) -> Alive:
    """A record of somebody's table as its subject's own word; equal ones are one object."""
    return Alive(
        incarnation=state.incarnation,
        node=state.name,
        addr=state.addr,
        port=state.port or port,
        meta=state.meta,
        versions=state.versions,
    )


def _known(state: PeerState, record: Record) -> bool:
    """Whether a record is no news, as most of them are in most exchanges."""
    mine = record.claim
    return (
        state.health == record.health == Health.ALIVE
        and state.incarnation == record.incarnation
        and state.addr == mine.addr
        and state.port == mine.port
        and state.meta == mine.meta
        and state.versions == mine.versions
    )


def compatible(records: Iterable[tuple[bool, bytes]]) -> bool:
    """Whether all of these can be one cluster: pairs of (alive, six version bytes).

    Everybody must speak what all the living understand, in both the protocol and the delegate
    version. Incomplete versions do not take part.
    """
    seen = {(alive, versions) for alive, versions in records if len(versions) >= VERSIONS}
    for start in (0, 3):
        living = [versions for alive, versions in seen if alive]
        least = max((versions[start] for versions in living), default=0)
        most = min((versions[start + 1] for versions in living), default=255)
        if not all(least <= versions[start + 2] <= most for _, versions in seen):
            return False
    return True
