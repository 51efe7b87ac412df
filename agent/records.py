"""What the controller wants kept on disk, written by a task of its own so that no turn waits."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.statefile import State, StateFile
    from egress.model import Binding


class Records:
    """The newest state wins; what is not on disk yet is known in memory anyway."""

    def __init__(self, file: StateFile, state: State) -> None:
        self._file = file
        self._state = state
        self._changed = asyncio.Event()

    @property
    def state(self) -> State:
        """As it is, or is about to be, on disk."""
        return self._state

    def bound(self, bound: frozenset[Binding]) -> None:
        """These are ours, or about to be."""
        self._keep(replace(self._state, bound=bound))

    def members(self, names: frozenset[str]) -> None:
        """These members there ought to be."""
        self._keep(replace(self._state, members=names))

    def drain(self, *, draining: bool, until: float | None) -> None:
        """A wished drain outlives the process; `until` is Unix time."""
        self._keep(replace(self._state, draining=draining, drain_until=until))

    async def run(self) -> None:
        """Part of the daemon: write whenever something changed."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._file.save(self._state)

    async def flush(self) -> None:
        """Write what is not written yet."""
        await self._file.save(self._state)

    def _keep(self, state: State) -> None:
        if state != self._state:
            self._state = state
            self._changed.set()
