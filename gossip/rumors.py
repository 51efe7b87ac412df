"""The broadcast queue: what travels along with other packets, a limited number of times each.

Fewest transmissions first, then longest, then newest. A rumor about a subject replaces the one
that was queued about it before.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gossip.wire.compound import SENT_MAX

if TYPE_CHECKING:
    from collections.abc import Hashable

FRAMING = 2
"""Bytes that a part of a compound costs on top of its own."""
SHORTEST = FRAMING + 16
"""Nothing worth looking for fits into less."""
QUEUE_MAX = 1 << 16
"""Rumors kept; beyond, the one that was sent most often is dropped."""


@dataclass(frozen=True, slots=True)
class Rumor:
    """An encoded message about `subject`; `ours` goes to wayout members alone."""

    subject: Hashable
    data: bytes
    ours: bool


# (transmissions, -length, -serial, rumor): sorted, this is the order of sending.
Entry = tuple[int, int, int, Rumor]


class Rumors:
    """Owned by one machine. Entries are kept sorted, so that a packet is filled from the front.

    `longest`: bytes of the longest rumor that fits a packet, framing included.
    """

    def __init__(self, *, longest: int) -> None:
        self._queue: list[Entry] = []
        self._own: list[Entry] = []
        self._entries: dict[Hashable, Entry] = {}
        self._serial = 0
        self.longest = longest

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, subject: Hashable) -> bool:
        return subject in self._entries

    def add(self, subject: Hashable, data: bytes, *, ours: bool = False, sent: int = 0) -> None:
        """Queue `data`, as if it had been sent `sent` times already.

        What fits no packet would stay for ever, so it is not queued at all.
        """
        self.discard(subject)
        if len(data) + FRAMING > self.longest:
            return
        if len(self._entries) >= QUEUE_MAX:
            self._drop_oldest()
        self._serial += 1
        self._insert((sent, -len(data), -self._serial, Rumor(subject, data, ours)))

    def discard(self, subject: Hashable) -> None:
        """Forget what is queued about a subject."""
        entry = self._entries.pop(subject, None)
        if entry is not None:
            lane = self._lane(entry)
            del lane[bisect_left(lane, entry)]

    def draw(self, budget: int, limit: int, *, ours: bool) -> list[bytes]:
        """Rumors for one packet within `budget` bytes, framing included; each counts as sent.

        `limit` is the number of transmissions after which a rumor retires. Our own messages
        come first, up to half of the packet when others wait: in large clusters they would
        starve behind membership (hashicorp/memberlist#299).
        """
        if not self._entries:
            return []
        taken: list[Entry] = []
        if ours and self._own:
            share = budget // 2 if self._queue else budget
            budget -= share - _fill(self._own, share, taken)
        budget = _fill(self._queue, budget, taken)
        if ours and self._own:
            _fill(self._own, budget, taken)
        for sent, length, serial, rumor in taken:
            del self._entries[rumor.subject]
            if sent + 1 < limit:
                self._insert((sent + 1, length, serial, rumor))
        return [entry[3].data for entry in taken]

    def _insert(self, entry: Entry) -> None:
        self._entries[entry[3].subject] = entry
        insort(self._lane(entry), entry)

    def _lane(self, entry: Entry) -> list[Entry]:
        return self._own if entry[3].ours else self._queue

    def _drop_oldest(self) -> None:
        lane = self._queue or self._own
        self.discard(lane[-1][3].subject)


def _fill(lane: list[Entry], budget: int, taken: list[Entry]) -> int:
    """Move what fits from `lane` to `taken`; the budget that is left."""
    places: list[int] = []
    # One place is left for the message that carries the rumors along.
    room = SENT_MAX - 1 - len(taken)
    for place, entry in enumerate(lane):
        if len(places) == room or budget < SHORTEST:
            break
        if FRAMING - entry[1] <= budget:
            budget -= FRAMING - entry[1]
            places.append(place)
            taken.append(entry)
    for place in reversed(places):
        del lane[place]
    return budget
