"""Words about who can be reached: silent, unreachable, reachable; ours, apart from suspicion.

A word is about (incarnation, episode) of a member. Within an episode a member may become
silent, then unreachable; reachable ends it, whoever says so: one way to a host is enough. Words
are passed on the moment they arrive, each once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, assert_never

from gossip.events import Reachable, Silent, Unreachable
from gossip.wire import codec, own
from gossip.wire.messages import User

if TYPE_CHECKING:
    from collections.abc import Callable

    from gossip.events import Plain
    from gossip.local import Local
    from gossip.peer import Address
    from gossip.roster import Record
    from gossip.spread import Spread

BOOK_MAX = 4096
"""Members about whom words are remembered."""
AGE_MAX = 3600.0
"""Seconds of silence that a word may claim; more makes no sense."""


class Word(IntEnum):
    """In the order in which an episode goes."""

    SILENT = 0
    UNREACHABLE = 1
    REACHABLE = 2


KINDS = {
    Word.SILENT: own.SILENT,
    Word.UNREACHABLE: own.UNREACHABLE,
    Word.REACHABLE: own.REACHABLE,
}
WORDS = {kind: word for word, kind in KINDS.items()}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The last word about a member; `since` is when it was last heard (loop seconds)."""

    incarnation: int
    episode: int
    word: Word
    since: float

    @property
    def key(self) -> tuple[int, int, Word]:
        """The greater key is the later word, in whatever order words arrive."""
        return self.incarnation, self.episode, self.word


class Verdicts:
    """Owned by one machine.

    `vouch` says whether we heard a member just now ourselves; `relieved` is told when a missing
    one was reached. `missing` maps the addresses of missing members to their names.
    """

    def __init__(self, local: Local, spread: Spread) -> None:
        self._local = local
        self._spread = spread
        self._book: dict[str, Verdict] = {}
        self.vouch: Callable[[str, float], bool] = lambda _name, _now: False
        self.relieved: Callable[[str, float], None] = lambda _name, _now: None
        self.missing: dict[Address, str] = {}

    def open(self, name: str) -> bool:
        """Whether the last word about a member is that it is missing."""
        verdict = self._book.get(name)
        return verdict is not None and verdict.word is not Word.REACHABLE

    def said(self, name: str, word: Word) -> bool:
        """Whether this is the last word about a member."""
        verdict = self._book.get(name)
        return verdict is not None and verdict.word is word

    def say(self, word: Word, record: Record, incarnation: int, since: float, now: float) -> None:
        """Our own finding, told to everybody; `incarnation` is the latest that we heard of."""
        name = record.name
        known = self._book.get(name)
        incarnation = max(incarnation, record.incarnation)
        episode = 1
        if known is not None and known.incarnation >= incarnation:
            ended = known.word is Word.REACHABLE
            incarnation, episode = known.incarnation, known.episode + ended
        verdict = Verdict(incarnation, episode, word, since)
        if known is None or verdict.key > known.key:
            self._adopt(name, verdict, now)

    def heard_word(self, kind: int, value: Plain, now: float) -> None:
        """Somebody's finding."""
        name, verdict = _read(kind, value, now)
        record = self._local.roster.get(name)
        if record is None or not record.health.present:
            return
        known = self._book.get(name)
        if known is not None and verdict.key <= known.key:
            return
        missing = verdict.word is not Word.REACHABLE
        if missing and (name == self._local.name or self.vouch(name, now)):
            self._adopt(
                name, Verdict(verdict.incarnation, verdict.episode, Word.REACHABLE, now), now
            )
        elif record.incarnation <= verdict.incarnation:
            self._adopt(name, verdict, now)

    def heard(self, name: str, now: float) -> None:
        """A sign of life that came straight from a member that was missing."""
        known, record = self._book.get(name), self._local.roster.get(name)
        if known is not None and record is not None and known.word is not Word.REACHABLE:
            self.say(Word.REACHABLE, record, known.incarnation, now, now)

    def renewed(self, record: Record, now: float) -> None:
        """A member said that it lives, in an incarnation that nobody has missed yet."""
        known = self._book.get(record.name)
        if known is None or record.incarnation <= known.incarnation:
            return
        if known.word is not Word.REACHABLE:
            self._note(record, Verdict(record.incarnation, 0, Word.REACHABLE, now), now)

    def forget(self, record: Record) -> None:
        """A member died or left: that says it all."""
        if self._book.pop(record.name, None) is not None:
            self.missing.pop(record.address, None)

    def _adopt(self, name: str, verdict: Verdict, now: float) -> None:
        record = self._local.roster.get(name)
        if record is None:
            return
        if len(self._book) >= BOOK_MAX and name not in self._book:
            self._book.pop(next(iter(self._book)))
        self._note(record, verdict, now)
        value: list[Plain] = [
            name.encode("utf-8", "surrogateescape"),
            verdict.incarnation,
            verdict.episode,
            round(now - verdict.since, 3),
        ]
        data = codec.encode(User(own.pack(KINDS[verdict.word], value)))
        self._spread.flood(("verdict", name), data)

    def _note(self, record: Record, verdict: Verdict, now: float) -> None:
        known = self._book.get(record.name)
        was_missing = known is not None and known.word is not Word.REACHABLE
        self._book[record.name] = verdict
        if record.name == self._local.name:
            return
        match verdict.word:
            case Word.SILENT:
                self.missing[record.address] = record.name
                self._local.tell(Silent(record.name, verdict.since))
            case Word.UNREACHABLE:
                self.missing[record.address] = record.name
                record.unreachable = True
                self._local.roster.touched()
                self._local.tell(Unreachable(record.name, verdict.since))
            case Word.REACHABLE:
                self.missing.pop(record.address, None)
                record.unreachable = False
                self._local.roster.touched()
                if was_missing:
                    self._local.tell(Reachable(record.name))
                    self.relieved(record.name, now)
            case _:
                assert_never(verdict.word)


def _read(kind: int, value: Plain, now: float) -> tuple[str, Verdict]:
    """ValueError when it is no word of ours."""
    match value:
        case [bytes(name), int(incarnation), int(episode), (int() | float()) as age]:
            since = now - min(max(float(age), 0.0), AGE_MAX)
            text = name.decode("utf-8", "surrogateescape")
            return text, Verdict(incarnation, episode, WORDS[kind], since)
        case _:
            raise ValueError("not a verdict")
