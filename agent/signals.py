"""Signals as wishes: TERM and INT stop, HUP reloads, USR2 makes room for a successor.

The entry module blocks SIGHUP before anything else, for its default is death; `install` lets the
held one through once somebody listens.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

FORCED = 1
"""Exit code of a daemon that was told twice."""

log = structlog.get_logger("wayout.signals")


class Signals:
    """What to do on each signal; every callback runs on the loop and returns at once.

    `stop` is called with False (hand over) or True (keep the addresses for a successor).
    """

    def __init__(
        self,
        *,
        stop: Callable[[bool], None],
        reload: Callable[[], None],
        leave: Callable[[int], None] = os._exit,
    ) -> None:
        self._stop = stop
        self._reload = reload
        self._leave = leave
        self._stopping = False

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        """Listen from now on; a SIGHUP that came too early is delivered now."""
        loop.add_signal_handler(signal.SIGTERM, self._end, signal.SIGTERM)
        loop.add_signal_handler(signal.SIGINT, self._end, signal.SIGINT)
        loop.add_signal_handler(signal.SIGUSR2, self._restart)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})

    def remove(self, loop: asyncio.AbstractEventLoop) -> None:
        """Back to what Python does by itself."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2, signal.SIGHUP):
            loop.remove_signal_handler(number)

    def _end(self, number: signal.Signals) -> None:
        if self._stopping:
            # Whoever asks twice does not want to wait; the leases end by themselves.
            log.warning("daemon.stop_forced", signal=number.name)
            self._leave(FORCED)
            return
        self._stopping = True
        log.info("daemon.stop_wished", signal=number.name)
        self._stop(False)  # noqa: FBT003 - a callback has no keywords

    def _restart(self) -> None:
        if not self._stopping:
            self._stopping = True
            log.info("daemon.restart_wished", signal="SIGUSR2")
            self._stop(True)  # noqa: FBT003 - a callback has no keywords

    def _hang_up(self) -> None:
        if not self._stopping:
            log.info("daemon.reload_wished", signal="SIGHUP")
            self._reload()
