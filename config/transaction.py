"""A reload: read, check, compare, change over as a whole; else the last good settings stay.

Three things are kept apart: what runs, what is configured (valid, perhaps waiting for a
restart), and what was attempted last (perhaps refused).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from config.attempts import Attempts, failed_layers, stamp
from config.judgement import Candidate, Judgement, Terms, judge
from config.load import Attempt, Source, surroundings
from config.problems import ConfigError, Problem, dotted, lines
from config.render import document, text
from config.report import Report, Result
from config.secrets import content_of, secrets_of
from config.subscribers import Changeover, Fault, Subscriber, Update, parts_of
from config.tree import Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from config.changes import Pending
    from config.digest import Digests
    from config.documents import Text
    from config.judgement import Outside
    from config.layers import Provenance
    from config.parse import Loaded
    from config.schema.settings import Settings
    from config.secrets import Secret
    from config.tree import Plain

READ_PATIENCE = 30.0
SECOND_LOOK = 1.0
"""A file that was changed a moment ago and makes no sense may be half written: look again then."""
AUTOMATIC = frozenset({"file", "annotation"})
"""Triggers behind which nobody waits for an answer."""
log = structlog.get_logger("wayout.config")


def automatic(trigger: str) -> bool:
    """Whether nobody waits for the answer to a run with this trigger, which may be several."""
    return AUTOMATIC.issuperset(trigger.split("+"))


@dataclass(frozen=True, slots=True)
class _Standing:
    """What a roll-back goes back to, as one value."""

    running: Loaded
    configured: Loaded
    pending: tuple[Pending, ...] = ()


class _Stopwatch:
    """Seconds of each phase of one run."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.monotonic()

    def lap(self, phase: str) -> None:
        """What was done since the last lap was `phase`."""
        now = time.monotonic()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._since
        self._since = now


@dataclass(slots=True)
class _Run:
    """One run under way."""

    report: Report
    watch: _Stopwatch = field(default_factory=_Stopwatch)


class Reloader:
    """Owner of the settings in force. Everything but `reload` is immediate.

    `refused` is what came of the files at start, when `loaded` stands in for them.
    """

    def __init__(
        self,
        path: Path | str,
        loaded: Loaded,
        *,
        environ: Mapping[str, str] | None = None,
        overrides: Sequence[str] = (),
        clock: Callable[[], float] = time.time,
        refused: Attempt | None = None,
    ) -> None:
        self._source = Source(Path(path), surroundings(environ=environ, overrides=overrides))
        self._clock = clock
        self._lock = asyncio.Lock()
        self._subscribers: list[Subscriber] = []
        self._outside: Outside | None = None
        self._now = _Standing(loaded, loaded)
        self._attempted = loaded.settings
        self._known = loaded.secrets
        self.generation = 1
        first = Report(Result.APPLIED, "start", stamp(clock()), 1, warnings=loaded.warnings)
        content = loaded.digests.content
        if refused is not None and isinstance(refused.outcome, ConfigError):
            first = replace(first, result=Result.REJECTED, problems=refused.outcome.problems)
            content = refused.content
        self._content = content = content + content_of(loaded.secrets)
        self.attempts = Attempts(content, first, clock())

    def listen(self, remote: Callable[[], Text | None]) -> None:
        """From the next run on a layer that comes from elsewhere (an annotation) counts, too."""
        self._source = replace(self._source, remote=remote)

    @property
    def settings(self) -> Settings:
        """What runs: the configured settings, except what waits for a restart."""
        return self._now.running.settings

    @property
    def digests(self) -> Digests:
        """Digests of what runs."""
        return self._now.running.digests

    @property
    def provenance(self) -> Provenance:
        """Where what is configured comes from."""
        return self._now.configured.provenance

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The secret files that what runs refers to."""
        return self._now.running.secrets

    @property
    def pending_restart(self) -> tuple[Pending, ...]:
        """What the files say and only a restart brings about."""
        return self._now.pending

    @property
    def last(self) -> Report:
        """What came of the last run."""
        return self.attempts.last

    @property
    def attempted(self) -> str:
        """The content that was tried last, whatever came of it."""
        return self.attempts.content

    @property
    def stale(self) -> bool:
        """Whether the last attempt was refused, so that older settings run than are written."""
        return not self.last.good

    @property
    def file_differs(self) -> bool:
        """Whether the files, when last looked at, were others than those in force."""
        configured = self._now.configured
        return self._content != configured.digests.content + content_of(configured.secrets)

    @property
    def rest(self) -> float:
        """Seconds between two runs that nobody asked for; more of them while writers quarrel."""
        shortest = self.settings.config.min_reload_interval
        return self.attempts.flips.rest(shortest, self._clock())

    @property
    def path(self) -> Path:
        """The main file."""
        return self._source.path

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is doubtful about the configured settings."""
        return self._now.configured.warnings

    @property
    def failed_layers(self) -> frozenset[str]:
        """Ranks of the layers in which the last attempt found problems."""
        if self.last.good:
            return frozenset()
        layers = [
            (each.name, each.rank.name.lower()) for each in self._now.running.provenance.layers
        ]
        return failed_layers(self.last.problems, str(self._source.path), layers)

    @property
    def ranks(self) -> tuple[str, ...]:
        """Kinds of layers that the configured settings come from."""
        layers = self._now.configured.provenance.layers
        return tuple(dict.fromkeys(each.rank.name.lower() for each in layers))

    def subscribe(self, subscriber: Subscriber) -> None:
        """From now on, and in the order of subscription."""
        self._subscribers.append(subscriber)

    def attach(self, outside: Outside) -> None:
        """Who knows better what runs of the files that options name, such as keys.

        `outside(settings)` names the options whose file says something else than what runs: a
        file that was changed together with what runs is no change. Called in a thread.
        """
        self._outside = outside

    async def look(self) -> str:
        """The digest of the files as they are now; empty if they cannot be read."""
        try:
            async with asyncio.timeout(READ_PATIENCE):
                self._content = await asyncio.to_thread(self._look)
        except TimeoutError:
            self._content = ""
        return self._content

    def _look(self) -> str:
        content = self._source.content()
        # By the names of the last attempt: so what was refused for a bad key file is known again.
        found = secrets_of(self._attempted) if content else ()
        if self._outside is not None and found != self._known:
            differing, known = self._outside(self._attempted), {s.path: s for s in self._known}
            found = tuple(s if s.path in differing else known.get(s.path, s) for s in found)
        return content + content_of(found) if content else ""

    async def reload(
        self, trigger: str, *, dry_run: bool = False, allow_removal: bool = False
    ) -> Report:
        """Take what the files say now; one at a time. Raises nothing that an operator can cause."""
        async with self._lock:
            now = stamp(self._clock())
            run = _Run(Report(Result.UNCHANGED, trigger, now, self.generation, dry_run=dry_run))
            judged = await self._judged(allow_removal=allow_removal)
            if isinstance(judged.outcome, ConfigError) and automatic(trigger):
                await asyncio.sleep(SECOND_LOOK)
                judged = await self._judged(allow_removal=allow_removal)
            run.watch.lap("read")
            report = await self._followed(judged, run)
            if not dry_run:
                content = self._seen(judged)
                report = replace(report, seconds=run.watch.seconds)
                self.attempts.remember(content, report, self._clock())
            return report

    def _seen(self, judged: Judgement) -> str:
        """What `look` will find for as long as nobody changes anything."""
        self._attempted = judged.settings or self._attempted
        if isinstance(judged.outcome, Candidate):
            self._known = judged.outcome.loaded.secrets
        else:
            self._known = secrets_of(self._attempted)
        self._content = judged.content + content_of(self._known) if judged.content else ""
        return self._content

    async def _judged(self, *, allow_removal: bool) -> Judgement:
        """In a thread: large files take longer than the loop may be held."""
        rebinding = frozenset().union(*(each.rebinds for each in self._subscribers))
        terms = Terms(self._now.running, rebinding, allow_removal, self._outside)
        try:
            async with asyncio.timeout(READ_PATIENCE):
                return await asyncio.to_thread(judge, self._source, terms)
        except TimeoutError:
            where, message = Mark(str(self._source.path)), f"not read within {READ_PATIENCE:g} s"
            problem = Problem(where, "", message, "look at the disk")
            return Judgement("", None, ConfigError((problem,)))

    async def _followed(self, judged: Judgement, run: _Run) -> Report:
        """What follows from a verdict."""
        candidate, dry_run = judged.outcome, run.report.dry_run
        if isinstance(candidate, ConfigError):
            return replace(run.report, result=Result.REJECTED, problems=candidate.problems)
        live = candidate.live
        run.report = replace(
            run.report,
            warnings=candidate.loaded.warnings,
            changes=(*live, *candidate.split.waiting),
            pending_restart=candidate.split.pending,
            parts=parts_of(self._subscribers, candidate.live),
        )
        if dry_run:
            return replace(run.report, result=Result.APPLIED if live else Result.UNCHANGED)
        if live:
            return await self._transaction(candidate, run)
        self._adopt(candidate)
        return run.report

    async def _transaction(self, candidate: Candidate, run: _Run) -> Report:
        before = self._now
        update = Update(self.settings, candidate.settings, candidate.live)
        changeover = Changeover(self._subscribers, update)
        fault = await changeover.prepare()
        run.watch.lap("prepare")
        result = Result.REJECTED
        if fault is None:
            # From here to the new generation there is no await: nobody sees half of it.
            fault = changeover.commit()
            result = Result.ROLLED_BACK
        if fault is not None:
            return self._failed(run, result, [fault, *changeover.failed_rollbacks])
        self.generation += 1
        self._adopt(candidate)
        run.watch.lap("commit")
        await self._finalized(changeover)
        run.watch.lap("finalize")
        fault = await changeover.confirm()
        run.watch.lap("confirm")
        if fault is not None:
            return await self._undone(before, update, run, fault)
        return replace(run.report, result=Result.APPLIED, generation=self.generation)

    def _failed(self, run: _Run, result: Result, faults: Sequence[Fault]) -> Report:
        """Everybody is as before, unless a roll-back failed as well (all faults but the first)."""
        where = Mark(str(self._source.path))
        problems = tuple(Problem(where, "", str(each)) for each in faults)
        # What waits for a restart belongs to a candidate that was not taken.
        return replace(
            run.report,
            result=result,
            problems=problems,
            generation=self.generation,
            pending_restart=self._now.pending,
            inconsistent=len(faults) > 1,
        )

    async def _undone(self, before: _Standing, update: Update, run: _Run, fault: Fault) -> Report:
        """The way back is a changeover like any other, with the sides exchanged."""
        back = Update(update.new, update.old, update.changes)
        changeover = Changeover(self._subscribers, back)
        faults = [fault]
        failure = await changeover.prepare() or changeover.commit()
        if failure is not None:
            faults += [failure, *changeover.failed_rollbacks]
        else:
            self.generation += 1
            self._now = before
            await self._finalized(changeover)
        return self._failed(run, Result.ROLLED_BACK, faults)

    async def _finalized(self, changeover: Changeover) -> None:
        for each in await changeover.finalize():
            log.warning("config.finish_failed", part=each.subscriber, reason=each.reason)

    def _adopt(self, candidate: Candidate) -> None:
        """Level with the files: what runs, what is configured, and what waits, computed anew."""
        settings, sums = candidate.settings, candidate.digests
        running = replace(candidate.loaded, settings=settings, digests=sums)
        self._now = _Standing(running, candidate.loaded, candidate.split.pending)

    def status(self) -> dict[str, Plain]:
        """The part `config` of `status --json`, and a little more."""
        failed = self.attempts.failed
        return {
            "generation": self.generation,
            "digest": self.digests.cluster,
            "node_digest": self.digests.node,
            "stale": self.stale,
            "file_differs": self.file_differs,
            "pending_restart": [each.to_plain() for each in self._now.pending],
            "last_reload": self.last.summary(),
            "last_error": None if failed is None else failed.summary(),
            "inconsistent": self.attempts.inconsistent,
            "secrets": {dotted(each.path): str(each) for each in self._now.running.secrets},
            "path": str(self._source.path),
            "layers": [each.name for each in self._now.running.provenance.layers],
            "warnings": [*lines(self.warnings)],
        }

    def show(
        self, *, which: str = "running", origin: bool = False, changed_only: bool = False
    ) -> dict[str, Plain]:
        """The settings that run or are configured: nested like the file, and as YAML."""
        chosen = self._now.configured if which == "configured" else self._now.running
        origins = chosen.provenance if origin else None
        waiting = [each.path for each in self._now.pending] if chosen is self._now.running else []
        yaml = text(chosen.settings, origins=origins, waiting=waiting, changed_only=changed_only)
        values = document(chosen.settings, changed_only=changed_only)
        return {"which": which, "settings": values, "yaml": yaml}
