"""The heartbeat of a node that carries addresses, one way, to the members that watch it.

Every second beat is also a ping: the watcher's answer tells the carrier that it is heard. The
two watchers are pinged in turn, so somebody answers every interval.
"""

from __future__ import annotations

import heapq
import math
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from gossip.peer import Health
from gossip.wire import codec, own
from gossip.wire.messages import User

if TYPE_CHECKING:
    from gossip.contact import Contact
    from gossip.local import Local
    from gossip.roster import Record

FAREWELLS = 2
"""Times that a watcher is told that its duty is over; the word may be lost once."""
AGAIN = 0.5
"""Part of the interval after which an unanswered ping is repeated; twice that means missing."""


class Watcher:
    """One of those who listen; `asked` is when the ping left that it has not answered."""

    __slots__ = ("asked", "pings", "record", "seq")

    def __init__(self, record: Record) -> None:
        self.record = record
        self.seq = 0
        self.asked = math.inf
        self.pings = 0


class Pulse:
    """Owned by one machine."""

    def __init__(self, local: Local, contact: Contact) -> None:
        self._local = local
        self._contact = contact
        self._next = math.inf
        self._beats = 0
        self._watchers: dict[str, Watcher] = {}
        self._dismissed: dict[str, int] = {}
        self._scores: dict[str, bytes] = {}
        self._seen = -1
        self.carrying = False

    @property
    def deadline(self) -> float:
        """When to beat, or to ask a mute watcher again."""
        if not self._watchers:
            return self._next
        return min([self._next, *map(self._due, self._watchers.values())])

    def carry(self, carrying: bool, now: float) -> None:  # noqa: FBT001 - a state, not a mode
        """Begin to beat, or stop and say so."""
        if carrying == self.carrying or not self._local.tuning.watchers:
            return
        self.carrying = carrying
        self._seen = -1
        if carrying:
            self._next = now
        self.advance(now)

    def advance(self, now: float) -> None:
        """Beat when it is time."""
        if now >= self._next or self._seen == -1:
            interval = self._local.tuning.watch_interval
            onward = self._next + interval
            self._next = onward if onward > now else now + interval
            self._beat(now)
        for watcher in self._watchers.values():
            if now >= self._due(watcher):
                self._press(watcher, now)

    def postpone(self) -> None:
        """We slept: nobody owes us an answer."""
        for watcher in self._watchers.values():
            self._settle(watcher)

    def acked(self, seq: int, now: float) -> None:
        """A watcher hears us."""
        for watcher in self._watchers.values():
            if watcher.seq == seq:
                if watcher.pings == 1:
                    watcher.record.rtt = now - watcher.asked
                self._settle(watcher)
                return

    def nacked(self, seq: int, now: float) -> None:
        """Nobody relays a heartbeat."""

    def _beat(self, now: float) -> None:
        self._beats += 1
        if self._seen != self._local.roster.changes:
            self._choose()
        self._dismiss()
        for place, watcher in enumerate(self._watchers.values()):
            beat = self._message(stop=False)
            if (self._beats + place) % 2 == 0 and watcher.asked == math.inf:
                self._ask(watcher, now, beat)
            else:
                record = watcher.record
                self._local.send(record.address, record, beat, gossip=False)
        if not self.carrying and not self._dismissed:
            self._next = math.inf

    def _ask(self, watcher: Watcher, now: float, beat: bytes) -> None:
        self._local.asked.pop(watcher.seq, None)
        record = watcher.record
        if watcher.asked == math.inf:
            watcher.asked, watcher.pings = now, 0
        watcher.seq = self._local.question(self)
        watcher.pings += 1
        ping = self._local.ping(watcher.seq, record.name)
        self._local.send(record.address, record, ping, beat, gossip=False)

    def _due(self, watcher: Watcher) -> float:
        wait = AGAIN * self._local.tuning.watch_interval
        # On long ways an answer is not late before it could be here.
        return watcher.asked + wait * watcher.pings + (watcher.record.rtt or 0.0)

    def _press(self, watcher: Watcher, now: float) -> None:
        if watcher.pings == 1:
            self._ask(watcher, now, self._message(stop=False))
            return
        self._settle(watcher)
        self._contact.burst(now)

    def _settle(self, watcher: Watcher) -> None:
        self._local.asked.pop(watcher.seq, None)
        watcher.seq, watcher.asked, watcher.pings = 0, math.inf, 0

    def _choose(self) -> None:
        """The present wayout members that score highest for our name."""
        self._seen = self._local.roster.changes
        chosen: list[Record] = []
        if self.carrying:
            able = [each for each in self._local.roster.others() if _able(each)]
            chosen = heapq.nlargest(self._local.tuning.watchers, able, key=self._score)
        names = {record.name for record in chosen}
        for name, watcher in self._watchers.items():
            if name not in names:
                self._settle(watcher)
                self._dismissed[name] = FAREWELLS
        kept = self._watchers
        self._watchers = {each.name: kept.get(each.name) or Watcher(each) for each in chosen}
        for record in chosen:
            self._dismissed.pop(record.name, None)
            self._watchers[record.name].record = record

    def _score(self, record: Record) -> bytes:
        name = record.name
        if name not in self._scores:
            self._scores[name] = score(self._local.name, name)
        return self._scores[name]

    def _dismiss(self) -> None:
        for name, times in list(self._dismissed.items()):
            record = self._local.roster.get(name)
            if record is not None and record.health.present:
                beat = self._message(stop=True)
                self._local.send(record.address, record, beat, gossip=False)
            if times > 1 and record is not None:
                self._dismissed[name] = times - 1
            else:
                del self._dismissed[name]

    def _message(self, *, stop: bool) -> bytes:
        me = self._local.roster.records[self._local.name]
        return _heartbeat(self._local.name, me.incarnation, stop)


def score(name: str, watcher: str) -> bytes:
    """How fit a member is to watch `name`; every node computes the same."""
    raw = name.encode("utf-8", "surrogateescape")
    head = len(raw).to_bytes(2, "big") + raw
    return blake2b(head + watcher.encode("utf-8", "surrogateescape"), digest_size=8).digest()


@lru_cache(maxsize=4096)
def _heartbeat(name: str, incarnation: int, stop: bool) -> bytes:  # noqa: FBT001 - on the wire
    raw = name.encode("utf-8", "surrogateescape")
    return codec.encode(User(own.pack(own.HEARTBEAT, [raw, incarnation, stop])))


def _able(record: Record) -> bool:
    return record.health is Health.ALIVE and record.wayout and not record.unreachable
