"""Admin socket and HTTP listeners, and how a reload moves them: the new one opens first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

import structlog

from agent.admin import AdminServer

if TYPE_CHECKING:
    from agent.desk import Desk
    from agent.metrics import Metrics
    from config.schema.settings import Settings
    from config.subscribers import Update

REBINDS = frozenset({"api.socket", "api.http_listen", "metrics.listen"})

log = structlog.get_logger("wayout.daemon")


class Server(Protocol):
    """Something that listens until it is closed."""

    async def close(self) -> None:
        """Stop listening and end what goes on; idempotent."""
        ...

    async def retire(self) -> None:
        """Stop listening; what goes on may end by itself."""
        ...

    @property
    def busy(self) -> bool:
        """Whether anything still goes on."""
        ...


@dataclass(slots=True)
class _Swap:
    """Servers that were opened for new settings, by the key they serve, and the old ones."""

    opened: dict[str, Server | None] = field(default_factory=dict)
    replaced: dict[str, Server | None] = field(default_factory=dict)


class Listeners:
    """All doors at which the daemon can be asked; a subscriber of `api` and `metrics`."""

    name = "listeners"
    sections = frozenset({"api", "metrics"})
    rebinds = REBINDS

    def __init__(self, desk: Desk, metrics: Metrics) -> None:
        self._desk = desk
        self._metrics = metrics
        self._open: dict[str, Server | None] = {}
        self._abandoned: list[Server] = []
        self._retired: list[Server] = []

    async def start(self, settings: Settings) -> None:
        """Open everything that the settings want; OSError or AdminError when one cannot."""
        for key in sorted(REBINDS):
            self._open[key] = await self._opened(key, settings)

    async def close(self) -> None:
        """Close everything."""
        for server in (*self._open.values(), *self._abandoned, *self._retired):
            if server is not None:
                await server.close()
        self._open.clear()
        self._abandoned.clear()
        self._retired.clear()

    async def prepare(self, update: Update) -> object:
        """Open the new ones beside the old."""
        swap = _Swap()
        try:
            for key in sorted(REBINDS):
                if _value(key, update.old) != _value(key, update.new):
                    swap.opened[key] = await self._opened(key, update.new)
        except OSError:
            for server in swap.opened.values():
                if server is not None:
                    await server.close()
            raise
        return swap

    def commit(self, token: object) -> None:
        """The new ones are the ones from now on."""
        swap = cast("_Swap", token)
        for key, server in swap.opened.items():
            swap.replaced[key] = self._open.get(key)
            self._open[key] = server

    def rollback(self, token: object) -> None:
        """The old ones stay; those just opened are closed with the next chance to wait."""
        swap = cast("_Swap", token)
        self._open.update(swap.replaced)
        self._abandoned += [each for each in swap.opened.values() if each is not None]
        swap.replaced, swap.opened = {}, {}

    async def finalize(self, token: object) -> None:
        """Close what was replaced."""
        swap = cast("_Swap", token)
        for server in self._abandoned:
            await server.close()
        self._abandoned.clear()
        replaced = [each for each in swap.replaced.values() if each is not None]
        for server in replaced:
            await server.retire()
        self._retired = [each for each in (*self._retired, *replaced) if each.busy]

    async def _opened(self, key: str, settings: Settings) -> Server | None:
        if key == "api.socket":
            admin = AdminServer(self._desk)
            await admin.start(settings.api.socket)
            return admin
        endpoint = settings.api.http_listen if key == "api.http_listen" else settings.metrics.listen
        if endpoint is None:
            return None
        # aiohttp costs 17 MiB, so only a daemon that listens loads it.
        from agent.http import HttpServer

        server = HttpServer(self._desk, self._metrics, metrics_only=key == "metrics.listen")
        await server.start(str(endpoint.ip), endpoint.port)
        return server


def _value(key: str, settings: Settings) -> object:
    section, name = key.split(".")
    return getattr(getattr(settings, section), name)
