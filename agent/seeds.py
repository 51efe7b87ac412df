"""Where to look for the cluster: addresses and names of the configuration, as addresses.

Names are looked up again for ever, since a name server that comes late must not leave a node alone;
what a name last meant stays valid while nobody can be asked.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

import structlog

from gossip.peer import Address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence
    from random import Random

    from config.addresses import Seed
    from egress.model import IP

    Lookup = Callable[[str], Awaitable[Sequence[str]]]

PERIOD = 30.0
"""Seconds between two looks at names that resolve."""
RETRY_FIRST = 1.0
RETRY_LAST = 30.0
PATIENCE = 5.0
"""Seconds that a name server may take."""
PER_NAME_LIMIT = 128
"""Addresses of one name: a headless service has one for each node, and a few are enough to join."""
JITTER = 0.2

log = structlog.get_logger("wayout.seeds")


@dataclass(frozen=True, slots=True)
class Resolved:
    """Addresses to join through, and the names that nobody could tell anything about."""

    addresses: tuple[Address, ...]
    unknown: tuple[str, ...] = ()


class Seeds:
    """Seeds of one node; `own` are its addresses, which are no use as seeds."""

    def __init__(
        self,
        seeds: Sequence[Seed],
        port: int,
        own: Collection[Address],
        rng: Random,
        lookup: Lookup | None = None,
    ) -> None:
        self._seeds = tuple(seeds)
        self._port = port
        self._own = frozenset(own)
        self._rng = rng
        self._lookup = lookup or lookup_name
        self._known: dict[str, tuple[str, ...]] = {}
        self._changed = asyncio.Event()
        self._silent: frozenset[str] = frozenset()

    def change(self, seeds: Sequence[Seed], port: int) -> None:
        """Other seeds, from the next look on, which is now."""
        self._seeds = tuple(seeds)
        self._port = port
        self._changed.set()

    async def resolve(self) -> Resolved:
        """Look everything up once."""
        names = sorted({seed.host for seed in self._seeds if _literal(seed.host) is None})
        async with asyncio.TaskGroup() as tasks:
            asked = {name: tasks.create_task(self._ask(name)) for name in names}
        for name, task in asked.items():
            self._known[name] = task.result() or self._known.get(name, ())
        self._known = {name: self._known[name] for name in names}
        unknown = tuple(name for name in names if not asked[name].result())
        self._tell(frozenset(unknown))
        return Resolved(self._addresses(), unknown)

    async def run(self, found: Callable[[tuple[Address, ...]], None]) -> None:
        """Part of the daemon: tell `found` the addresses, and again whenever they change."""
        told: tuple[Address, ...] | None = None
        pause = RETRY_FIRST
        while True:
            self._changed.clear()
            resolved = await self.resolve()
            if resolved.addresses != told:
                told = resolved.addresses
                found(told)
            await self._rest(pause if resolved.unknown else PERIOD)
            pause = min(pause * 2, RETRY_LAST) if resolved.unknown else RETRY_FIRST

    async def _rest(self, seconds: float) -> None:
        # Without the jitter a cluster that boots together asks the name server together.
        seconds *= 1.0 + self._rng.uniform(-JITTER, JITTER)
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _ask(self, name: str) -> tuple[str, ...]:
        try:
            async with asyncio.timeout(PATIENCE):
                texts = await self._lookup(name)
        except (TimeoutError, OSError, UnicodeError):
            return ()
        ips = sorted({ip for text in texts if (ip := _literal(text)) is not None}, key=_order)
        return tuple(str(ip) for ip in ips[:PER_NAME_LIMIT])

    def _addresses(self) -> tuple[Address, ...]:
        found: dict[Address, None] = {}
        for seed in self._seeds:
            literal = _literal(seed.host)
            hosts = (str(literal),) if literal is not None else self._known.get(seed.host, ())
            for host in hosts:
                found[Address(host, seed.port or self._port)] = None
        return tuple(address for address in found if address not in self._own)

    def _tell(self, silent: frozenset[str]) -> None:
        for name in sorted(silent - self._silent):
            log.warning("seeds.name_unknown", name=name, kept=len(self._known.get(name, ())))
        for name in sorted(self._silent - silent):
            log.info("seeds.name_found", name=name)
        self._silent = silent


async def lookup_name(name: str) -> Sequence[str]:
    """Addresses of a name.

    In a daemon thread of its own: the resolver cannot be interrupted, and the loop's executor
    would keep the process from ending until a mute name server has been waited for.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def deliver(found: list[str]) -> None:
        if not answer.done():
            answer.set_result(found)

    def ask() -> None:
        try:
            records = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
        except (OSError, UnicodeError):
            records = []
        texts = [str(record[4][0]) for record in records]
        try:
            loop.call_soon_threadsafe(deliver, texts)
        except RuntimeError:
            # The loop has ended meanwhile; nobody waits any more.
            return

    threading.Thread(target=ask, name=f"lookup {name}", daemon=True).start()
    return await answer


def _literal(host: str) -> IP | None:
    try:
        ip = ip_address(host)
    except ValueError:
        return None
    # Peers know a mapped member by its IPv4 address.
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return mapped or ip


def _order(ip: IP) -> tuple[int, int]:
    return ip.version, int(ip)
