"""What stands between the socket and asyncio-dgram: hands each datagram on in the turn it comes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Ear(asyncio.DatagramProtocol):
    """Takes datagrams and failures for itself; the pace of sending stays with the library.

    `take` is called with bytes and where they came from, `failed` with what the kernel reports.
    """

    def __init__(
        self,
        library: asyncio.BaseProtocol,
        take: Callable[[bytes, object], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._library = library
        self._take = take
        self._failed = failed

    def datagram_received(self, data: bytes, addr: object) -> None:
        """One came."""
        self._take(data, addr)

    def error_received(self, exc: Exception) -> None:
        """A call on the socket failed, most likely for an earlier datagram."""
        self._failed(exc)

    def pause_writing(self) -> None:
        """The kernel takes no more for now."""
        self._library.pause_writing()

    def resume_writing(self) -> None:
        """It does again."""
        self._library.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        self._library.connection_lost(exc)
