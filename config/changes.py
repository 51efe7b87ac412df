"""What differs between two settings, leaf by leaf, and what each difference takes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from config.defaults import default_of
from config.leaves import SEQUENCES, ordered
from config.problems import dotted
from config.redact import shown
from config.schema.option import Modifiability, Option
from config.schema.table import entry_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from config.leaves import Leaves
    from config.tree import Plain


class Absent(Enum):
    """There is no such leaf; `null` is something else."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Change:
    """One leaf that differs; ABSENT on the side that does not have it."""

    path: tuple[str, ...]
    old: Plain | Absent
    new: Plain | Absent
    option: Option
    content: bool = False

    @property
    def kind(self) -> str:
        """`added`, `removed`, `changed`, or `content`: the value is the same, its file is not."""
        if self.old is ABSENT:
            return "added"
        if self.content:
            return "content"
        return "removed" if self.new is ABSENT else "changed"

    def to_plain(self) -> dict[str, Plain]:
        """For JSON; an absent side is null."""
        return {
            "path": dotted(self.path),
            "kind": self.kind,
            "old": self._side(self.old),
            "new": self._side(self.new),
            "class": self.option.modifiability.value,
            "scope": self.option.scope.value,
        }

    def _side(self, value: Plain | Absent) -> Plain:
        return None if isinstance(value, Absent) else shown(self.path, value)


@dataclass(frozen=True, slots=True)
class Pending:
    """A change that waits for a restart."""

    path: str
    running: Plain
    configured: Plain
    reason: str

    def to_plain(self) -> dict[str, Plain]:
        """As `status --json` has it."""
        return {
            "path": self.path,
            "running": self.running,
            "configured": self.configured,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Split:
    """Changes by what they take: nothing, a restart, or a new cluster."""

    live: tuple[Change, ...]
    waiting: tuple[Change, ...]
    forbidden: tuple[Change, ...]

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What waits, told to people."""
        return tuple(_pending(each) for each in self.waiting)


def diff(old: Leaves, new: Leaves) -> tuple[Change, ...]:
    """Every leaf that differs in meaning, by path; the order of text in a list has none."""
    found = []
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path, ABSENT), new.get(path, ABSENT)
        if _same(before, after, path):
            continue
        entry = entry_of(path)
        assert entry is not None
        found.append(Change(path, before, after, entry.option))
    return tuple(found)


def _same(one: Plain | Absent, other: Plain | Absent, path: tuple[str, ...]) -> bool:
    if isinstance(one, Absent) or isinstance(other, Absent):
        return one is other
    if path[-1] in SEQUENCES:
        return one == other
    # In Python 1 == True; in a configuration they differ.
    return ordered(one) == ordered(other) and isinstance(one, bool) == isinstance(other, bool)


def notable(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Without the defaults that come and go with a whole egress: what people want to read."""
    return tuple(
        each for each in changes if each.kind in ("changed", "content") or not _by_default(each)
    )


def _by_default(change: Change) -> bool:
    entry = entry_of(change.path)
    value = change.old if change.new is ABSENT else change.new
    return entry is not None and entry.path != change.path and value == default_of(entry)


def apply(leaves: Leaves, changes: Iterable[Change]) -> Leaves:
    """`leaves` with the changes made: `apply(old, diff(old, new))` means what `new` does."""
    whole = dict(leaves)
    for each in changes:
        if isinstance(each.new, Absent):
            whole.pop(each.path, None)
        else:
            whole[each.path] = each.new
    return whole


def split(changes: Iterable[Change], rebinding: Collection[str] = ()) -> Split:
    """Sort changes by what they take.

    `rebinding` are the options (`api.socket`) whose sockets somebody can move; any other
    `rebind` option waits for a restart like a static one.
    """
    live: list[Change] = []
    waiting: list[Change] = []
    forbidden: list[Change] = []
    for each in changes:
        match each.option.modifiability:
            case Modifiability.DYNAMIC:
                live.append(each)
            case Modifiability.REBIND:
                (live if dotted(each.path) in rebinding else waiting).append(each)
            case Modifiability.STATIC:
                waiting.append(each)
            case Modifiability.IMMUTABLE:
                forbidden.append(each)
    return Split(tuple(live), tuple(waiting), tuple(forbidden))


def _pending(change: Change) -> Pending:
    row = change.to_plain()
    return Pending(dotted(change.path), row["old"], row["new"], change.option.restart_reason)
