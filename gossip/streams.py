"""Conversations over TCP: those that peers begin, and those that the machine wants.

One message each way at most. Every conversation has a deadline, the number of those that peers
begin is bounded, over all and for each host, and so is what they may make us hold in memory.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import structlog

from gossip.events import Dropped
from gossip.peer import NOWHERE, Address
from gossip.wire import stream
from gossip.wire.messages import Err, WireError
from gossip.wire.stream import Assembler

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from gossip.effects import Dial, Effects
    from gossip.events import Event
    from gossip.machine import Machine
    from gossip.wire.messages import StreamMessage

STREAMS_MAX = 127
"""Conversations begun by peers at one time, as in memberlist."""
STREAMS_PER_HOST = 32
HELD_MAX = 64 << 20
"""Bytes of unfinished messages of all peers together."""
PATIENCE = 10.0
"""Seconds for a conversation that a peer began."""
CHUNK = 65536

log = structlog.get_logger("wayout.gossip")


class Streams:
    """The listener and all open connections of one node; `perform` and `hear` are the node's."""

    def __init__(
        self,
        machine: Machine,
        *,
        perform: Callable[[Effects], None],
        hear: Callable[[Event], None],
        clock: Callable[[], float],
        admits: Callable[[str], bool] = lambda _: True,
        patience: float = PATIENCE,
    ) -> None:
        self._machine = machine
        self._perform = perform
        self._hear = hear
        self._clock = clock
        self._admits = admits
        self._patience = patience
        self._host = ""
        self._server: asyncio.Server | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._waiting: list[Dial] = []
        self._hosts: Counter[str] = Counter()
        self._held = 0

    async def listen(self, host: str, port: int) -> None:
        """Open the listener; OSError when the address cannot be had."""
        self._server = await asyncio.start_server(self._accept, host, port)
        self._host = host

    def attend(self, tasks: asyncio.TaskGroup | None) -> None:
        """Converse in tasks of this group from now on; with None, not at all."""
        self._tasks = tasks
        if tasks is not None:
            waiting, self._waiting = self._waiting, []
            for dial in waiting:
                self.dial(dial)

    def dial(self, dial: Dial) -> None:
        """Begin a conversation; the machine hears how it ended."""
        if self._tasks is None:
            self._waiting.append(dial)
        else:
            self._tasks.create_task(self._dial(dial), name="dial")

    async def close(self) -> None:
        """Close the listener; conversations end with the tasks they are held in."""
        if self._server is not None:
            self._server.close()
            self._server = None

    # Begun by a peer.

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        source = _peer(writer)
        if not self._admits(source.host):
            self._hear(Dropped(source, "not_allowed"))
            writer.transport.abort()
            return
        full = self._hosts.total() >= STREAMS_MAX or self._hosts[source.host] >= STREAMS_PER_HOST
        if self._tasks is None or full:
            log.debug("gossip.stream_refused", peer=source.host, full=full)
            if full:
                self._hear(Dropped(source, "too_many_streams"))
            writer.transport.abort()
            return
        self._hosts[source.host] += 1
        self._begin(self._tasks, self._serve(reader, writer, source), writer, source)

    def _begin(
        self,
        tasks: asyncio.TaskGroup,
        conversation: Coroutine[Any, Any, None],
        writer: asyncio.StreamWriter,
        source: Address,
    ) -> None:
        def ended(_: object) -> None:
            # Not in the task: one that is cancelled before its first step runs no `finally`.
            self._hosts[source.host] -= 1
            self._hosts += Counter()  # forgets hosts without a conversation
            writer.transport.abort()

        tasks.create_task(conversation, name="stream").add_done_callback(ended)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: Address
    ) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self._converse(reader, writer, source)
                writer.close()
                await writer.wait_closed()
        except TimeoutError:
            self._hear(Dropped(source, "too_slow"))
        except (OSError, EOFError) as error:
            log.debug("gossip.stream_ended", peer=source.host, reason=type(error).__name__)

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: Address
    ) -> None:
        envelope = self._machine.envelope
        try:
            message = await self._message(reader, Assembler(envelope, dialler=False))
        except WireError as error:
            self._hear(Dropped(source, error.reason))
            if envelope.keyring is None:
                # Without a key there is nothing to keep from a peer that merely speaks wrongly.
                writer.write(stream.frame(Err(error.reason), envelope, dialler=False))
            return
        reply, effects = self._machine.answer(message, source, self._clock())
        self._perform(effects)
        if reply is not None:
            writer.write(reply)

    # Begun by us.

    async def _dial(self, dial: Dial) -> None:
        message = None
        try:
            async with asyncio.timeout(dial.timeout):
                message = await self._ask(dial)
        except WireError as error:
            self._hear(Dropped(dial.to, error.reason))
        except (OSError, EOFError) as error:
            log.debug("gossip.dial_failed", peer=dial.to.host, reason=type(error).__name__)
            if isinstance(error, ConnectionRefusedError):
                # A reset says as much as an unreachable port: the host lives, the process does not.
                self._perform(self._machine.refused(dial.to, self._clock()))
        self._perform(self._machine.replied(dial.token, message, self._clock()))

    async def _ask(self, dial: Dial) -> StreamMessage | None:
        reader, writer = await asyncio.open_connection(
            dial.to.host, dial.to.port, local_addr=(self._host, 0)
        )
        try:
            writer.write(dial.data)
            await writer.drain()
            if dial.expects_reply:
                assembler = Assembler(self._machine.envelope, dialler=True)
                return await self._message(reader, assembler)
            writer.close()
            await writer.wait_closed()
        finally:
            writer.transport.abort()
        return None

    async def _message(self, reader: asyncio.StreamReader, assembler: Assembler) -> StreamMessage:
        """What the peer says; EOFError when it stops before the end."""
        held = 0
        try:
            while data := await reader.read(CHUNK):
                held += len(data)
                self._held += len(data)
                if self._held > HELD_MAX:
                    raise WireError("too_long")
                for _ in assembler.work(data):
                    await asyncio.sleep(0)
                if (message := assembler.message) is not None:
                    return message
        finally:
            self._held -= held
        raise EOFError


def _peer(writer: asyncio.StreamWriter) -> Address:
    name = writer.get_extra_info("peername")
    return Address(name[0].partition("%")[0], name[1]) if name else NOWHERE
