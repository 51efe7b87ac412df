"""Gossip as a library: be a member for as long as an `async with` lasts, hear, and tell others.

    async with joined("a", "192.0.2.1", seeds=["192.0.2.2"]) as me:
        me.broadcast({"hello": "everybody"})
        async for event in me.events():
            ...

Everything runs on the loop of the caller; nothing here needs the rest of this program.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from dataclasses import dataclass, field
from ipaddress import ip_address
from random import Random
from typing import TYPE_CHECKING

from gossip.bulletin import FIRST_KIND
from gossip.machine import Machine
from gossip.node import Node
from gossip.peer import PROTOCOL_VERSIONS, Address, Identity
from gossip.tuning import Tuning
from gossip.wire import own
from gossip.wire.messages import WireError
from gossip.wire.packet import Envelope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from gossip.events import Event, Plain
    from gossip.peer import Member as Seen

PORT = 7955
KIND = 64
"""Kind of an application's message that says none; those from 32 to 63 are this program's own."""
KIND_MAX = 255
EVENTS_MAX = 10_000
"""Events that may wait to be iterated; beyond, the oldest are forgotten."""
GOODBYE = 5.0
"""Seconds that saying goodbye may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What most users leave as it is.

    `keys` of 16, 24 or 32 bytes encrypt everything, the first of them seals; `label` keeps
    clusters apart; `meta` is told to everybody (512 bytes when packed); `delegate` are the last
    three version bytes, (2, 5, 5) among agents of serf.
    """

    keys: tuple[bytes, ...] = field(default=(), repr=False)
    label: str = ""
    meta: Mapping[str, Plain] = field(default_factory=dict)
    delegate: tuple[int, int, int] = (0, 0, 0)
    tuning: Tuning = field(default_factory=Tuning)


class Member:
    """A running member, made by `joined`. Whatever is not awaited is immediate."""

    def __init__(self, node: Node, name: str, told: Events) -> None:
        self._node = node
        self._told = told
        self._clock = asyncio.get_running_loop().time
        self.name = name

    def events(self) -> AsyncIterator[Event]:
        """Everything that is heard, from the start and in order, for one reader.

        It ends when the member does.
        """
        return self._told

    @property
    def forgotten(self) -> int:
        """Events that nobody read in time."""
        return self._told.forgotten

    @property
    def failures(self) -> Mapping[str, int]:
        """What the kernel refused to send or receive, by errno name."""
        return self._node.failures

    def members(self) -> tuple[Seen, ...]:
        """Everybody known at this moment, ourselves and those who died or left included."""
        return self._node.machine.members()

    def broadcast(self, value: Plain, *, kind: int = KIND, about: str | None = None) -> None:
        """Tell all members that speak as we do; each hears a `UserMessage` once.

        A newer message `about` the same replaces an older one that is still on its way.
        `TooLongError` when it fits no datagram (about 1300 bytes).
        """
        now = self._clock()
        self._node.perform(self._node.machine.broadcast(_kind(kind), value, now, about))

    def send(self, name: str, value: Plain, *, kind: int = KIND) -> None:
        """Tell one member, over TCP if it is long; nothing happens when there is none such."""
        self._node.perform(self._node.machine.send(name, _kind(kind), value, self._clock()))

    def set_meta(self, value: Mapping[str, Plain]) -> None:
        """Other metadata; `MetaTooLong` before anything changes."""
        self._node.perform(self._node.machine.set_meta(dict(value), self._clock()))

    def set_state(self, value: Plain) -> None:
        """What peers get as `StateReceived` with every full exchange."""
        self._node.machine.set_state(value)


class Events:
    """An iterator that ends; what waits in it is bounded."""

    def __init__(self) -> None:
        self._waiting: deque[Event] = deque()
        self._filled = asyncio.Event()
        self._ended = False
        self.forgotten = 0

    def put(self, event: Event) -> None:
        """From the loop."""
        if len(self._waiting) >= EVENTS_MAX:
            self._waiting.popleft()
            self.forgotten += 1
        self._waiting.append(event)
        self._filled.set()

    def end(self) -> None:
        """There will be no more."""
        self._ended = True
        self._filled.set()

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Event:
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._filled.clear()
            await self._filled.wait()
        return self._waiting.popleft()


@contextlib.asynccontextmanager
async def joined(
    name: str,
    host: str,
    *,
    port: int = PORT,
    seeds: Iterable[str | Address] = (),
    options: Options | None = None,
) -> AsyncIterator[Member]:
    """Be a member called `name` that listens on `host` (UDP and TCP), until the block ends.

    `seeds` are addresses ("192.0.2.2", "192.0.2.2:7955", "[2001:db8::2]:7955") that are dialled
    until they are members. At the end we say goodbye, so that nobody waits for us. OSError when
    the address cannot be had, ValueError when a seed or a key makes no sense.
    """
    options = options or Options()
    loop = asyncio.get_running_loop()
    here = Address(str(ip_address(host)), port)
    there = tuple(_address(seed, port) for seed in seeds)
    machine = Machine(
        _identity(name, here, options),
        options.tuning,
        _envelope(options),
        Random(),  # noqa: S311 - jitter and the order of probing
        loop.time(),
    )
    told = Events()
    node = Node(machine, told.put, bind=here)
    await node.bind()
    try:
        async with asyncio.TaskGroup() as tasks:
            node.perform(machine.set_seeds(there, loop.time()))
            running = tasks.create_task(node.run(), name="gossip")
            # It says who it is in its first turn; before that nothing could be told to anybody.
            await asyncio.sleep(0)
            yield Member(node, name, told)
            await node.farewell(GOODBYE)
            running.cancel()
    finally:
        told.end()
        await node.close()


def meta_of(seen: Seen) -> Plain:
    """The metadata of a member, or None when it speaks another language."""
    try:
        return own.unpack(seen.meta)[1]
    except WireError:
        return None


def _identity(name: str, here: Address, options: Options) -> Identity:
    meta = own.pack(own.META, dict(options.meta))
    versions = bytes((*PROTOCOL_VERSIONS, *options.delegate))
    return Identity(name=name, address=here, meta=meta, versions=versions)


def _envelope(options: Options) -> Envelope:
    ring = None
    if options.keys:
        from gossip.wire.seal import Keyring

        ring = Keyring(options.keys)
    return Envelope(label=options.label.encode(), keyring=ring, nonces=os.urandom)


def _address(seed: str | Address, port: int) -> Address:
    if isinstance(seed, Address):
        return seed
    host, colon, digits = seed.rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):
        host, digits = seed, str(port)
    return Address(str(ip_address(host.strip("[]"))), int(digits))


def _kind(kind: int) -> int:
    if not FIRST_KIND <= kind <= KIND_MAX:
        raise ValueError(f"a kind is {FIRST_KIND} to {KIND_MAX}")
    return kind
