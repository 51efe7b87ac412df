"""Runs a check program: an argument list without a shell, ended with all its children.

The program gets no input, a small environment, and a session of its own. Its output is read for
as long as it runs, so that it never blocks on a full pipe, and all but the beginning is dropped.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from agent.health.aside import told
from agent.health.verdict import failed, passed

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Iterator, Sequence

    from agent.health.verdict import Result

OUTPUT_MAX = 4096
"""Bytes of output that are kept."""
READ_MAX = 65536
TOLD_MAX = 120
"""Letters of the first line of output that people are shown."""
BURIAL = 1.0
"""Seconds for a killed program to end; one that hangs in the kernel may take for ever."""
ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ")


class Program:
    """One check program; never runs twice at a time."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: Process | None = None

    async def run(self, name: str, patience: float) -> Result:
        """Exit code 0 passes; everything else, and taking too long, fails."""
        if self._process is not None and self._process.returncode is None:
            return failed("an earlier run cannot be killed")
        environment = {key: os.environ[key] for key in ENVIRONMENT if key in os.environ}
        output = _Output()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output.inlet,
                stderr=output.inlet,
                cwd="/",
                env={**environment, "WAYOUT_CHECK": name},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            output.close()
            return failed(f"cannot be started: {told(error)}")
        output.opened()
        try:
            return await _ended(self._process, output, patience)
        finally:
            await _buried(self._process)
            output.close()


async def _ended(process: Process, output: _Output, patience: float) -> Result:
    try:
        async with asyncio.timeout(patience):
            code = await process.wait()
    except TimeoutError:
        return failed(f"killed after {patience:g} s")
    said = output.line()
    if code == 0:
        return passed(said)
    ended = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
    return failed(f"{ended}: {said}" if said else ended)


async def _buried(process: Process) -> None:
    """Whatever is left of its group goes, and we wait a moment for its end.

    Group numbers are handed out in turn, so one that just became free is not another's yet.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(BURIAL):
            await process.wait()


class _Output:
    """A pipe whose end is not waited for: a child in the background may hold it open for ever."""

    def __init__(self) -> None:
        self._outlet, self.inlet = os.pipe()
        os.set_blocking(self._outlet, False)
        self._kept = b""
        self._loop: asyncio.AbstractEventLoop | None = None

    def opened(self) -> None:
        """The program has its end: close ours and read."""
        os.close(self.inlet)
        self.inlet = -1
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._outlet, self._read)

    def line(self) -> str:
        """The first line that says something, fit to be shown."""
        self._read()
        lines = self._kept.decode(errors="replace").splitlines()
        first = next((each.strip() for each in lines if each.strip()), "")
        return "".join(each for each in first if each.isprintable())[:TOLD_MAX]

    def close(self) -> None:
        """Forget it."""
        self._unwatch()
        for end in self._ends():
            os.close(end)
        self._outlet = self.inlet = -1

    def _ends(self) -> Iterator[int]:
        yield from (end for end in (self._outlet, self.inlet) if end >= 0)

    def _unwatch(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._outlet)
            self._loop = None

    def _read(self) -> None:
        try:
            data = os.read(self._outlet, READ_MAX)
        except BlockingIOError:
            return
        if not data:
            self._unwatch()
        self._kept = (self._kept + data)[:OUTPUT_MAX]
