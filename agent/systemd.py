"""Word to the service manager: READY, RELOADING, STOPPING, WATCHDOG and STATUS.

Notifying never blocks and never fails: a service manager that does not listen changes nothing.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

SHARE = 0.5
"""Ping at half of the time that systemd allows, as sd_watchdog_enabled(3) advises."""
SHORTEST = 0.05
STATUS_LIMIT = 256

log = structlog.get_logger("wayout.systemd")


def _nanoseconds() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Notifier:
    """The notification socket, or nothing when there is no service manager."""

    def __init__(
        self,
        address: str | None,
        watchdog: float | None = None,
        clock: Callable[[], int] = _nanoseconds,
    ) -> None:
        self.watchdog = watchdog
        self._clock = clock
        self._started = False
        self._target: str | None = None
        self._socket: socket.socket | None = None
        # "vsock:" addresses are for machines, not for services in one.
        if address and address[0] in "/@":
            self._target = "\0" + address[1:] if address[0] == "@" else address
            kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
            self._socket = socket.socket(socket.AF_UNIX, kind)

    @classmethod
    def of(cls, environ: MutableMapping[str, str]) -> Notifier:
        """As the environment says; the variables are taken out so that no child inherits them."""
        address = environ.pop("NOTIFY_SOCKET", None)
        allowed = environ.pop("WATCHDOG_USEC", "")
        owner = environ.pop("WATCHDOG_PID", "")
        if not allowed.isdigit() or (owner and owner != str(os.getpid())):
            return cls(address)
        return cls(address, max(int(allowed) / 1_000_000 * SHARE, SHORTEST))

    def ready(self, status: str) -> None:
        """Start-up is over."""
        self._started = True
        self._send("READY=1", _status(status))

    def reloaded(self, status: str) -> None:
        """A reload is over; before the start is, that says nothing of readiness."""
        if self._started:
            self._send("READY=1", _status(status))

    def reloading(self, status: str = "reloading") -> None:
        """A reload begins; `reloaded` must follow in any case, or the unit says so for ever.

        Both fields go in one datagram: a stamp that comes later makes `systemctl reload` hang.
        """
        if self._started:
            stamp = f"MONOTONIC_USEC={self._clock() // 1000}"
            self._send("RELOADING=1", stamp, _status(status))

    def stopping(self, status: str = "stopping") -> None:
        """The end has begun; systemd waits for it without a watchdog."""
        self._send("STOPPING=1", _status(status))

    def status(self, text: str) -> None:
        """One line for `systemctl status`."""
        self._send(_status(text))

    async def run(self, well: Callable[[], bool] = lambda: True) -> None:
        """Part of the daemon: ping the watchdog for as long as `well` says so."""
        while self.watchdog is not None:
            if well():
                self._send("WATCHDOG=1")
            else:
                log.warning("systemd.watchdog_withheld")
            await asyncio.sleep(self.watchdog)
        await asyncio.Event().wait()

    def close(self) -> None:
        """Give the socket back."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, *lines: str) -> None:
        if self._socket is None or self._target is None:
            return
        try:
            self._socket.sendto("\n".join(lines).encode(), self._target)
        except OSError as error:
            log.debug("systemd.unheard", errno=error.errno)


def _status(text: str) -> str:
    return "STATUS=" + " ".join(text.split())[:STATUS_LIMIT]
