"""What members say of each other, folded into the roster: memberlist's merge rules in one place.

Beyond memberlist: an accusation is answered to the accused, so that it can refute; the dead come
back with another address at once; *left* beats *dead*; time that we slept through counts for
nobody's suspicion; and whoever announced a restart is waited for.
"""

from __future__ import annotations

import math
from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, assert_never

from gossip import addressing
from gossip.events import Dropped, HealthChanged, MetaChanged, NameConflict, Refuted
from gossip.local import SEQUENCE_MAX
from gossip.peer import NOWHERE, Health
from gossip.roster import MEMBERS_MAX, Record, supersedes
from gossip.suspicion import Suspicion
from gossip.tuning import suspicion_bounds
from gossip.wire import codec, own
from gossip.wire.messages import Alive, Dead, Suspect, WireError

if TYPE_CHECKING:
    from gossip.local import Local
    from gossip.peer import Address
    from gossip.verdicts import Verdicts

RESTART_MAX = 120.0
"""Seconds that anybody is waited for, whatever its metadata says."""
QUIET = 1.0
"""Seconds between two answers to stale news of the same member, or two reports of a conflict."""
ANSWERED_MAX = 1024
LEAST_VERSIONS = 3


class Hearsay:
    """Owned by one machine; the only one that changes records."""

    def __init__(self, local: Local, verdicts: Verdicts) -> None:
        self._local = local
        self._verdicts = verdicts
        self._suspicions: dict[str, Suspicion] = {}
        self._expiries: list[tuple[float, str]] = []
        self._answered: dict[str, float] = {}
        self.contested = False
        me = local.identity
        claim = Alive(1, me.name, local.origin.addr, me.address.port, me.meta, me.versions)
        self.me = Record(claim, me.address, 0.0)
        local.roster.add(self.me)

    # What we say of ourselves.

    def announce(self) -> None:
        """Queue our own alive."""
        self._local.rumors.add(self._local.name, encoded(self.me.claim))

    def restate(self, meta: bytes, incarnation: int, now: float) -> None:
        """Say that we live, with this metadata and incarnation."""
        old = self.me.claim
        incarnation = min(incarnation, SEQUENCE_MAX)
        self.me.claim = Alive(incarnation, old.node, old.addr, old.port, meta, old.versions)
        self.me.incarnation = incarnation
        self._local.roster.touched()
        if self.me.health is not Health.ALIVE:
            self.me.health, self.me.since = Health.ALIVE, now

    def leave(self, now: float) -> Dead:
        """Accuse ourselves, which is how members leave."""
        self.me.health, self.me.since = Health.LEFT, now
        word = Dead(self.me.incarnation, self._local.name, self._local.name)
        self._local.rumors.add(self._local.name, encoded(word))
        return word

    # What others say.

    def assume(self, claim: Alive, now: float) -> None:
        """Take a member for known, without events or rumors."""
        place = self._place(claim)
        if place is not None and self._local.roster.get(claim.node) is None:
            self._local.roster.add(Record(claim, place, now))

    def hear(self, claim: Alive | Suspect | Dead, now: float) -> None:
        """Any word on a member."""
        match claim:
            case Alive():
                self.alive(claim, now)
            case Suspect():
                self.suspect(claim, now)
            case Dead():
                self.dead(claim, now)
            case _:
                assert_never(claim)

    def alive(self, claim: Alive, now: float) -> None:
        """A member lives, or is said to."""
        record = self._local.roster.get(claim.node)
        if record is self.me:
            self._alive_me(claim, now)
        elif record is None:
            self._introduce(claim, now)
        elif claim.addr != record.claim.addr or claim.port != record.claim.port:
            self._elsewhere(claim, record, now)
        elif supersedes(claim.incarnation, Health.ALIVE, record):
            self._revive(claim, record, record.address, now)
        elif not record.health.present:
            self._answer(record, record.address, now)

    def suspect(self, claim: Suspect, now: float) -> None:
        """Somebody got no answer from a member."""
        record = self._local.roster.get(claim.node)
        if record is None or claim.incarnation < record.incarnation:
            return
        if record is self.me:
            self._refute(claim.incarnation, claim.accuser, now)
        elif (suspicion := self._suspicions.get(claim.node)) is not None:
            self._confirm(claim, record, suspicion)
        elif supersedes(claim.incarnation, Health.SUSPECT, record):
            self._doubt(claim, record, now)

    def dead(self, claim: Dead, now: float) -> None:
        """A member is dead, or has left when it says so itself."""
        record = self._local.roster.get(claim.node)
        health = Health.LEFT if claim.accuser == claim.node else Health.DEAD
        if record is None or claim.incarnation < record.incarnation:
            return
        if record is self.me:
            self._refute(claim.incarnation, claim.accuser, now)
        elif supersedes(claim.incarnation, health, record):
            self._bury(claim, record, health, now)

    def accusation(self, record: Record) -> bytes | None:
        """What to add to a packet for a member that we do not hold alive, so that it can refute."""
        if record.health is Health.ALIVE or record is self.me:
            return None
        name, me = record.name, self._local.name
        if record.health is Health.SUSPECT:
            return encoded(Suspect(record.incarnation, name, me))
        accuser = name if record.health is Health.LEFT else me
        return encoded(Dead(record.incarnation, name, accuser))

    def reached(self, name: str, now: float) -> None:
        """Somebody got an answer from a member, whatever is said of it."""
        self._verdicts.heard(name, now)

    # Time.

    @property
    def deadline(self) -> float:
        """When the next suspicion becomes a death."""
        return self._expiries[0][0] if self._expiries else math.inf

    def advance(self, now: float) -> None:
        """Declare dead whose time to refute is over."""
        while self._expiries and self._expiries[0][0] <= now:
            _, name = heappop(self._expiries)
            suspicion, record = self._suspicions.get(name), self._local.roster.get(name)
            if suspicion is None or record is None or suspicion.deadline > now:
                continue
            self.dead(Dead(record.incarnation, name, self._local.name), now)

    def postpone(self, seconds: float) -> None:
        """We slept: refutations may wait in the sockets, so give everybody that much more."""
        for suspicion in self._suspicions.values():
            suspicion.postpone(seconds)
        self._expiries = [(each.deadline, name) for name, each in self._suspicions.items()]
        heapify(self._expiries)

    def _alive_me(self, claim: Alive, now: float) -> None:
        if self._local.leaving or claim.incarnation < self.me.incarnation:
            return
        if addressing.locate(claim.addr, claim.port) != self.me.address:
            # Our own former life, or somebody else with our name: they must settle it first.
            self._conflict(claim, self.me, now)
            self.contested = True
            return
        mine = self.me.claim
        same = claim.meta == mine.meta and claim.versions == mine.versions
        if claim.incarnation > mine.incarnation or not same:
            self._refute(claim.incarnation, "", now)

    def _refute(self, accused: int, accuser: str, now: float) -> None:
        if self._local.leaving or accused >= SEQUENCE_MAX:
            return
        self.restate(self.me.claim.meta, max(self.me.incarnation, accused) + 1, now)
        self.announce()
        self._local.feel(1)
        self._local.tell(Refuted(self.me.incarnation, accuser))

    def _introduce(self, claim: Alive, now: float) -> None:
        place = self._place(claim)
        if place is None:
            return
        if claim.incarnation == 0 or not _sane(claim.versions):
            self._local.tell(Dropped(place, "bad_versions" if claim.incarnation else "no_life"))
            return
        if len(self._local.roster) >= MEMBERS_MAX or not claim.node:
            self._local.tell(Dropped(place, "too_many_members" if claim.node else "no_name"))
            return
        buried = self._local.roster.exhume(claim.node)
        record = Record(claim, place, now)
        self._local.roster.add(record)
        self._local.rumors.add(claim.node, encoded(claim))
        was = None if buried is None else Health.DEAD
        self._local.tell(HealthChanged(record.member(), was, claim.node))

    def _elsewhere(self, claim: Alive, record: Record, now: float) -> None:
        """The same name from other bytes: another form of the address, or another place."""
        place = self._place(claim)
        if place is None:
            return
        if place == record.address:
            if supersedes(claim.incarnation, Health.ALIVE, record):
                self._revive(claim, record, place, now)
            return
        waited = now - record.since >= self._local.tuning.reclaim_after
        if record.health is Health.LEFT or (record.health is Health.DEAD and waited):
            if claim.incarnation > 0:
                self._revive(claim, record, place, now)
        else:
            self._conflict(claim, record, now)

    def _revive(self, claim: Alive, record: Record, place: Address, now: float) -> None:
        if not _sane(claim.versions):
            return
        was, changed = record.health, claim.meta != record.claim.meta
        if place != record.address:
            self._verdicts.forget(record)
        record.claim, record.incarnation, record.address = claim, claim.incarnation, place
        self._suspicions.pop(claim.node, None)
        if was is not Health.ALIVE:
            self._local.roster.exhume(claim.node)
            record.health, record.since = Health.ALIVE, now
            record.unreachable = record.unreachable and was is Health.SUSPECT
        self._local.roster.touched()
        self._local.rumors.add(claim.node, encoded(claim))
        if was is not Health.ALIVE:
            self._local.tell(HealthChanged(record.member(), was, claim.node))
        if changed:
            self._local.tell(MetaChanged(record.member()))
        self._verdicts.renewed(record, now)

    def _confirm(self, claim: Suspect, record: Record, suspicion: Suspicion) -> None:
        record.incarnation = max(record.incarnation, claim.incarnation)
        if suspicion.confirm(claim.accuser):
            heappush(self._expiries, (suspicion.deadline, claim.node))
            self._local.rumors.add(claim.node, encoded(claim))

    def _doubt(self, claim: Suspect, record: Record, now: float) -> None:
        tuning = self._local.tuning
        bounds = suspicion_bounds(tuning, *self._local.sizes(now))
        extra = restarting(record.claim.meta) if tuning.additions else 0.0
        suspicion = Suspicion(claim.accuser, bounds, now, extra=extra)
        self._suspicions[claim.node] = suspicion
        heappush(self._expiries, (suspicion.deadline, claim.node))
        self._turn(record, Health.SUSPECT, claim.incarnation, now, claim.accuser)
        self._local.rumors.add(claim.node, encoded(claim))

    def _bury(self, claim: Dead, record: Record, health: Health, now: float) -> None:
        self._suspicions.pop(claim.node, None)
        self._verdicts.forget(record)
        if record.health is health:
            # The same news of a later life: only a still later one may overrule it.
            record.incarnation = claim.incarnation
            return
        self._turn(record, health, claim.incarnation, now, claim.accuser)
        if health is Health.DEAD:
            self._local.roster.bury(record)
        else:
            self._local.roster.exhume(claim.node)
        self._local.rumors.add(claim.node, encoded(claim))

    def _turn(
        self, record: Record, health: Health, incarnation: int, now: float, accuser: str
    ) -> None:
        was, record.health = record.health, health
        record.incarnation, record.since = incarnation, now
        self._local.roster.touched()
        self._local.tell(HealthChanged(record.member(), was, accuser))

    def _answer(self, record: Record, to: Address, now: float) -> None:
        """Somebody still takes a dead member for alive: it may be right, so let it hear of it."""
        if not self._local.tuning.additions or not self._due(record.name, now):
            return
        word = self.accusation(record)
        if word is not None:
            self._local.post(to, record, word)

    def _conflict(self, claim: Alive, record: Record, now: float) -> None:
        place = self._place(claim)
        if place is not None and self._due(claim.node, now):
            self._local.tell(NameConflict(claim.node, record.address, place))

    def _due(self, name: str, now: float) -> bool:
        if now - self._answered.get(name, -math.inf) < QUIET:
            return False
        if len(self._answered) >= ANSWERED_MAX:
            self._answered.clear()
        self._answered[name] = now
        return True

    def _place(self, claim: Alive) -> Address | None:
        place = addressing.locate(claim.addr, claim.port)
        if place is None:
            self._local.tell(Dropped(NOWHERE, "bad_address"))
            return None
        if not addressing.allowed(place.host, self._local.tuning.allowed):
            self._local.tell(Dropped(place, "not_allowed"))
            return None
        return place


@lru_cache(maxsize=4096)
def encoded(message: Alive | Suspect | Dead) -> bytes:
    """The bytes of a message; many machines of a simulation pass on the same one."""
    return codec.encode(message)


@lru_cache(maxsize=4096)
def restarting(meta: bytes) -> float:
    """Seconds for which a member asked to be waited for."""
    if not own.is_ours(meta):
        return 0.0
    try:
        _, value = own.unpack(meta)
    except WireError:
        return 0.0
    seconds = value.get("restarting", 0.0) if isinstance(value, dict) else 0.0
    if not isinstance(seconds, int | float):
        return 0.0
    return min(max(float(seconds), 0.0), RESTART_MAX)


def _sane(versions: bytes) -> bool:
    """Whether the protocol range makes sense, when there is one."""
    if len(versions) < LEAST_VERSIONS:
        return True
    least, most = versions[0], versions[1]
    return 0 < least <= most
