"""Look at the files now and then, and whenever somebody says that they changed.

Their content decides, not their times and not who told us: the kernel's word (`config.watch`) only
makes it faster. A content that was refused is not tried again until it changes or somebody asks.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

import structlog

from config.schema.agent import AutoReload

if TYPE_CHECKING:
    from collections.abc import Callable

    from config.transaction import Reloader
    from config.triggers import Reloads

JITTER = 0.1
"""So that the nodes of a cluster, which got a file in the same moment, do not act in step."""
TRIGGER = "file"
log = structlog.get_logger("wayout.config")


class Poll:
    """`auto` is what `config.auto_reload: auto` means here; `looked` is called after each look."""

    def __init__(
        self,
        reloader: Reloader,
        reloads: Reloads,
        *,
        auto: bool,
        rng: Random | None = None,
        looked: Callable[[], None] = lambda: None,
    ) -> None:
        self._reloader = reloader
        self._reloads = reloads
        self._auto = auto
        self._rng = rng or Random()  # noqa: S311 - jitter
        self._looked = looked
        self._told: str | None = None
        self._hinted = asyncio.Event()

    def hint(self) -> None:
        """Something happened near the files: look soon."""
        self._hinted.set()

    async def run(self) -> None:
        """A part: until cancelled."""
        while True:
            await self._wait()
            await self.look()
            self._looked()

    async def look(self) -> None:
        """Once."""
        content = await self._reloader.look()
        if content == self._reloader.attempted:
            # Edited and put back before anything came of it: the next edit is news again.
            self._told = None
            return
        if content == self._told:
            return
        self._told = content
        if self.automatic:
            self._reloads.poke(TRIGGER)
        elif self._reloader.file_differs:
            log.info("config.file_differs", reason="auto_reload is off")

    async def _wait(self) -> None:
        """One interval, or until a hint and the quiet after it."""
        section = self._reloader.settings.config
        interval = section.poll_interval * self._rng.uniform(1 - JITTER, 1 + JITTER)
        try:
            async with asyncio.timeout(interval):
                await self._hinted.wait()
        except TimeoutError:
            return
        # Whoever writes several files, or one in pieces, has a moment to finish.
        await asyncio.sleep(section.debounce)
        self._hinted.clear()

    @property
    def automatic(self) -> bool:
        """Whether a changed file is applied without being asked."""
        match self._reloader.settings.config.auto_reload:
            case AutoReload.ON:
                return True
            case AutoReload.OFF:
                return False
            case AutoReload.AUTO:
                return self._auto
