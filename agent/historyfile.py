"""The history of moves on disk: lines are appended, and the oldest go when there are too many.

A line that a power cut tore is dropped; a file that is not ours, or has a broken line in the
middle, is set aside, and what could be read of it goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
from collections import deque
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from agent import history
from agent.disk import set_aside, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent.desk import Document

HEAD = b'{"wayout":"history","version":1}\n'
ENTRIES_MAX = 10_000
BYTES_MAX = 4 * 1024 * 1024
KEPT_SHARE = 0.75
"""What is left when the file has become too large, so that this does not happen every time."""
PATIENCE = 5.0
RETRY = 30.0
"""Seconds until a disk that refused is tried again."""

log = structlog.get_logger("wayout.state")


class History:
    """The newest moves, in memory as lines of JSON, and on disk a moment later.

    `count` is how many there have ever been in this process, those that were loaded included.
    """

    def __init__(
        self,
        folder: str | Path,
        name: str = "history.jsonl",
        *,
        entries: int = ENTRIES_MAX,
        size: int = BYTES_MAX,
    ) -> None:
        self._path = Path(folder) / name
        self._size_max = size
        self._lines: deque[bytes] = deque(maxlen=entries)
        self._size = 0
        self._whole = False
        self._disk = threading.Lock()
        self._failing = False
        self._news = asyncio.Condition()
        self._written = 0
        self._failover: Document | None = None
        self.count = 0

    async def load(self) -> None:
        """What predecessors left."""
        try:
            async with asyncio.timeout(PATIENCE):
                found = await asyncio.to_thread(self._read)
        except OSError as error:  # a TimeoutError is one too
            log.warning(
                "state.unreadable", path=str(self._path), reason=error.strerror or "no answer"
            )
            return
        self._lines.extend(found)
        self.count = self._written = len(self._lines)
        told = (history.read(each) for each in reversed(found))
        self._failover = next(filter(history.failover, told), None)

    async def add(self, entries: Iterable[Document]) -> None:
        """These moves are over; never waits for the disk."""
        lines = []
        for each in entries:
            lines.append(history.line(each))
            if history.failover(each):
                self._failover = each
        if not lines:
            return
        self._lines.extend(lines)
        self.count += len(lines)
        async with self._news:
            self._news.notify_all()

    def newest(self, limit: int) -> list[Document]:
        """The last moves, the oldest of them first."""
        start = max(len(self._lines) - limit, 0)
        return [history.read(each) for each in islice(self._lines, start, None)]

    def last_failover(self) -> Document | None:
        """The last one in which an address changed hands."""
        return self._failover

    async def after(self, count: int, patience: float, limit: int) -> list[Document]:
        """Moves since `count` was what it says, as soon as there are any; none after a while."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience), self._news:
                await self._news.wait_for(lambda: self.count > count)
        return self.newest(min(max(self.count - count, 0), limit))

    async def run(self) -> None:
        """A part of the daemon: write whenever something has been added."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RETRY if self._failing else None), self._news:
                    await self._news.wait_for(
                        lambda: self.count > self._written and not self._failing
                    )
            await self.flush()

    async def flush(self) -> None:
        """Write what is not written yet; a disk that refuses is told once."""
        count, every = self.count, list(self._lines)
        news = every[max(len(every) - (count - self._written), 0) :]
        if not news:
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.to_thread(self._write, news, every)
        except OSError as error:
            self._fail(error)
            return
        self._written = count
        if self._failing:
            log.info("state.written_again", path=str(self._path))
        self._failing = False

    def _fail(self, error: OSError) -> None:
        # A full disk is told once, not with every move.
        if not self._failing:
            reason = error.strerror or "no answer"
            log.error("state.unwritable", path=str(self._path), reason=reason)
        self._failing = True

    def _write(self, news: Sequence[bytes], every: Sequence[bytes]) -> None:
        # A thread that was given up may still be at it.
        if not self._disk.acquire(blocking=False):
            raise OSError(errno.EBUSY, "the last write has not come back")
        try:
            text = b"".join(each + b"\n" for each in news)
            if self._whole and self._size + len(text) <= self._size_max:
                self._append(text)
            else:
                self._rewrite(every)
        finally:
            self._disk.release()

    def _append(self, text: bytes) -> None:
        self._whole = False
        with self._path.open("ab") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self._size += len(text)
        self._whole = True

    def _rewrite(self, every: Sequence[bytes]) -> None:
        room = self._size_max * KEPT_SHARE - len(HEAD)
        kept: list[bytes] = []
        for each in reversed(every):
            room -= len(each) + 1
            if room < 0:
                break
            kept.append(each + b"\n")
        text = b"".join((HEAD, *reversed(kept)))
        write_whole(self._path, text)
        self._size, self._whole = len(text), True

    def _read(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                raw = file.read(2 * self._size_max + 1)
        except FileNotFoundError:
            return []
        if not raw.startswith(HEAD) or len(raw) > 2 * self._size_max:
            set_aside(self._path, "no history of version 1")
            return []
        *lines, torn = raw[len(HEAD) :].split(b"\n")
        good = [each for each in lines if _readable(each)]
        if len(good) < len(lines):
            set_aside(self._path, f"{len(lines) - len(good)} lines make no sense")
            return good
        # What was torn is cut off with the next write, which puts the whole file in its place.
        self._size, self._whole = len(raw), not torn
        return good


def _readable(raw: bytes) -> bool:
    try:
        history.read(raw)
    except ValueError:
        return False
    return True
