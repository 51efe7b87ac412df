"""The gossip tick, and floods: messages of ours that are passed on the moment they arrive."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gossip.peer import Health
from gossip.tuning import retransmissions
from gossip.wire import compound

if TYPE_CHECKING:
    from collections.abc import Hashable

    from gossip.local import Local
    from gossip.roster import Record

SMALL = 16
"""Up to so many members, a flood goes to everybody at once."""
CHANCES = 2
"""Transmissions that a flood is still worth where it went to everybody."""


class Spread:
    """Owned by one machine; there is no tick while there is nothing to say."""

    def __init__(self, local: Local) -> None:
        self._local = local
        self._last = 0.0

    def start(self, now: float) -> None:
        """The phase is random, so that nodes that booted together do not tick together."""
        self._last = now - self._local.rng.random() * self._local.tuning.gossip_interval

    @property
    def deadline(self) -> float:
        """When the next round is due."""
        return self._last + self._local.tuning.gossip_interval if self._local.rumors else math.inf

    def advance(self, now: float) -> None:
        """Tell a few random members what is queued."""
        interval = self._local.tuning.gossip_interval
        if not self._local.rumors or now < self._last + interval:
            return
        if self._local.tuning.additions:
            # After a quiet time the first rumor leaves at once: the tick limits the rate alone.
            self._last = now
        else:
            self._last += math.floor((now - self._last) / interval) * interval
        self._round(now)

    def _round(self, now: float) -> None:
        local = self._local
        retention = local.tuning.dead_retention

        def wanted(record: Record) -> bool:
            if record.health is Health.DEAD:
                return now - record.since <= retention
            return record.health is not Health.LEFT

        for record in local.roster.sample(local.tuning.fanout, wanted):
            drawn = local.draw(record)
            if drawn:
                local.post(record.address, record, compound.bundle(drawn))

    def flood(self, subject: Hashable, data: bytes) -> None:
        """Send a message of ours to wayout members now, and let it travel with other packets.

        One push to few members reaches most of a large cluster within milliseconds; the queue
        sees to the rest.
        """
        local = self._local
        small = len(local.roster) <= SMALL
        if small:
            heard = [each for each in local.roster.others() if _listens(each)]
        else:
            heard = local.roster.sample(local.tuning.fanout + 1, _listens)
        for record in heard:
            local.post(record.address, record, data)
        limit = retransmissions(local.tuning.retransmit_mult, len(local.roster))
        # Where everybody was told, and tells everybody, a second chance or two are enough.
        local.rumors.add(subject, data, ours=True, sent=max(limit - CHANCES, 0) if small else 1)

    def goodbye(self, data: bytes) -> None:
        """Send a last message to everybody in a small cluster, to many in a large one."""
        local = self._local
        everybody = [each for each in local.roster.others() if each.health.present]
        local.rng.shuffle(everybody)
        for record in everybody[: 4 * SMALL]:
            local.post(record.address, record, data)


def _listens(record: Record) -> bool:
    return record.health.present and record.wayout
