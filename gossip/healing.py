"""Healing: seeds are dialled until they are members, and the dead are knocked at for a long time.

A cluster that was cut in two is whole again seconds after the link is back, although nobody is a
seed of anybody: a knock tells the dead that they are dead, and they refute it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gossip.addressing import locate
from gossip.events import SyncFailed
from gossip.peer import Health

if TYPE_CHECKING:
    from gossip.hearsay import Hearsay
    from gossip.local import Local
    from gossip.peer import Address
    from gossip.sync import Sync
    from gossip.wire.messages import Ping

QUICK = (0.2, 0.5, 1.0, 2.0, 3.0)
"""Seconds between the first dials of a node that has heard of nobody yet."""
DIALS_MAX = 8
"""Seeds dialled in one round."""
STRANGER_REST = 1.0
"""Seconds between two dials to members that ping us and whom we do not know."""
FIRST_REDIAL = 2.0
KNOCKERS = 4
"""Members that knock at one grave in each interval, in a large cluster."""
PROOF = 10.0
"""Seconds after a join in which somebody should ping us; else nobody took us in."""


class Healing:
    """Owned by one machine."""

    def __init__(self, local: Local, hearsay: Hearsay, sync: Sync) -> None:
        self._local = local
        self._hearsay = hearsay
        self._sync = sync
        self._dialling: dict[Address, None] = {}
        self._knocks: dict[int, Address] = {}
        self._tries = 0
        self._next_rejoin = math.inf
        self._next_knock = 0.0
        self._next_redial = 0.0
        self._redial = FIRST_REDIAL
        self._stranger_at = -math.inf
        self._proof_at = math.inf
        self._joined_at: Address | None = None
        self.seeds: tuple[Address, ...] = ()

    @property
    def deadline(self) -> float:
        """When to dial or to knock next."""
        deadline = min(self._next_rejoin, self._proof_at)
        if self._knocking():
            deadline = min(deadline, self._next_knock, self._next_redial)
        return deadline

    def start(self, now: float) -> None:
        """Dial all seeds."""
        self._tries = 0
        self._next_rejoin = now
        self.advance(now)

    def stop(self) -> None:
        """Whoever leaves does not come back by itself."""
        self._next_rejoin = self._proof_at = math.inf
        self.seeds = ()

    def retune(self, now: float) -> None:
        """Do not sleep through a new, shorter interval."""
        if self._next_rejoin != math.inf:
            self._next_rejoin = min(self._next_rejoin, now + self._local.tuning.rejoin_interval)

    def set_seeds(self, seeds: tuple[Address, ...], now: float, *, started: bool) -> None:
        """Other seeds; new ones are dialled at once."""
        if seeds != self.seeds:
            self.seeds = seeds
            if started:
                self._next_rejoin = now
                self.advance(now)

    def pinged(self, ping: Ping, now: float) -> None:
        """Somebody takes us for a member; whom we do not know we ask for what it knows."""
        if ping.node:
            self._proof_at = math.inf
        origin, local = ping.origin, self._local
        if origin is None or not origin.node or not local.tuning.additions or local.leaving:
            return
        if local.roster.get(origin.node) is None and now >= self._stranger_at + STRANGER_REST:
            place = locate(origin.addr, origin.port)
            if place is not None:
                self._stranger_at = now
                self._dial(place, join=False)

    def advance(self, now: float) -> None:
        """Whatever is due."""
        if now >= self._next_rejoin:
            self._rejoin(now)
        if now >= self._proof_at:
            self._unproven(now)
        if self._knocking() and now >= self._next_knock:
            self._knock(now)
        if self._knocking() and now >= self._next_redial:
            self._redial_grave(now)

    def acked(self, seq: int, now: float) -> None:
        """A grave answered: exchange everything, it will not be the only one."""
        del now
        address = self._knocks.pop(seq, None)
        self._local.asked.pop(seq, None)
        if address is not None:
            self._dial(address, join=True)

    def nacked(self, seq: int, now: float) -> None:
        """Nobody relays a knock."""

    def _rejoin(self, now: float) -> None:
        missing = [seed for seed in self.seeds if self._absent(seed)]
        if self._hearsay.contested:
            self._hearsay.contested = False
            missing = missing or list(self.seeds)
        self._local.rng.shuffle(missing)
        for seed in missing[:DIALS_MAX]:
            self._dial(seed, join=True)
        interval = self._local.tuning.rejoin_interval
        if self._sync.completed == 0 and self.seeds:
            interval = min(QUICK[min(self._tries, len(QUICK) - 1)], interval)
            self._tries += 1
        self._next_rejoin = now + interval * (0.8 + 0.4 * self._local.rng.random())

    def _absent(self, seed: Address) -> bool:
        if seed == self._local.address:
            return False
        record = self._local.roster.at(seed)
        return record is None or record.health is not Health.ALIVE

    def _dial(self, address: Address, *, join: bool) -> None:
        if address in self._dialling or address == self._local.address:
            return
        self._dialling[address] = None

        def done(success: bool, now: float) -> None:  # noqa: FBT001 - a callback
            self._dialling.pop(address, None)
            if success and join and self._joined_at is None:
                self._joined_at = address
                self._proof_at = now + PROOF

        self._sync.begin(address, join=join, done=done)

    def _unproven(self, now: float) -> None:
        """A refused join looks like success on this side, so somebody has to notice."""
        self._proof_at = math.inf
        if self._joined_at is not None and len(self._local.roster) > 1:
            self._local.tell(SyncFailed(self._joined_at, join=True, reason="not_accepted"))
            address, self._joined_at = self._joined_at, None
            self._dial(address, join=True)
            self._next_rejoin = min(self._next_rejoin, now + self._local.tuning.rejoin_interval)

    def _knocking(self) -> bool:
        return bool(self._local.roster.graves) and self._local.tuning.knock_interval != math.inf

    def _share(self) -> float:
        """How much rarer each member knocks in a large cluster with few graves."""
        roster = self._local.roster
        return max(1.0, len(roster) / (KNOCKERS * len(roster.graves)))

    def _knock(self, now: float) -> None:
        local = self._local
        jitter = 0.8 + 0.4 * local.rng.random()
        self._next_knock = now + local.tuning.knock_interval * self._share() * jitter
        for seq in self._knocks:
            local.asked.pop(seq, None)
        self._knocks.clear()
        graves = list(local.roster.graves.values())
        record = graves[int(local.rng.random() * len(graves))]
        if now - record.since > local.tuning.forget_after:
            local.roster.exhume(record.name)
            return
        word = self._hearsay.accusation(record)
        seq = local.question(self)
        self._knocks[seq] = record.address
        # The accusation first: then the ack already carries the refutation along.
        parts = (
            [local.ping(seq, record.name)] if word is None else [word, local.ping(seq, record.name)]
        )
        local.send(record.address, record, *parts, gossip=False)

    def _redial_grave(self, now: float) -> None:
        local = self._local
        graves = list(local.roster.graves.values())
        jitter = 0.6 + 0.4 * local.rng.random()
        self._next_redial = now + self._redial * self._share() * jitter
        self._redial = min(2 * self._redial, local.tuning.redial_interval)
        record = graves[int(local.rng.random() * len(graves))]
        if now - record.since >= FIRST_REDIAL:
            self._dial(record.address, join=True)
