"""Follow the layer of this node that lies elsewhere, and ask for a reload when it changes.

A source that closes, refuses or is away is asked ever more rarely, never in step with others, and
what it said last stays in force meanwhile.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

import structlog

from config.problems import ConfigError
from config.remote import Reading, RemoteLayer, SourceError, Standing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from config.documents import Text
    from config.remote import LayerSource
    from config.tree import Plain

TRIGGER = "annotation"
SHORT = 5.0
"""A watch that ends sooner ended too soon."""
BACKOFF = (1.0, 30.0)
JITTER = 2.0
"""Nodes that share an object hear of it in the same moment, and take it within so many seconds."""

log = structlog.get_logger("wayout.config")


class Elsewhere:
    """The follower of one source for one node; `poke` asks for a reload.

    `text` is what a `Reloader` listens to. `taken` is told of each new layer, to keep it.
    """

    def __init__(
        self,
        source: LayerSource,
        node: str,
        poke: Callable[[str], None],
        *,
        layer: RemoteLayer | None = None,
        rng: Random | None = None,
        taken: Callable[[Reading], Awaitable[None]] | None = None,
    ) -> None:
        self._source = source
        self._node = node
        self._poke = poke
        self._taken = taken
        self._layer = layer or RemoteLayer()
        self._rng = rng or Random()  # noqa: S311 - jitter
        self._wrong: ConfigError | None = None
        self._failures = 0
        self._fresh = False

    def text(self) -> Text | None:
        """The layer in force; raises ConfigError if the annotation makes no sense."""
        if self._wrong is not None:
            raise self._wrong
        return self._layer.last.text

    def status(self) -> dict[str, Plain]:
        """How the layer stands."""
        last = self._layer.last
        now = asyncio.get_running_loop().time()
        return {
            "standing": last.standing.value,
            "source": None if last.text is None else last.text.name,
            "reason": last.reason,
            "stale_seconds": round(self._layer.stale_seconds(now), 1),
        }

    async def run(self) -> None:
        """A part: until cancelled."""
        if self._layer.last.text is not None:
            self._poke(TRIGGER)
        while True:
            began = asyncio.get_running_loop().time()
            wait = await self._followed()
            if asyncio.get_running_loop().time() - began >= SHORT:
                self._failures = 0
            await asyncio.sleep(wait)

    async def _followed(self) -> float:
        """One request to the source; the seconds until the next may be made."""
        began = asyncio.get_running_loop().time()
        try:
            if not self._fresh:
                await self._source.read()
                self._fresh = True
                await self._look()
                return 0.0
            news = await self._source.changed()
        except SourceError as error:
            return self._failed(error)
        if news:
            self._failures = 0
            await self._look()
            return 0.0
        return 0.0 if asyncio.get_running_loop().time() - began >= SHORT else self._backoff()

    def _failed(self, error: SourceError) -> float:
        if error.expired:
            # The first time it is read anew at once; a source that goes on like that has to wait.
            self._fresh = False
            return self._backoff() if self._failures else self._counted()
        if self._layer.last.reason != error.reason:
            log.warning("config.layer_unavailable", node=self._node, reason=error.reason)
        self._layer.lost(error.reason)
        self._fresh = False
        return max(error.wait, self._backoff())

    def _counted(self) -> float:
        self._failures += 1
        return 0.0

    def _backoff(self) -> float:
        least, most = BACKOFF
        longest = min(most, least * 2.0 ** min(self._failures, 10))
        self._failures += 1
        return longest * self._rng.uniform(0.5, 1.0)

    async def _look(self) -> None:
        """Take what the source knows; a layer that changed is worth a reload."""
        before, wrong = self._layer.last.text, self._wrong
        try:
            now = asyncio.get_running_loop().time()
            reading = self._layer.look(self._source, self._node, now)
            self._wrong = None
        except ConfigError as error:
            self._wrong = error
        else:
            await self._note(reading, before)
        if self._layer.last.text != before or str(self._wrong) != str(wrong):
            await asyncio.sleep(self._rng.uniform(0.0, JITTER))
            self._poke(TRIGGER)

    async def _note(self, reading: Reading, before: Text | None) -> None:
        if reading.standing is not Standing.CURRENT and reading.reason:
            log.warning("config.layer_unavailable", node=self._node, reason=reading.reason)
        if reading.warning:
            log.warning("config.layer_full", node=self._node, reason=reading.warning)
        if reading.text != before and self._taken is not None:
            await self._taken(reading)
