"""The heartbeat of a node that carries addresses, one way, to the members that watch it.

The watchers are the neighbours on a ring of hashed names, so who watches me is whom I watch: each
has the same duty however large the cluster. Every second beat is also a ping: the watcher's answer
tells the carrier that it is heard. The two watchers are pinged in turn, so somebody answers every
interval. Two carriers that watch each other are a *pair*: each beat says whether the beats of the
other arrive, so nobody need ask.
"""

from __future__ import annotations

import heapq
import math
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from gossip.beat import Beat
from gossip.peer import Health
from gossip.wire import codec
from gossip.wire.messages import User

if TYPE_CHECKING:
    from gossip.contact import Contact
    from gossip.local import Local
    from gossip.roster import Record
    from gossip.watch import Watch

FAREWELLS = 2
"""Times that a watcher is told that its duty is over; the word may be lost once."""
AGAIN = 0.5
"""Part of the interval after which an unanswered ping is repeated; twice that means missing."""
PAIRED = 2.5
"""Intervals after which a pair that has not said that it hears us is missing: two of its beats."""
RING = 1 << 64


class Watcher:
    """One of those who listen; `asked` is when the ping left that it has not answered.

    `heard` is when it last said in a beat of its own that it hears ours.
    """

    __slots__ = ("asked", "heard", "pings", "record", "seq")

    def __init__(self, record: Record) -> None:
        self.record = record
        self.seq = 0
        self.asked = math.inf
        self.pings = 0
        self.heard = -math.inf


class Pulse:
    """Owned by one machine."""

    def __init__(self, local: Local, contact: Contact, watch: Watch) -> None:
        self._local = local
        self._contact = contact
        self._watch = watch
        self._next = math.inf
        self._beats = 0
        self._watchers: dict[str, Watcher] = {}
        self._dismissed: dict[str, int] = {}
        self._places: dict[str, int] = {}
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
        if not self._watchers:
            return
        for watcher in self._watchers.values():
            if now >= self._due(watcher):
                self._press(watcher, now)

    def heard(self, beat: Beat, now: float) -> None:
        """A member beats, which is ours to watch; perhaps it is a watcher of ours as well."""
        self._watch.heartbeat(beat, now)
        watcher = self._watchers.get(beat.name)
        if watcher is None or not self.carrying:
            return
        if beat.hears:
            watcher.heard = now
            self._settle(watcher)
        elif beat.stop:
            watcher.heard = -math.inf

    def postpone(self, now: float) -> None:
        """We slept: nobody owes us an answer."""
        for watcher in self._watchers.values():
            self._settle(watcher)
            if watcher.heard != -math.inf:
                watcher.heard = now

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
            beat = self._message(self._watch.hears(watcher.record.name))
            asking = (self._beats + place) % 2 and watcher.asked == math.inf
            if asking and watcher.heard == -math.inf:
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
        interval = self._local.tuning.watch_interval
        if watcher.heard != -math.inf:
            return watcher.heard + PAIRED * interval
        # On long ways an answer is not late before it could be here.
        return watcher.asked + AGAIN * interval * watcher.pings + (watcher.record.rtt or 0.0)

    def _press(self, watcher: Watcher, now: float) -> None:
        """No answer, or no word of a pair: ask, then ask everybody."""
        watcher.heard = -math.inf
        if watcher.pings == 1:
            self._ask(watcher, now, self._message(self._watch.hears(watcher.record.name)))
            return
        self._settle(watcher)
        self._contact.burst(now)

    def _settle(self, watcher: Watcher) -> None:
        self._local.asked.pop(watcher.seq, None)
        watcher.seq, watcher.asked, watcher.pings = 0, math.inf, 0

    def _choose(self) -> None:
        """The present wayout members that stand next to us on the ring."""
        self._seen = self._local.roster.changes
        chosen: list[Record] = []
        if self.carrying:
            chosen = self._neighbours(self._local.tuning.watchers)
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

    def _neighbours(self, number: int) -> list[Record]:
        """Half of them after us and half of them before, the next one after us first."""
        able = [each for each in self._local.roster.others() if _able(each)]
        after = heapq.nsmallest(number - number // 2, able, key=self._distance)
        before = heapq.nlargest(number // 2, able, key=self._distance)
        return [*after, *(each for each in before if each not in after)]

    def _distance(self, record: Record) -> int:
        """How far along the ring, in the one direction."""
        return (self._place(record.name) - self._place(self._local.name)) % RING

    def _place(self, name: str) -> int:
        if name not in self._places:
            self._places[name] = place(name)
        return self._places[name]

    def _dismiss(self) -> None:
        for name, times in list(self._dismissed.items()):
            record = self._local.roster.get(name)
            if record is not None and record.health.present:
                beat = self._message(hears=False, stop=True)
                self._local.send(record.address, record, beat, gossip=False)
            if times > 1 and record is not None:
                self._dismissed[name] = times - 1
            else:
                del self._dismissed[name]

    def _message(self, hears: bool, *, stop: bool = False) -> bytes:  # noqa: FBT001 - on the wire
        me = self._local.roster.records[self._local.name]
        return _heartbeat(Beat(self._local.name, me.incarnation, stop, hears))


def place(name: str) -> int:
    """Where a member stands on the ring of names; every node computes the same."""
    raw = name.encode("utf-8", "surrogateescape")
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), "big")


@lru_cache(maxsize=4096)
def _heartbeat(beat: Beat) -> bytes:
    return codec.encode(User(beat.packed()))


def _able(record: Record) -> bool:
    return record.health is Health.ALIVE and record.wayout and not record.unreachable
