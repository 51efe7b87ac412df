"""Reloads inside the daemon: who asks, who is told, and what commands get to see of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent.desk import DeskError
from config.transaction import automatic
from config.triggers import Pace, TooManyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.desk import Document
    from agent.metrics import Metrics
    from agent.peers import Peers
    from agent.standing import Herald, Standing
    from agent.systemd import Notifier
    from config.elsewhere import Elsewhere
    from config.polling import Poll
    from config.report import Report
    from config.schema.settings import Settings
    from config.transaction import Reloader
    from config.triggers import Reloads
    from config.watch import Watch


class Told:
    """The reloader as the one worker drives it: every run is told to all who watch."""

    def __init__(
        self,
        reloader: Reloader,
        notifier: Notifier,
        metrics: Metrics,
        standing: Standing,
        herald: Herald,
    ) -> None:
        self._reloader = reloader
        self._notifier = notifier
        self._metrics = metrics
        self._standing = standing
        self._herald = herald

    async def reload(
        self, trigger: str, *, dry_run: bool = False, allow_removal: bool = False
    ) -> Report:
        """Take what the files say now."""
        by_hand = not automatic(trigger) and not dry_run
        if by_hand:
            self._notifier.reloading()
        try:
            report = await self._reloader.reload(
                trigger, dry_run=dry_run, allow_removal=allow_removal
            )
            if not dry_run:
                self._count(report)
                await self._herald.turned()
            return report
        finally:
            # A missing READY would leave the unit "reloading" for ever.
            if by_hand:
                self._notifier.reloaded(self._verdict())

    def _count(self, report: Report) -> None:
        self._metrics.config_reload(report.trigger, report.result.value)
        for phase, seconds in report.seconds.items():
            self._metrics.config_applied(phase, seconds)
        self._standing.tell()

    def _verdict(self) -> str:
        last = self._reloader.last
        line = f"generation {self._reloader.generation}, {last.result.value}"
        if last.problems:
            return f"{line}: {last.problems[0]}"
        waiting = [each.path for each in self._reloader.pending_restart]
        return f"{line}, a restart is pending for {', '.join(waiting)}" if waiting else line


class Reloading:
    """What the rest of the daemon needs of reloads."""

    def __init__(
        self,
        reloader: Reloader,
        reloads: Reloads,
        eyes: tuple[Poll, Watch, Elsewhere | None],
        standing: Standing,
        words: tuple[Herald, Peers],
        derived: Callable[[Settings], list[Document]],
    ) -> None:
        self._reloader = reloader
        self._derived = derived
        self._reloads = reloads
        self._poll, self._watch, self._elsewhere = eyes
        self._standing = standing
        self._herald, self._peers = words

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

    @property
    def trouble(self) -> list[str]:
        """Why this daemon should not be called ready on account of its configuration."""
        return ["config_inconsistent"] if self._reloader.attempts.inconsistent else []

    def status(self) -> Document:
        """`config status`."""
        said: Document = {"watch": self._watch.mode, "auto_reload": self._poll.automatic}
        if self._elsewhere is not None:
            said["annotation"] = self._elsewhere.status()
        return {**self._reloader.status(), **said}

    def show(self, *, which: str, origin: bool, changed_only: bool) -> Document:
        """`config show`, with what `auto` and formulas come to now."""
        shown = self._reloader.show(which=which, origin=origin, changed_only=changed_only)
        return {**shown, "derived": [*self._derived(self._reloader.settings)]}

    def drift(self) -> Document:
        """`config drift`."""
        found = self._standing.drift()
        if found is None:
            raise DeskError("the daemon is still starting: ask again in a moment")
        return found

    async def peer(self, name: str) -> Document:
        """`config show --peer`."""
        return await self._peers.config(name)

    async def run(self) -> None:
        """A part: the worker, the poll, and the kernel's word."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._herald.turned(), name="config told")
            tasks.create_task(self._reloads.run(), name="reloads")
            tasks.create_task(self._poll.run(), name="poll")
            tasks.create_task(self._watch.run(), name="watch")
            if self._elsewhere is not None:
                tasks.create_task(self._elsewhere.run(), name="annotation")


def pace_of(reloader: Reloader) -> Pace:
    """How the worker goes about it under the settings of this moment."""
    section = reloader.settings.config
    return Pace(section.debounce, section.debounce_max, reloader.rest)
