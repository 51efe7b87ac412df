"""What asks for a reload: a signal, the socket, a changed file; all feed one worker.

A request that comes while a run is under way waits for the next one, since the run may have
read the files before the operator wrote them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Protocol

import structlog

from config.schema.agent import AutoReload

if TYPE_CHECKING:
    from config.report import Report
    from config.transaction import Reloader

QUIET = 0.25
"""A run begins when nobody has asked for this long …"""
LONGEST = 2.0
"""… and at the latest this long after the first who did."""
JITTER = 0.1
WISHES_MAX = 64
log = structlog.get_logger("wayout.config")


class Reloading(Protocol):
    """What the worker drives: a `Reloader`."""

    async def reload(
        self, trigger: str, *, dry_run: bool = False, allow_removal: bool = False
    ) -> Report:
        """Take what the files say now."""
        ...


class TooManyError(Exception):
    """More callers wait for a reload than the worker will hold."""


@dataclass(slots=True)
class _Wish:
    dry_run: bool
    allow_removal: bool
    answer: asyncio.Future[Report]


@dataclass(slots=True)
class _Batch:
    """What one run answers."""

    triggers: list[str] = field(default_factory=list)
    wishes: list[_Wish] = field(default_factory=list)


class Reloads:
    """The one worker."""

    def __init__(self, reloader: Reloading, *, quiet: float = QUIET) -> None:
        self._reloader = reloader
        self._quiet = quiet
        self._batch = _Batch()
        self._asked = asyncio.Event()

    def poke(self, trigger: str) -> None:
        """Ask and go on, from a signal handler for example; many pokes are one run."""
        if trigger not in self._batch.triggers:
            self._batch.triggers.append(trigger)
        self._asked.set()

    async def request(
        self, trigger: str, *, dry_run: bool = False, allow_removal: bool = False
    ) -> Report:
        """Ask and wait for the verdict of a run that begins from now on.

        The caller sets the time limit. Raises TooManyError.
        """
        if len(self._batch.wishes) >= WISHES_MAX:
            raise TooManyError
        wish = _Wish(dry_run, allow_removal, asyncio.get_running_loop().create_future())
        self._batch.wishes.append(wish)
        if not dry_run and trigger not in self._batch.triggers:
            self._batch.triggers.append(trigger)
        self._asked.set()
        return await wish.answer

    async def run(self) -> None:
        """A part: until cancelled."""
        try:
            while True:
                await self._asked.wait()
                await self._settled()
                await self._serve(self._take())
        finally:
            _abandon(self._batch)

    def _take(self) -> _Batch:
        taken, self._batch = self._batch, _Batch()
        self._asked.clear()
        return taken

    async def _settled(self) -> None:
        """Wait for quiet, but not for ever."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + LONGEST
        while (now := loop.time()) < latest:
            self._asked.clear()
            try:
                async with asyncio.timeout_at(min(now + self._quiet, latest)):
                    await self._asked.wait()
            except TimeoutError:
                return

    async def _serve(self, batch: _Batch) -> None:
        try:
            await self._run(batch)
        finally:
            _abandon(batch)

    async def _run(self, batch: _Batch) -> None:
        """Trial runs first, since the real one would answer them with "unchanged"."""
        trigger = "+".join(batch.triggers) or "socket"
        for allow_removal in (False, True):
            trials = [w for w in batch.wishes if w.dry_run and w.allow_removal is allow_removal]
            if trials:
                report = await self._reloader.reload(
                    trigger, dry_run=True, allow_removal=allow_removal
                )
                _answer(trials, report)
        if not batch.triggers:
            return
        wishes = [each for each in batch.wishes if not each.dry_run]
        allowed = any(each.allow_removal for each in wishes)
        _answer(wishes, await self._reloader.reload(trigger, allow_removal=allowed))


def _answer(wishes: list[_Wish], report: Report) -> None:
    for each in wishes:
        if not each.answer.done():
            each.answer.set_result(report)


def _abandon(batch: _Batch) -> None:
    """Nobody waits for ever for a worker that has ended; answered wishes do not mind."""
    for each in batch.wishes:
        each.answer.cancel()


class Poll:
    """Looks at the files now and then: their content decides, not their times.

    `auto` says what `config.auto_reload: auto` means here. A content that was refused is not
    tried again until it changes or somebody asks.
    """

    def __init__(
        self, reloader: Reloader, reloads: Reloads, *, auto: bool, rng: Random | None = None
    ) -> None:
        self._reloader = reloader
        self._reloads = reloads
        self._auto = auto
        self._rng = rng or Random()  # noqa: S311 - jitter
        self._told = ""

    async def run(self) -> None:
        """A part: until cancelled."""
        while True:
            interval = self._reloader.settings.config.poll_interval
            await asyncio.sleep(interval * self._rng.uniform(1 - JITTER, 1 + JITTER))
            await self.look()

    async def look(self) -> None:
        """Once."""
        content = await self._reloader.look()
        if content in (self._reloader.attempted, self._told):
            return
        self._told = content
        if self._automatic():
            self._reloads.poke("file")
        elif self._reloader.file_differs:
            log.info("config.file_differs", reason="auto_reload is off")

    def _automatic(self) -> bool:
        match self._reloader.settings.config.auto_reload:
            case AutoReload.ON:
                return True
            case AutoReload.OFF:
                return False
            case AutoReload.AUTO:
                return self._auto
