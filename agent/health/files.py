"""Looks at a file."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from agent.health.aside import Aside, StuckError, told
from agent.health.verdict import Result, failed, passed

if TYPE_CHECKING:
    from config.schema.health import CheckEntry

READ_MAX = 65536
"""Bytes in which text is looked for."""


class FileLook:
    """One file check."""

    def __init__(self, check: CheckEntry) -> None:
        self._check = check
        self._aside: Aside[Result] = Aside()

    async def run(self, patience: float) -> Result:
        """Passes if the file is there and is what it should be."""
        try:
            return await self._aside.call(lambda: examine(self._check, time.time()), patience)
        except StuckError:
            return failed("an earlier look still hangs")
        except TimeoutError:
            return failed(f"no answer in {patience:g} s")


def examine(check: CheckEntry, wall: float) -> Result:
    """What the file is now; `wall` is Unix time."""
    assert check.path is not None
    try:
        changed = os.stat(check.path).st_mtime  # noqa: PTH116 - no Path is needed for one call
        if check.absent:
            return failed("it exists")
        if check.max_age is not None and wall - changed > check.max_age:
            return failed(f"changed {wall - changed:.0f} s ago")
        if check.contains is not None and check.contains.encode() not in _beginning(check.path):
            return failed("does not contain the text")
    except FileNotFoundError:
        return passed() if check.absent else failed("does not exist")
    except OSError as error:
        return failed(told(error))
    return passed()


def _beginning(path: str) -> bytes:
    # Not blocking, or a FIFO in the place of a file would be waited for.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        return file.read(READ_MAX) or b""
