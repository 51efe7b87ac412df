"""The one worker behind all that asks for a reload: a signal, the socket, a changed file.

A request that comes while a run is under way waits for the next one, since the run may have
read the files before the operator wrote them.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from config.transaction import AUTOMATIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from config.report import Report

WISHES_MAX = 64


@dataclass(frozen=True, slots=True)
class Pace:
    """A run begins when nobody has asked for `quiet`, and at most `longest` after the first did.

    Those that nobody asked for are `rest` apart. Seconds.
    """

    quiet: float = 0.25
    longest: float = 2.0
    rest: float = 5.0


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

    @property
    def automatic(self) -> bool:
        """Whether nobody waits for it."""
        return not self.wishes and AUTOMATIC.issuperset(self.triggers)


class Reloads:
    """The one worker."""

    def __init__(self, reloader: Reloading, *, pace: Callable[[], Pace] = Pace) -> None:
        self._reloader = reloader
        self._pace = pace
        self._batch = _Batch()
        self._asked = asyncio.Event()
        self._ended = -math.inf

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
                await self._rested()
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
        pace = self._pace()
        latest = loop.time() + pace.longest
        while (now := loop.time()) < latest:
            if not await self._asked_by(min(now + pace.quiet, latest)):
                return

    async def _rested(self) -> None:
        """Runs that nobody waits for keep a distance; whoever asks meanwhile ends the wait."""
        until = self._ended + self._pace().rest
        while self._batch.automatic and asyncio.get_running_loop().time() < until:
            await self._asked_by(until)

    async def _asked_by(self, moment: float) -> bool:
        """Whether somebody asks before that moment."""
        self._asked.clear()
        try:
            async with asyncio.timeout_at(moment):
                await self._asked.wait()
        except TimeoutError:
            return False
        return True

    async def _serve(self, batch: _Batch) -> None:
        try:
            await self._run(batch)
        finally:
            self._ended = asyncio.get_running_loop().time()
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
