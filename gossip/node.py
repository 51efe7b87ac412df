"""The machine on sockets: datagrams through asyncio-dgram, streams on the same port, one timer.

Events are published before anything is sent, with no await in between, so two tasks that drive
the machine cannot reorder history. asyncio-dgram reports an earlier send's failure with a later
call, whoever that is about, so an error here is counted and belongs to nobody; what the kernel
knows about a refused datagram is read from the socket's error queue instead (ip(7), IP_RECVERR).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import struct
from collections import deque
from typing import TYPE_CHECKING, Any, cast

import asyncio_dgram
import structlog

from gossip.effects import Effects
from gossip.events import Dropped
from gossip.peer import Address
from gossip.wire import stream
from gossip.wire.messages import Err, WireError
from gossip.wire.stream import Assembler

if TYPE_CHECKING:
    from collections.abc import Callable

    from gossip.effects import Datagram, Dial
    from gossip.events import Event
    from gossip.machine import Machine
    from gossip.wire.messages import StreamMessage

RECEIVE_BUFFER = 2 << 20
"""Bytes that may wait in the kernel while the loop is busy."""
DATAGRAM_MAX = 65536
OUTBOX_MAX = 4096
"""Datagrams that may wait to be sent; older ones are dropped first, as a network would."""
TURN = 64
"""Datagrams that are taken before others on the loop have their turn."""
DRAIN_MAX = 4096
STREAMS_MAX = 127
STREAM_PATIENCE = 10.0
CHUNK = 65536
FAREWELL_LOOKS = 1200
LATE = 0.05
"""A timer that is later than this found a busy loop: what waits in the socket is read first."""

ERROR_QUEUE = int(socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)

_RECVERR = {
    socket.AF_INET: (socket.IPPROTO_IP, 11),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 25),
}
_EXTENDED_ERROR = struct.Struct("=IBBBBII")

log = structlog.get_logger("wayout.gossip")


class Node:
    """One member. `hear` is called with every event, on the loop, in the machine's order.

    As a library: `async with` a TaskGroup, `await bind()`, run `run()` as a task of it.
    """

    def __init__(
        self,
        machine: Machine,
        hear: Callable[[Event], None],
        *,
        bind: Address,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.machine = machine
        self._hear = hear
        self._address = bind
        self._clock = clock or asyncio.get_running_loop().time
        self._socket: socket.socket | None = None
        self._datagrams: Any = None
        self._server: asyncio.Server | None = None
        self._outbox: deque[Datagram] = deque(maxlen=OUTBOX_MAX)
        self._pending: list[Dial] = []
        self._to_send = asyncio.Event()
        self._woken = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None
        self._streams = 0
        self._armed = float("inf")

    async def bind(self) -> None:
        """Open the UDP and the TCP socket; OSError when the address cannot be had."""
        family = socket.AF_INET6 if ":" in self._address.host else socket.AF_INET
        where = (self._address.host, self._address.port)
        opened = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            opened.setsockopt(*_RECVERR[family], 1)
            opened.bind(where)
            self._server = await asyncio.start_server(self._accept, *where, family=family)
            self._datagrams = await asyncio_dgram.from_socket(opened)
        except OSError:
            opened.close()
            await self.close()
            raise
        self._socket = opened
        # asyncio reads into 256 KiB each time, which costs 20 µs a datagram in mmap and munmap.
        transport = self._datagrams._transport  # noqa: SLF001 - the library has no other way
        transport.max_size = DATAGRAM_MAX

    async def run(self) -> None:
        """Be a member until cancelled."""
        assert self._datagrams is not None, "bind first"
        async with asyncio.TaskGroup() as self._tasks:
            self.perform(self.machine.start(self._clock()))
            for dial in self._pending:
                self._tasks.create_task(self._dial(dial), name="dial")
            self._pending.clear()
            self._tasks.create_task(self._read(), name="read")
            self._tasks.create_task(self._send(), name="send")
            self._tasks.create_task(self._tick(), name="tick")

    def perform(self, effects: Effects) -> None:
        """Publish, then send and dial; for whoever has called the machine directly, too."""
        for event in effects.events:
            self._hear(event)
        for datagram in effects.datagrams:
            self._post(datagram)
        for dial in effects.dials:
            if self._tasks is None:
                self._pending.append(dial)
            else:
                self._tasks.create_task(self._dial(dial), name="dial")
        if self.machine.deadline < self._armed:
            self._woken.set()

    async def farewell(self, patience: float) -> None:
        """Say goodbye, and keep answering until it has been said often enough, or `patience`."""
        self.perform(self.machine.leave(self._clock()))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._said()

    async def _said(self) -> None:
        for _ in range(FAREWELL_LOOKS):
            if self.machine.left:
                return
            await asyncio.sleep(LATE)

    async def close(self) -> None:
        """Close both sockets; idempotent."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._datagrams is not None:
            self._datagrams.close()
            self._datagrams = None
            await asyncio.sleep(0)
        self._socket = None

    # -- datagrams -------------------------------------------------------------------------

    async def _read(self) -> None:
        taken = 0
        while True:
            try:
                data, source = await self._datagrams.recv()
            except OSError as error:
                log.debug("gossip.socket_error", errno=error.errno)
                continue
            self._receive(data, source)
            taken += 1
            if taken % TURN == 0:
                await asyncio.sleep(0)

    def _receive(self, data: bytes, source: object) -> None:
        self.perform(self.machine.receive(data, _address(source), self._clock()))

    def _post(self, datagram: Datagram) -> None:
        """Send at once if the kernel takes it: a task for each packet would cost more."""
        if self._socket is not None and not self._outbox:
            try:
                self._socket.sendto(datagram.data, (datagram.to.host, datagram.to.port))
            except BlockingIOError:
                pass
            except OSError as error:
                log.debug("gossip.socket_error", errno=error.errno)
                return
            else:
                return
        self._outbox.append(datagram)
        self._to_send.set()

    async def _send(self) -> None:
        """What the kernel would not take at once, through the library that waits for it."""
        while True:
            await self._to_send.wait()
            self._to_send.clear()
            while self._outbox:
                datagram = self._outbox.popleft()
                try:
                    await self._datagrams.send(datagram.data, (datagram.to.host, datagram.to.port))
                except OSError as error:
                    log.debug("gossip.socket_error", errno=error.errno)

    # -- time ------------------------------------------------------------------------------

    async def _tick(self) -> None:
        while True:
            self._woken.clear()
            deadline = self._armed = self.machine.deadline
            try:
                async with asyncio.timeout_at(None if deadline == float("inf") else deadline):
                    await self._woken.wait()
            except TimeoutError:
                self._advance(deadline)

    def _advance(self, deadline: float) -> None:
        late = self._clock() - deadline
        if late > LATE:
            self._drain()
        self._refusals()
        # Clock granularity: never hand the machine a time before its own deadline.
        now = max(self._clock(), deadline)
        self.perform(self.machine.lag(max(late, 0.0), now))
        self.perform(self.machine.advance(now))

    def _drain(self) -> None:
        """Read what has come while nobody looked, before anybody is missed."""
        assert self._socket is not None
        for _ in range(DRAIN_MAX):
            try:
                data, source = self._socket.recvfrom(DATAGRAM_MAX)
            except OSError:
                return
            self._receive(data, source)

    def _refusals(self) -> None:
        """Datagrams that a living host sent back, for nothing listens there (ICMP)."""
        assert self._socket is not None
        for _ in range(TURN):
            try:
                _, notes, _, target = self._socket.recvmsg(0, 512, ERROR_QUEUE)
            except OSError:
                return
            if target and any(_refused(note) for _, _, note in notes):
                self.perform(self.machine.refused(_address(target), self._clock()))

    # -- streams ---------------------------------------------------------------------------

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._tasks is None or self._streams >= STREAMS_MAX:
            writer.close()
            return
        self._tasks.create_task(self._serve(reader, writer), name="stream")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        source = _address(writer.get_extra_info("peername") or ("0.0.0.0", 0))  # noqa: S104 - unknown
        self._streams += 1
        try:
            async with asyncio.timeout(STREAM_PATIENCE):
                await self._converse(reader, writer, source)
        except (OSError, EOFError) as error:  # a TimeoutError is an OSError
            log.debug("gossip.stream_ended", peer=source.host, reason=type(error).__name__)
        finally:
            self._streams -= 1
            writer.close()

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: Address
    ) -> None:
        envelope = self.machine.envelope
        try:
            message = await _message(reader, Assembler(envelope, dialler=False))
        except WireError as error:
            self._hear(Dropped(source, error.reason))
            if envelope.keyring is None:
                # Without a key there is nothing to keep from a peer that merely speaks wrongly.
                writer.write(stream.frame(Err(error.reason), envelope, dialler=False))
                await writer.drain()
            return
        reply, effects = self.machine.answer(message, source, self._clock())
        self.perform(effects)
        if reply is not None:
            writer.write(reply)
            await writer.drain()

    async def _dial(self, dial: Dial) -> None:
        message = None
        writer = None
        try:
            async with asyncio.timeout(dial.timeout):
                reader, writer = await asyncio.open_connection(
                    dial.to.host, dial.to.port, local_addr=(self._address.host, 0)
                )
                writer.write(dial.data)
                await writer.drain()
                if dial.expects_reply:
                    assembler = Assembler(self.machine.envelope, dialler=True)
                    message = await _message(reader, assembler)
        except WireError as error:
            self._hear(Dropped(dial.to, error.reason))
        except (OSError, EOFError) as error:
            log.debug("gossip.dial_failed", peer=dial.to.host, reason=type(error).__name__)
        finally:
            if writer is not None:
                writer.close()
        self.perform(self.machine.replied(dial.token, message, self._clock()))


async def _message(reader: asyncio.StreamReader, assembler: Assembler) -> StreamMessage:
    while True:
        data = await reader.read(CHUNK)
        if not data:
            raise EOFError
        if (message := assembler.feed(data)) is not None:
            return message


def _address(peer: object) -> Address:
    """The library types a peer as anything; for IPv4 and IPv6 it starts with host and port."""
    host, port = cast("tuple[str, int]", peer)[:2]
    return Address(host.partition("%")[0], port)


def _refused(note: bytes) -> bool:
    if len(note) < _EXTENDED_ERROR.size:
        return False
    return bool(_EXTENDED_ERROR.unpack_from(note)[0] == errno.ECONNREFUSED)
