"""Reloads inside the daemon: who asks, who is told, and what commands get to see of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from agent.desk import DeskError
from config.triggers import TooManyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.desk import Document
    from agent.metrics import Metrics
    from agent.systemd import Notifier
    from config.report import Report
    from config.schema.settings import Settings
    from config.transaction import Reloader
    from config.triggers import Poll, Reloads

log = structlog.get_logger("wayout.config")


class Told:
    """The reloader as the one worker drives it: every run is told to systemd and to metrics."""

    def __init__(
        self,
        reloader: Reloader,
        notifier: Notifier,
        metrics: Metrics,
    ) -> None:
        self._reloader = reloader
        self._notifier = notifier
        self._metrics = metrics

    async def reload(
        self, trigger: str, *, dry_run: bool = False, allow_removal: bool = False
    ) -> Report:
        """Take what the files say now."""
        by_hand = trigger != "file" and not dry_run
        if by_hand:
            self._notifier.reloading()
        try:
            report = await self._reloader.reload(
                trigger, dry_run=dry_run, allow_removal=allow_removal
            )
            self._metrics.config_reload(trigger, report.result.value)
            return report
        finally:
            # A missing READY would leave the unit "reloading" for ever.
            if by_hand:
                self._notifier.ready(self._verdict())

    def _verdict(self) -> str:
        last = self._reloader.last
        line = f"generation {self._reloader.generation}, {last.result.value}"
        if last.problems:
            return f"{line}: {last.problems[0]}"
        waiting = len(self._reloader.pending_restart)
        return f"{line}, {waiting} changes wait for a restart" if waiting else line


class Reloading:
    """What the rest of the daemon needs of reloads."""

    def __init__(
        self,
        reloader: Reloader,
        reloads: Reloads,
        poll: Poll,
        derived: Callable[[Settings], list[Document]],
    ) -> None:
        self._reloader = reloader
        self._derived = derived
        self._reloads = reloads
        self._poll = poll

    def poke(self, trigger: str) -> None:
        """Ask and go on."""
        self._reloads.poke(trigger)

    async def reload(
        self, *, trigger: str, wait: bool, dry_run: bool, allow_removal: bool, patience: float
    ) -> Document:
        """Ask and wait for the verdict, unless the caller does not care for it."""
        if not wait and not dry_run and not allow_removal:
            self._reloads.poke(trigger)
            return {"result": "requested", "code": 0}
        try:
            async with asyncio.timeout(patience):
                report = await self._reloads.request(
                    trigger, dry_run=dry_run, allow_removal=allow_removal
                )
        except TimeoutError:
            raise DeskError(
                f"no verdict within {patience:.0f} s: 'wayout config status' tells the result later"
            ) from None
        except TooManyError:
            raise DeskError("too many reloads are waited for: try again in a moment") from None
        return report.to_document()

    def summary(self) -> Document:
        """`status.config`."""
        reloader = self._reloader
        return {
            "generation": reloader.generation,
            "digest": reloader.digests.cluster,
            "stale": reloader.stale,
            "pending_restart": [each.to_plain() for each in reloader.pending_restart],
            "last_reload": reloader.last.summary(),
        }

    def status(self) -> Document:
        """`config status`."""
        return self._reloader.status()

    def show(self, *, which: str, origin: bool, changed_only: bool) -> Document:
        """`config show`, with what `auto` and formulas come to now."""
        shown = self._reloader.show(which=which, origin=origin, changed_only=changed_only)
        return {**shown, "derived": [*self._derived(self._reloader.settings)]}

    async def run(self) -> None:
        """A part: the worker and the poll."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reloads.run(), name="reloads")
            tasks.create_task(self._poll.run(), name="poll")
