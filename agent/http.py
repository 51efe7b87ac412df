"""HTTP for reading: the status page, the API, health and metrics. Nothing here changes anything.

aiohttp is imported when a listener starts, so that a daemon without one does not carry it. The
low-level server is enough: nine paths, and no body is ever read.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from base64 import b64encode
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from agent import metrics as exposition
from agent.desk import DeskError, encode
from agent.verbs import HISTORY_LIMIT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from socket import socket

    from aiohttp import web

    from agent.desk import JSON, Desk, Document
    from agent.metrics import Metrics

    Handler = Callable[[], Awaitable["Reply"]]

PAGE = Path(__file__).parent / "page" / "index.html"
CONNECTIONS_LIMIT = 64
LINE_LIMIT = 2048
FIELDS_LIMIT = 64
KEEPALIVE = 15.0
FAREWELL_PATIENCE = 1.0
GREETING = 0.2
"""Seconds in which a client that connected in the last moment can still say what it wants."""
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Server": "wayout",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
NOTHING = "default-src 'none'; frame-ancestors 'none'"
JSON_TYPE = "application/json; charset=utf-8"
TEXT_TYPE = "text/plain; charset=utf-8"
READING = frozenset({"GET", "HEAD"})

log = structlog.get_logger("wayout.http")

Reply = tuple[int, str, bytes, str]
"""Status, content type, body, content security policy."""


class HttpServer:
    """One listener; another address is another server, started before this one is closed.

    With `metrics_only` it serves /metrics and /healthz, for an address that others may reach.
    """

    def __init__(self, desk: Desk, metrics: Metrics, *, metrics_only: bool = False) -> None:
        self._desk = desk
        self._metrics = metrics
        self._scrape = asyncio.Lock()
        self._server: asyncio.Server | None = None
        self._web: web.Server | None = None
        self._paths = _common(self) if metrics_only else _common(self) | _full(self)

    async def start(self, host: str, port: int) -> None:
        """Listen on TCP; OSError if that address cannot be had."""
        from aiohttp import web

        self._web = web.Server(
            self._handle,
            access_log=None,
            keepalive_timeout=KEEPALIVE,
            lingering_time=0.0,
            max_line_size=LINE_LIMIT,
            max_field_size=LINE_LIMIT,
            max_headers=FIELDS_LIMIT,
        )
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            partial(_accept, self._web), host, port, backlog=CONNECTIONS_LIMIT
        )
        log.info("http.listening", address=host, port=self.port)

    @property
    def port(self) -> int:
        """The port that was got, for a server that was started on port 0."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening; answers under way get a second, and who just came gets to ask."""
        if self._server is None or self._web is None:
            return
        server, self._server = self._server, None
        doors = [each.dup() for each in server.sockets]
        server.close()
        await self._welcome([client for door in doors for client in _last(door)])
        if self._web.connections:
            await asyncio.sleep(GREETING)
        self._web.pre_shutdown()
        await self._web.shutdown(FAREWELL_PATIENCE)

    async def retire(self) -> None:
        """Another server has taken over."""
        await self.close()

    @property
    def busy(self) -> bool:
        """Whether there is anything left to be closed."""
        return self._server is not None

    async def _welcome(self, clients: Sequence[socket]) -> None:
        """Clients that had connected when the door closed."""
        assert self._web is not None
        loop = asyncio.get_running_loop()
        for client in clients:
            try:
                await loop.connect_accepted_socket(partial(_accept, self._web), client)
            except OSError:
                client.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        from aiohttp import web

        handler = self._paths.get(request.path)
        headers: dict[str, str] = {}
        if handler is None:
            status, kind, body, policy = await _json({"error": "there is no such page"}, 404)
        elif request.method not in READING:
            status, kind, body, policy = await _json({"error": "nothing is changed over HTTP"}, 405)
            headers["Allow"] = "GET, HEAD"
        else:
            status, kind, body, policy = await self._answer(handler)
        headers |= {"Content-Type": kind, "Content-Security-Policy": policy, **HEADERS}
        response = web.Response(status=status, body=body, headers=headers)
        if request.method not in READING:
            # A body that nobody reads must not be taken for the next request.
            response.force_close()
        return response

    async def _answer(self, handler: Handler) -> Reply:
        try:
            return await handler()
        except DeskError as refusal:
            return await _json({"error": refusal.message}, 403)

    async def healthz(self) -> Reply:
        """The process lives and its loop turns."""
        return 200, TEXT_TYPE, b"ok\n", NOTHING

    async def readyz(self) -> Reply:
        """Joined and reconciled, or the reasons why not."""
        ready, reasons = self._desk.ready()
        return await _json({"ready": ready, "reasons": [*reasons]}, 200 if ready else 503)

    async def scrape(self) -> Reply:
        """Prometheus text; one at a time, in a thread, for with many addresses it takes long."""
        async with self._scrape:
            body = await asyncio.to_thread(self._metrics.render)
        return 200, exposition.CONTENT_TYPE, body, NOTHING

    async def status(self) -> Reply:
        """The node in one document."""
        return await _json(self._desk.status())

    async def members(self) -> Reply:
        """Every member."""
        return await _json(self._desk.members())

    async def egress(self) -> Reply:
        """Every IP."""
        return await _json(self._desk.egress_list())

    async def history(self) -> Reply:
        """The newest moves."""
        return await _json(self._desk.history(HISTORY_LIMIT))

    async def config(self) -> Reply:
        """The running configuration, redacted."""
        running = self._desk.config_show(which="running", origin=False, changed_only=False)
        return await _json(running)


def _common(server: HttpServer) -> dict[str, Handler]:
    return {"/healthz": server.healthz, "/metrics": server.scrape}


def _full(server: HttpServer) -> dict[str, Handler]:
    page = PAGE.read_bytes()
    shown = 200, "text/html; charset=utf-8", page, _policy(page)

    async def front() -> Reply:
        return shown

    return {
        "/": front,
        "/readyz": server.readyz,
        "/api/v1/status": server.status,
        "/api/v1/members": server.members,
        "/api/v1/egress": server.egress,
        "/api/v1/history": server.history,
        "/api/v1/config": server.config,
    }


async def _json(value: JSON | list[Document], status: int = 200) -> Reply:
    return status, JSON_TYPE, await encode(value) + b"\n", NOTHING


def _policy(page: bytes) -> str:
    """Only the page's own script and style run, and they may only ask where they come from."""
    hashes = {
        tag: " ".join(
            f"'sha256-{b64encode(sha256(found).digest()).decode()}'"
            for found in re.findall(rb"<%b>(.*?)</%b>" % (tag, tag), page, re.DOTALL)
        )
        for tag in (b"script", b"style")
    }
    return (
        f"{NOTHING}; base-uri 'none'; form-action 'none'; connect-src 'self'; "
        f"script-src {hashes[b'script']}; style-src {hashes[b'style']}"
    )


def _accept(server: web.Server) -> asyncio.Protocol:
    """A protocol for a new connection; when there are too many, the oldest makes room.

    So clients that connect and say nothing keep nobody out and need no timer.
    """
    connections = server.connections
    if len(connections) >= CONNECTIONS_LIMIT:
        connections[0].force_close()
    return server()


def _last(door: socket) -> list[socket]:
    """Close a listening socket; who waited before it would be reset by the kernel otherwise."""
    found: list[socket] = []
    door.settimeout(0.0)
    with door, contextlib.suppress(BlockingIOError, ConnectionAbortedError):
        while len(found) < CONNECTIONS_LIMIT:
            found.append(door.accept()[0])
    return found
