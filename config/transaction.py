"""A reload: read, check, compare, change over as a whole; else the last good settings stay.

Three things are kept apart: what runs, what is configured (valid, perhaps waiting for a
restart), and what was attempted last (perhaps refused).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from pydantic import ValidationError

from config import rules
from config.changes import Change, Pending, Split, apply, diff, refilled, split
from config.digest import Digests, digests
from config.guard import guarded
from config.leaves import built, leaves_of
from config.load import Source, nowhere, surroundings
from config.parse import Loaded
from config.problems import ConfigError, Problem, dotted, lines
from config.render import document, text
from config.report import Report, Result
from config.subscribers import Changeover, Subscriber, Update
from config.tree import Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    Outside = Callable[["Settings"], Mapping[tuple[str, ...], str]]

    from config.documents import Text
    from config.layers import Provenance
    from config.schema.settings import Settings
    from config.tree import Plain

READ_PATIENCE = 30.0
_EVENTS = {each: f"config.{each.value}" for each in Result}
log = structlog.get_logger("wayout.config")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Valid settings on their way in: what would run, its digests, and what would wait."""

    loaded: Loaded
    settings: Settings
    digests: Digests
    split: Split


@dataclass(frozen=True, slots=True)
class _Judgement:
    """The verdict before any part is asked; `content` is that of the files."""

    content: str
    outcome: _Candidate | ConfigError


class Reloader:
    """Owner of the settings in force. Everything but `reload` is immediate."""

    def __init__(
        self,
        path: Path | str,
        loaded: Loaded,
        *,
        environ: Mapping[str, str] | None = None,
        overrides: Sequence[str] = (),
        remote: Callable[[], Text | None] = nowhere,
        clock: Callable[[], float] = time.time,
    ) -> None:
        around = surroundings(environ=environ, overrides=overrides)
        self._source = Source(Path(path), around, remote)
        self._clock = clock
        self._lock = asyncio.Lock()
        self._subscribers: list[Subscriber] = []
        self._outside: list[Outside] = []
        self._running = loaded
        self._configured = loaded
        self._pending: tuple[Pending, ...] = ()
        self._content = loaded.digests.content
        self.generation = 1
        self.attempted = loaded.digests.content
        self.last = Report(
            Result.APPLIED, "start", _stamp(clock()), self.generation, warnings=loaded.warnings
        )

    @property
    def settings(self) -> Settings:
        """What runs: the configured settings, except what waits for a restart."""
        return self._running.settings

    @property
    def digests(self) -> Digests:
        """Digests of what runs."""
        return self._running.digests

    @property
    def pending_restart(self) -> tuple[Pending, ...]:
        """What the files say and only a restart brings about."""
        return self._pending

    @property
    def stale(self) -> bool:
        """Whether the last attempt was refused, so that older settings run than are written."""
        return not self.last.good

    @property
    def file_differs(self) -> bool:
        """Whether the files, when last looked at, were others than those in force."""
        return self._content != self._configured.digests.content

    def subscribe(self, subscriber: Subscriber) -> None:
        """From now on, and in the order of subscription."""
        self._subscribers.append(subscriber)

    def attach(self, outside: Outside) -> None:
        """Files that options name and a part reads, such as keys.

        For each option whose file says something else than what runs, `outside` gives a digest
        of it: that is a change of the option, though its value is the same. Called in a thread.
        """
        self._outside.append(outside)

    async def look(self) -> str:
        """The digest of the files as they are now; empty if they cannot be read."""
        try:
            async with asyncio.timeout(READ_PATIENCE):
                self._content = await asyncio.to_thread(self._looked)
        except TimeoutError:
            self._content = ""
        return self._content

    async def reload(
        self, trigger: str, *, dry_run: bool = False, allow_removal: bool = False
    ) -> Report:
        """Take what the files say now; one at a time. Raises nothing that an operator can cause."""
        async with self._lock:
            judged = await self._judged(allow_removal=allow_removal)
            report = Report(Result.UNCHANGED, trigger, _stamp(self._clock()), self.generation)
            if isinstance(judged.outcome, ConfigError):
                problems = judged.outcome.problems
                report = replace(report, result=Result.REJECTED, problems=problems)
            else:
                report = await self._changed_over(judged.outcome, report, dry_run=dry_run)
            if dry_run:
                return replace(report, dry_run=True)
            self._remember(judged.content, report)
            return report

    async def _judged(self, *, allow_removal: bool) -> _Judgement:
        """In a thread: large files take longer than the loop may be held."""
        try:
            async with asyncio.timeout(READ_PATIENCE):
                return await asyncio.to_thread(self._judge, allow_removal=allow_removal)
        except TimeoutError:
            where, message = Mark(str(self._source.path)), f"not read within {READ_PATIENCE:g} s"
            problem = Problem(where, "", message, "look at the disk")
            return _Judgement("", ConfigError((problem,)))

    def _looked(self) -> str:
        content = self._source.content()
        return _marked(content, self._found_outside(self.settings)) if content else ""

    def _found_outside(self, settings: Settings) -> dict[tuple[str, ...], str]:
        return {path: told for each in self._outside for path, told in each(settings).items()}

    def _judge(self, *, allow_removal: bool) -> _Judgement:
        """Read, and say everything that can be said against a candidate."""
        attempt = self._source.attempt(self.settings.node.name)
        loaded = attempt.outcome
        if isinstance(loaded, ConfigError):
            # As `look` says it, so that it is recognised.
            found = self._found_outside(self.settings)
            return _Judgement(_marked(attempt.content, found), loaded)
        found = self._found_outside(loaded.settings)
        candidate = self._weighed(loaded, found, allow_removal=allow_removal)
        return _Judgement(_marked(attempt.content, found), candidate)

    def _weighed(
        self, loaded: Loaded, outside: Collection[tuple[str, ...]], *, allow_removal: bool
    ) -> _Candidate | ConfigError:
        running, wanted = leaves_of(self.settings), leaves_of(loaded.settings)
        rebinding = frozenset().union(*(each.rebinds for each in self._subscribers))
        parts = split((*diff(running, wanted), *refilled(running, wanted, outside)), rebinding)
        if parts.forbidden:
            return ConfigError(_forbidden(each, loaded.provenance) for each in parts.forbidden)
        settings = self._mixed(loaded, parts) if parts.waiting else loaded.settings
        if isinstance(settings, ConfigError):
            return settings
        refusal = guarded(self.settings, settings, loaded.provenance)
        if refusal is not None and not allow_removal:
            return ConfigError((refusal,))
        content = loaded.digests.content
        sums = digests(settings, content) if parts.waiting else loaded.digests
        return _Candidate(loaded, settings, sums, parts)

    def _mixed(self, loaded: Loaded, parts: Split) -> Settings | ConfigError:
        """What runs until the restart: the new settings with the old ones where they wait."""
        mixed = apply(leaves_of(self.settings), parts.live)
        try:
            settings = built(mixed)
        except ValidationError as error:
            where = Mark(str(self._source.path))
            problems = [Problem(where, "", str(each["msg"])) for each in error.errors()]
        else:
            problems, _ = rules.check(settings, loaded.provenance)
            if not problems:
                return settings
        hint = "restart instead, or change the options that need a restart by themselves"
        return ConfigError(replace(each, hint=hint) for each in problems)

    async def _changed_over(
        self, candidate: _Candidate, report: Report, *, dry_run: bool
    ) -> Report:
        live = candidate.split.live
        report = replace(
            report,
            warnings=candidate.loaded.warnings,
            changes=(*live, *candidate.split.waiting),
            pending_restart=candidate.split.pending,
        )
        if dry_run:
            return replace(report, result=Result.APPLIED if live else Result.UNCHANGED)
        if live:
            return await self._transaction(candidate, report)
        self._adopt(candidate)
        return report

    async def _transaction(self, candidate: _Candidate, report: Report) -> Report:
        update = Update(self.settings, candidate.settings, candidate.split.live)
        changeover = Changeover(self._subscribers, update)
        fault = await changeover.prepare()
        result = Result.REJECTED
        if fault is None:
            # From here to the new generation there is no await: nobody sees half of it.
            fault = changeover.commit()
            result = Result.ROLLED_BACK
        if fault is not None:
            faults = [fault, *changeover.failed_rollbacks]
            where = candidate.loaded.provenance.tree.mark
            problems = tuple(Problem(where, "", str(each)) for each in faults)
            inconsistent = bool(changeover.failed_rollbacks)
            # What waits for a restart belongs to a candidate that was not taken.
            kept = replace(report, pending_restart=self._pending, inconsistent=inconsistent)
            return replace(kept, result=result, problems=problems)
        self.generation += 1
        self._adopt(candidate)
        for each in await changeover.finalize():
            log.warning("config.finish_failed", part=each.subscriber, reason=each.reason)
        return replace(report, result=Result.APPLIED, generation=self.generation)

    def _adopt(self, candidate: _Candidate) -> None:
        """Level with the files: what runs, what is configured, and what waits, computed anew."""
        settings, sums = candidate.settings, candidate.digests
        self._running = replace(candidate.loaded, settings=settings, digests=sums)
        self._configured = candidate.loaded
        self._pending = candidate.split.pending

    def _remember(self, content: str, report: Report) -> None:
        repeated = content == self.attempted and not report.good and not self.last.good
        # What was taken over no longer differs from what runs, wherever it was read.
        self.attempted = self._configured.digests.content if report.good else content
        self._content = self.attempted
        self.last = report
        if report.good:
            log.info(_EVENTS[report.result], generation=report.generation, trigger=report.trigger)
            for each in report.pending_restart:
                log.warning("config.pending_restart", path=each.path, reason=each.reason)
        elif not repeated:
            log.error(_EVENTS[report.result], errors=lines(report.problems))

    def status(self) -> dict[str, Plain]:
        """The part `config` of `status --json`, and a little more."""
        return {
            "generation": self.generation,
            "digest": self.digests.cluster,
            "node_digest": self.digests.node,
            "stale": self.stale,
            "file_differs": self.file_differs,
            "pending_restart": [each.to_plain() for each in self._pending],
            "last_reload": self.last.summary(),
            "path": str(self._source.path),
            "layers": [each.name for each in self._running.provenance.layers],
            "warnings": [*lines(self._configured.warnings)],
        }

    def show(
        self, *, which: str = "running", origin: bool = False, changed_only: bool = False
    ) -> dict[str, Plain]:
        """The settings that run or are configured: nested like the file, and as YAML."""
        chosen = self._configured if which == "configured" else self._running
        origins = chosen.provenance if origin else None
        waiting = [each.path for each in self._pending] if chosen is self._running else []
        yaml = text(chosen.settings, origins=origins, waiting=waiting, changed_only=changed_only)
        values = document(chosen.settings, changed_only=changed_only)
        return {"which": which, "settings": values, "yaml": yaml}


def _marked(content: str, outside: Mapping[tuple[str, ...], str]) -> str:
    """The digest of the sources together with what differs in files that they name."""
    return "".join([content, *(f"+{outside[path]}" for path in sorted(outside))])


def _forbidden(change: Change, provenance: Provenance) -> Problem:
    row = change.to_plain()
    message = f"cannot change from {row['old']!r} to {row['new']!r} while the cluster runs"
    hint = f"put it back, or stop all nodes first ({change.option.restart_reason})"
    return Problem(provenance.mark(change.path), dotted(change.path), message, hint, "immutable")


def _stamp(now: float) -> str:
    when = datetime.fromtimestamp(now, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
