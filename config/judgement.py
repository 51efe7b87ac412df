"""The verdict on what the files say now, before any part of the daemon is asked.

Everything here blocks on the file system and is called in a thread; nothing is changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from config import rules
from config.changes import Change, Split, apply, diff, split
from config.digest import Digests
from config.guard import guarded
from config.leaves import built, leaves_of
from config.problems import ConfigError, Problem, dotted
from config.schema.table import entry_of
from config.tree import Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from config.layers import Provenance
    from config.load import Source
    from config.parse import Loaded
    from config.schema.settings import Settings
    from config.secrets import Secret

    Outside = Callable[[Settings], Collection[tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """Valid settings on their way in: what would run, its digests, what changes, what waits.

    `rotated` are the files that options name and that have another content.
    """

    loaded: Loaded
    settings: Settings
    digests: Digests
    split: Split
    rotated: tuple[Change, ...]

    @property
    def live(self) -> tuple[Change, ...]:
        """What takes effect without a restart."""
        return (*self.split.live, *self.rotated)


@dataclass(frozen=True, slots=True)
class Judgement:
    """`content` is that of the files; `settings` are those they hold, None if they hold none."""

    content: str
    settings: Settings | None
    outcome: Candidate | ConfigError


@dataclass(frozen=True, slots=True)
class Terms:
    """What a candidate is held against: what runs, and which sockets can be moved."""

    running: Loaded
    rebinding: Collection[str]
    allow_removal: bool = False
    outside: Outside | None = None


def judge(source: Source, terms: Terms) -> Judgement:
    """Read, and say everything that can be said against a candidate."""
    attempt = source.attempt(terms.running.settings.node.name)
    loaded = attempt.outcome
    if isinstance(loaded, ConfigError):
        return Judgement(attempt.content, None, loaded)
    return Judgement(attempt.content, loaded.settings, _weighed(source, loaded, terms))


def _weighed(source: Source, loaded: Loaded, terms: Terms) -> Candidate | ConfigError:
    running = terms.running.settings
    parts = split(diff(leaves_of(running), leaves_of(loaded.settings)), terms.rebinding)
    if parts.forbidden:
        return ConfigError(_forbidden(each, loaded.provenance) for each in parts.forbidden)
    settings = _mixed(source, running, loaded, parts) if parts.waiting else loaded.settings
    if isinstance(settings, ConfigError):
        return settings
    refusal = guarded(running, settings, loaded.provenance)
    if refusal is not None and not terms.allow_removal:
        return ConfigError((refusal,))
    sums = Digests(settings, loaded.digests.content, loaded.secrets)
    sums.settle()  # Here, in a thread, and not when the loop asks.
    rotated = _rotated(terms.running.secrets, loaded.secrets)
    if terms.outside is not None and rotated:
        differing = terms.outside(loaded.settings)
        rotated = tuple(each for each in rotated if each.path in differing)
    return Candidate(loaded, settings, sums, parts, rotated)


def _mixed(
    source: Source, running: Settings, loaded: Loaded, parts: Split
) -> Settings | ConfigError:
    """What runs until the restart: the new settings with the old ones where they wait."""
    mixed = apply(leaves_of(running), parts.live)
    try:
        settings = built(mixed)
    except ValidationError as error:
        where = Mark(str(source.path))
        problems = [Problem(where, "", str(each["msg"])) for each in error.errors()]
    else:
        problems, _ = rules.check(settings, loaded.provenance)
        if not problems:
            return settings
    hint = "restart instead, or change the options that need a restart by themselves"
    return ConfigError(replace(each, hint=hint) for each in problems)


def _rotated(old: Sequence[Secret], new: Sequence[Secret]) -> tuple[Change, ...]:
    """Files that are still named by the same option, with another content."""
    before = {each.path: each for each in old}
    found = []
    for each in new:
        was = before.get(each.path)
        if was is None or was.file != each.file or was.content == each.content:
            continue
        entry = entry_of(each.path)
        assert entry is not None
        found.append(Change(each.path, str(was), str(each), entry.option, content=True))
    return tuple(found)


def _forbidden(change: Change, provenance: Provenance) -> Problem:
    row = change.to_plain()
    message = f"cannot change from {row['old']!r} to {row['new']!r} while the cluster runs"
    hint = f"put it back, or stop all nodes first ({change.option.restart_reason})"
    return Problem(provenance.mark(change.path), dotted(change.path), message, hint, "immutable")
