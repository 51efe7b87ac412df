"""Who is known: one record a member, the order of probing, sampling, and the graves.

`supersedes` is the one rule of precedence: a higher incarnation beats any health, at equal
incarnation the worse news wins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossip.peer import Health, Member
from gossip.wire import own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from gossip.peer import Address
    from gossip.wire.messages import Alive

MEMBERS_MAX = 1 << 15
GRAVES_MAX = 1 << 12
BUCKETS = 10
"""Parts of the time over which the largest size is remembered."""
PROTOCOL_MAX = 1
"""Where a peer's six version bytes say which protocol it understands at most."""


class Record:
    """What is held of one member; `claim` is its own word, shared by all rosters that heard it.

    `incarnation` may be above the claim's: an accusation raises it. `since` is when `health`
    changed, `rtt` the last measured round trip (loop seconds).
    """

    __slots__ = ("address", "claim", "health", "incarnation", "rtt", "since", "unreachable")

    def __init__(self, claim: Alive, address: Address, now: float) -> None:
        self.claim = claim
        self.address = address
        self.health = Health.ALIVE
        self.incarnation = claim.incarnation
        self.since = now
        self.rtt: float | None = None
        self.unreachable = False

    @property
    def name(self) -> str:
        """Unique in the cluster."""
        return self.claim.node

    @property
    def wayout(self) -> bool:
        """Whether this is one of us and not another memberlist program."""
        return own.is_ours(self.claim.meta)

    @property
    def protocol(self) -> int:
        """Highest protocol version that it understands; 0 when it did not say."""
        return self.claim.versions[PROTOCOL_MAX] if len(self.claim.versions) > PROTOCOL_MAX else 0

    def member(self) -> Member:
        """A snapshot for others."""
        return Member(
            name=self.claim.node,
            address=self.address,
            health=self.health,
            incarnation=self.incarnation,
            meta=self.claim.meta,
            versions=self.claim.versions,
            since=self.since,
            rtt=self.rtt,
            wayout=self.wayout,
            unreachable=self.unreachable,
        )


def supersedes(incarnation: int, health: Health, known: Record) -> bool:
    """Whether a claim beats what is known, in every order in which claims may arrive.

    Suspicion alone is kept from the dead: it says nothing of where they live now.
    """
    if health is Health.SUSPECT and not known.health.present:
        return False
    return (incarnation, health) > (known.incarnation, known.health)


class Roster:
    """Owned by one machine; records are changed by `hearsay` alone."""

    def __init__(self, me: str, rng: Random) -> None:
        self._me = me
        self._rng = rng
        self._order: list[Record] = []
        self._next = 0
        self._sizes = [0] * BUCKETS
        self._epoch = 0
        self.records: dict[str, Record] = {}
        self.graves: dict[str, Record] = {}
        self.changes = 0

    def __len__(self) -> int:
        return len(self.records)

    def get(self, name: str) -> Record | None:
        """The record of a member, dead ones included until they are reaped."""
        return self.records.get(name)

    def at(self, address: Address) -> Record | None:
        """The present member that lives there, or else a dead one."""
        found, host, port = None, address.host, address.port
        for record in self.records.values():
            if record.address.host == host and record.address.port == port:
                if record.health.present:
                    return record
                found = record
        return found

    def everybody(self) -> Iterator[Record]:
        """Every record, and the dead that are still knocked at."""
        yield from self.records.values()
        yield from (each for name, each in self.graves.items() if name not in self.records)

    def others(self) -> Iterator[Record]:
        """Every record but our own."""
        return (record for record in self.records.values() if record.claim.node != self._me)

    def add(self, record: Record) -> None:
        """A new member, at a random place in the order of probing."""
        self.records[record.claim.node] = record
        self._order.append(record)
        place, last = int(self._rng.random() * len(self._order)), len(self._order) - 1
        self._order[place], self._order[last] = self._order[last], self._order[place]
        self.touched()

    def touched(self) -> None:
        """Something that others compute from has changed."""
        self.changes += 1
        self._sizes[0] = max(self._sizes[0], len(self.records))

    def size(self, now: float, memory: float) -> int:
        """The largest number of records within the last `memory` seconds, for timing alone."""
        if memory <= 0:
            return len(self.records)
        epoch = int(now / (memory / BUCKETS))
        for _ in range(min(epoch - self._epoch, BUCKETS)):
            self._sizes = [len(self.records), *self._sizes[:-1]]
        self._epoch = epoch
        return max(self._sizes)

    def next_target(self, now: float, retention: float) -> Record | None:
        """Whom to probe: everybody in turn, in an order that is new each time round."""
        for _ in range(2):
            while self._next < len(self._order):
                record = self._order[self._next]
                self._next += 1
                if record.health.present and record.claim.node != self._me:
                    return record
            self.reap(now, retention)
            self._rng.shuffle(self._order)
            self._next = 0
        return None

    def reap(self, now: float, retention: float) -> None:
        """Forget who left, and keep the dead in their graves alone, `retention` seconds after."""
        gone = [
            record
            for record in self._order
            if not record.health.present and now - record.since > retention
        ]
        for record in gone:
            del self.records[record.claim.node]
        if gone:
            self._order = [record for record in self._order if record.name in self.records]
            self.touched()

    def bury(self, record: Record) -> None:
        """A member died; somebody will knock at its grave from time to time."""
        self.graves.pop(record.claim.node, None)
        self.graves[record.claim.node] = record
        if len(self.graves) > GRAVES_MAX:
            del self.graves[next(iter(self.graves))]

    def exhume(self, name: str) -> Record | None:
        """A member is dead no more."""
        return self.graves.pop(name, None)

    def sample(self, count: int, wanted: Callable[[Record], bool]) -> list[Record]:
        """Up to `count` random records that are wanted, never our own.

        Small rosters are searched in full: three draws a place would miss the only relay of a
        tiny cluster in 2.6 % of failures (hashicorp/memberlist#350).
        """
        order, random = self._order, self._rng.random
        if len(order) < 3 * count:
            shuffled = order.copy()
            self._rng.shuffle(shuffled)
            found = [each for each in shuffled if each.claim.node != self._me and wanted(each)]
            return found[:count]
        chosen: dict[str, Record] = {}
        for _ in range(3 * count):
            record = order[int(random() * len(order))]
            if record.claim.node != self._me and wanted(record):
                chosen[record.claim.node] = record
                if len(chosen) == count:
                    break
        return list(chosen.values())
