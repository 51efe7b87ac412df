"""Calls that may hang for ever (a dead mount, a dead resolver), each in a thread of its own.

Not in the pool of the loop: a few of them would fill it, and everything else would wait for them.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def told(error: OSError | ValueError) -> str:
    """An error in few words, without its number and the address that the check names anyway."""
    number = error.errno if isinstance(error, OSError) else None
    # TLS has numbers of its own, and so has a failed look-up of a name, below zero.
    if number is not None and number > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(number)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


class StuckError(Exception):
    """An earlier call still hangs, so there is no other."""


@dataclass(frozen=True, slots=True)
class _Returned(Generic[T]):
    value: T


class Aside(Generic[T]):
    """One call at a time."""

    def __init__(self) -> None:
        self._under_way: asyncio.Future[_Returned[T] | OSError | ValueError] | None = None

    async def call(self, work: Callable[[], T], patience: float) -> T:
        """What `work` returns, or its OSError or ValueError; else TimeoutError or StuckError."""
        if self._under_way is not None and not self._under_way.done():
            raise StuckError
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[_Returned[T] | OSError | ValueError] = loop.create_future()
        self._under_way = outcome

        def run() -> None:
            try:
                found: _Returned[T] | OSError | ValueError = _Returned(work())
            except (OSError, ValueError) as error:
                found = error
            # The loop may be closed by the time that a hung call ends.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(outcome.set_result, found)

        # A daemon thread: the end of the process must not wait for it.
        threading.Thread(target=run, name="health-check", daemon=True).start()
        done, _ = await asyncio.wait([outcome], timeout=patience)
        if not done:
            raise TimeoutError
        found = outcome.result()
        if isinstance(found, _Returned):
            return found.value
        raise found
