"""Signals that mean "enough": raised while a lab works, held back while it must not be torn.

What a lab starts is on record before anybody hears of a signal, and what it removes it removes
whole, however often somebody presses Ctrl-C.
"""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

ENDINGS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """Somebody wants us to end; clean up and go."""


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Each of the signals raises Interrupted within the block."""

    def tell(number: int, _: FrameType | None) -> None:
        raise Interrupted(number)

    with _handled(tell):
        yield


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """None of the signals does anything within the block."""
    with _handled(signal.SIG_IGN):
        yield


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Signals wait until the block is left."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _handled(handler: signal._HANDLER) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in ENDINGS}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
