"""Watching members that carry addresses: three missed heartbeats start a short check.

The duty begins with the first heartbeat and ends with a stop flag, a leave, or an announced
restart. Silence counts our own running time alone, and whoever doubts itself says nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gossip.events import ProcessGone
from gossip.hearsay import restarting
from gossip.peer import Health
from gossip.probe import ask_relay
from gossip.verdicts import Word
from gossip.wire.messages import Ack, Ping

if TYPE_CHECKING:
    from gossip.beat import Beat
    from gossip.contact import Contact
    from gossip.local import Local
    from gossip.peer import Address
    from gossip.roster import Record
    from gossip.verdicts import Verdicts
    from gossip.wire.messages import StreamMessage

MISSED = 3.05
"""Intervals without a heartbeat that are too many; the odd part is for jitter."""
VOUCHED = 1.2
"""Intervals within which our own last word from a member outweighs somebody else's silence."""
CHECK_INTERVALS = 2
ATTEMPTS = 2
"""Checks before we speak although no relay said a word: it may be us who are cut off."""
REST_MAX = 5.0
"""Seconds at most between checks of a member that only others reach."""
IDLE_CHECKS = 4
"""Checks in a row that reached a member without a heartbeat: its farewell was lost."""
ALARMS_MAX = 3
"""False alarms about one member after which silence alone is not worth a word to everybody."""
ALARMS_KEPT = 30.0
GONE_AGAIN = 5.0
"""Seconds before we say again that a process is gone."""
WATCHED_MAX = 4096


class Watched:
    """One member under watch; `due` is when its silence becomes a matter."""

    __slots__ = (
        "alarms",
        "attempts",
        "due",
        "ends",
        "incarnation",
        "last",
        "relays",
        "rested",
        "seq",
        "spoken",
        "voices",
    )

    def __init__(self, now: float) -> None:
        self.last = now
        self.due = now
        self.incarnation = 0
        self.seq = 0
        self.ends = math.inf
        self.attempts = 0
        self.relays = 0
        self.voices = 0
        self.rested = 0
        self.spoken = False
        self.alarms: list[float] = []

    @property
    def deadline(self) -> float:
        """When something is to be done about it."""
        return self.ends if self.seq else self.due


class Watch:
    """Owned by one machine."""

    def __init__(self, local: Local, verdicts: Verdicts, contact: Contact) -> None:
        self._local = local
        self._verdicts = verdicts
        self._contact = contact
        self._watched: dict[str, Watched] = {}
        self._gone: dict[str, float] = {}
        self.places: dict[Address, str] = {}
        verdicts.vouch = self._vouch
        verdicts.relieved = self._relieved

    @property
    def deadline(self) -> float:
        """When the next silence is too long, or the next check is over."""
        if not self._watched:
            return math.inf
        return min(each.deadline for each in self._watched.values())

    def calm(self, *, carrying: bool) -> bool:
        """Whether nobody is missed, and we look again soon enough to miss anybody in time."""
        watched = self._watched.values()
        if self._verdicts.missing or not (carrying or watched):
            return False
        return not any(each.seq or each.rested for each in watched)

    def hears(self, name: str) -> bool:
        """Whether this member sends us its heartbeats, and lately."""
        watched = self._watched.get(name)
        return watched is not None and not watched.seq and not watched.rested

    def heartbeat(self, beat: Beat, now: float) -> None:
        """A heartbeat arrived."""
        name = beat.name
        record = self._local.roster.get(name)
        if beat.stop or record is None or not record.health.present or not record.wayout:
            self._dismiss(name)
            return
        watched = self._watched.get(name)
        if watched is None:
            if len(self._watched) >= WATCHED_MAX or name == self._local.name:
                return
            watched = self._watched[name] = Watched(now)
            self.places[record.address] = name
        watched.incarnation = beat.incarnation
        watched.rested = 0
        self._settle(watched)
        self.heard(name, now)

    def heard_from(self, place: Address, now: float) -> None:
        """Any sign of life from where a member lives, under watch or missed by others."""
        if self.places and (name := self.places.get(place)) is not None:
            self.heard(name, now)
        missing = self._verdicts.missing
        if missing and (name := missing.get(place)) is not None:
            self._verdicts.heard(name, now)

    def heard(self, name: str, now: float) -> None:
        """Any direct sign of life from a member under watch."""
        watched = self._watched.get(name)
        if watched is None:
            return
        watched.last = max(watched.last, now)
        if watched.seq:
            self._spared(name, watched, now)
        else:
            watched.attempts = 0
            watched.due = watched.last + MISSED * self._local.tuning.watch_interval

    def advance(self, now: float) -> None:
        """Begin and conclude checks."""
        if now < self.deadline:
            return
        for name, watched in list(self._watched.items()):
            if now < watched.deadline:
                continue
            record = self._local.roster.get(name)
            if record is None or not record.health.present or restarting(record.claim.meta) > 0:
                self._dismiss(name)
            elif watched.seq:
                self._conclude(record, watched, now)
            else:
                self._check(record, watched, now)

    def postpone(self, seconds: float, now: float) -> None:
        """We slept: heartbeats may wait in the sockets, and what we missed is our own fault."""
        grace = now + 2 * self._local.tuning.watch_interval
        for watched in self._watched.values():
            self._settle(watched)
            if watched.due != math.inf:
                watched.last = min(watched.last + seconds, now)
                watched.due = max(watched.due + seconds, grace)

    def refused(self, record: Record, now: float) -> None:
        """The member's host lives, but nothing listens there: do not wait for three beats."""
        if restarting(record.claim.meta) > 0:
            return
        watched = self._watched.get(record.name)
        if now - self._gone.get(record.name, -math.inf) >= GONE_AGAIN:
            if len(self._gone) >= WATCHED_MAX:
                self._gone.clear()
            self._gone[record.name] = now
            self._local.tell(ProcessGone(record.name))
        if watched is not None and not watched.seq and watched.due != math.inf:
            self._check(record, watched, now)

    def acked(self, seq: int, now: float) -> None:
        """Somebody reached a member that was silent."""
        for name, watched in self._watched.items():
            if watched.seq == seq:
                self._verdicts.heard(name, now)
                self._spared(name, watched, now)
                return

    def nacked(self, seq: int, now: float) -> None:
        """A relay lives, so it is not us who are cut off."""
        del now
        for watched in self._watched.values():
            if watched.seq == seq:
                watched.voices += 1

    def _check(self, record: Record, watched: Watched, now: float) -> None:
        if self._local.awareness.degraded(now):
            watched.due = now + self._local.tuning.watch_interval
            return
        if self._verdicts.said(record.name, Word.UNREACHABLE):
            # Somebody was faster; there is nothing to add until the member is heard again.
            watched.due = math.inf
            return
        watched.alarms = [at for at in watched.alarms if now - at < ALARMS_KEPT]
        watched.spoken = len(watched.alarms) < ALARMS_MAX
        if watched.spoken:
            watched.alarms.append(now)
            self._verdicts.say(Word.SILENT, record, watched.incarnation, watched.last, now)
        self._ask(record, watched, now)
        self._contact.burst(now)

    def _ask(self, record: Record, watched: Watched, now: float) -> None:
        local, tuning = self._local, self._local.tuning
        self._settle(watched)
        seq = watched.seq = local.question(self)
        length = max(CHECK_INTERVALS * tuning.watch_interval, tuning.probe_timeout)
        watched.ends = now + length
        watched.attempts += 1
        watched.voices = 0
        local.send(record.address, record, local.ping(seq, record.name), gossip=False)
        relays = local.roster.sample(
            max(tuning.indirect_checks, 1),
            lambda each: each.health is Health.ALIVE and each.wayout and each is not record,
        )
        watched.relays = len(relays)
        for relay in relays:
            ask_relay(local, relay, record, seq)
        ping = Ping(seq, record.name, local.origin)
        local.dial(
            record.address, ping, length, lambda message, now: self._streamed(seq, message, now)
        )

    def _streamed(self, seq: int, message: StreamMessage | None, now: float) -> None:
        if isinstance(message, Ack) and message.seq == seq:
            self.acked(seq, now)

    def _spared(self, name: str, watched: Watched, now: float) -> None:
        """A check found life, though no heartbeat: the next one has more patience."""
        self._settle(watched)
        watched.attempts = 0
        watched.rested += 1
        watched.due = now + self._rest(watched.rested)
        if watched.rested >= IDLE_CHECKS:
            self._dismiss(name)

    def _conclude(self, record: Record, watched: Watched, now: float) -> None:
        self._settle(watched)
        if self._local.awareness.degraded(now):
            watched.due = now + self._local.tuning.watch_interval
        elif watched.spoken and not self._verdicts.open(record.name):
            # Somebody else reaches it, and we do not: leave it at that for a while.
            watched.rested += 1
            watched.due = now + self._rest(watched.rested)
        elif watched.relays and not watched.voices and watched.attempts < ATTEMPTS:
            self._ask(record, watched, now)
        else:
            watched.due = math.inf
            self._verdicts.say(Word.UNREACHABLE, record, watched.incarnation, watched.last, now)

    def _rest(self, times: int) -> float:
        return min(MISSED * self._local.tuning.watch_interval * float(2 ** min(times, 8)), REST_MAX)

    def _vouch(self, name: str, now: float) -> bool:
        watched = self._watched.get(name)
        if watched is None:
            return False
        return now - watched.last <= VOUCHED * self._local.tuning.watch_interval

    def _relieved(self, name: str, now: float) -> None:
        """Somebody reaches a member that was given up: it is under watch again."""
        watched = self._watched.get(name)
        if watched is not None and watched.due == math.inf:
            watched.rested += 1
            watched.due = now + self._rest(watched.rested)

    def _settle(self, watched: Watched) -> None:
        if watched.seq:
            self._local.asked.pop(watched.seq, None)
            watched.seq, watched.ends = 0, math.inf

    def _dismiss(self, name: str) -> None:
        watched = self._watched.pop(name, None)
        if watched is not None:
            self._settle(watched)
            self.places = {place: each for place, each in self.places.items() if each != name}
