"""Names of hosts looked up for checks, without a cache: a check wants to know what holds now."""

from __future__ import annotations

import socket

from agent.health.aside import Aside


class Names:
    """The names of one check."""

    def __init__(self) -> None:
        self._aside: Aside[list[str]] = Aside()

    async def find(self, host: str, port: int, patience: float) -> list[str]:
        """Its addresses in the order of the resolver; OSError, TimeoutError or StuckError."""
        return await self._aside.call(lambda: _addresses(host, port), patience)


def _addresses(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))
