"""The machine on sockets: datagrams through asyncio-dgram, streams on the same port, one timer.

Events are published before anything is sent, with no await in between, so two tasks that drive
the machine cannot reorder history. A failing call on the datagram socket may be about any earlier
datagram, so a failure is counted and belongs to nobody; whom it is about stands in the error
queue (`refusals`).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, cast

import asyncio_dgram
import structlog

from gossip import beats, refusals
from gossip.admission import Admission
from gossip.ear import Ear
from gossip.events import Dropped
from gossip.peer import Address
from gossip.streams import PATIENCE, Streams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gossip.effects import Datagram, Effects
    from gossip.events import Event
    from gossip.machine import Machine

RECEIVE_BUFFER = 2 << 20
"""Bytes that may wait in the kernel while the loop is busy."""
_RECEIVE_BUFFER_FORCE = 33
"""SO_RCVBUFFORCE: beyond net.core.rmem_max, for those who may."""
DATAGRAM_MAX = 65536
OUTBOX_MAX = 4096
"""Datagrams that may wait to be sent; older ones are dropped first, as a network would."""
TURN = 64
"""Datagrams that are taken before others on the loop have their turn."""
DRAIN_PATIENCE = 0.02
"""Seconds that reading what had piled up may hold the loop."""
FAREWELL_LOOKS = 1200
NEVER = float("inf")
GRAIN = 0.001
"""The loop's timers may fire so much early: the resolution of its clock."""
LATE = 0.05
"""A timer that is later than this found a busy loop: what waits in the socket is read first."""

log = structlog.get_logger("wayout.gossip")


class Node:
    """One member. `hear` is called with every event, on the loop, in the machine's order.

    As a library: `await bind()`, run `run()` as a task of a TaskGroup, cancel it, `await close()`.
    `patience` is for conversations that peers begin, in seconds. `awake` is called with the time
    whenever the node is woken, before anything else. `failures` counts what the kernel refused to
    send or receive, by errno name. `worst_lag` is how late the loop woke us at most, in seconds;
    whoever reads it may set it back.
    """

    def __init__(
        self,
        machine: Machine,
        hear: Callable[[Event], None],
        *,
        bind: Address,
        clock: Callable[[], float] | None = None,
        patience: float = PATIENCE,
        awake: Callable[[float], None] | None = None,
    ) -> None:
        self.machine = machine
        self.admission = Admission()
        self.failures: Counter[str] = Counter()
        self.worst_lag = 0.0
        self._hear = hear
        self._awake = awake or _nobody
        self._address = bind
        self._clock = clock or asyncio.get_running_loop().time
        self._streams = Streams(
            machine,
            perform=self.perform,
            hear=hear,
            clock=self._clock,
            admits=self._admits,
            patience=patience,
        )
        self._socket: socket.socket | None = None
        self._beats: beats.Beats | None = None
        self._datagrams: Any = None
        self._outbox: deque[Datagram] = deque(maxlen=OUTBOX_MAX)
        self._to_send = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._broken: asyncio.Future[None] | None = None
        self._refused: dict[tuple[str, int], None] = {}

    async def bind(self) -> None:
        """Open the UDP and the TCP socket; OSError when the address cannot be had."""
        host, port = self._address.host, self._address.port
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        opened = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            _enlarge(opened)
            refusals.ask_for(opened)
            # First what nobody else can have as well: the datagram socket may be shared.
            await self._streams.listen(host, port)
            beats.share(opened)
            opened.bind((host, port))
        except BaseException:
            opened.close()
            await self._streams.close()
            raise
        self._socket = opened
        self._beats = beats.Beats(opened, self._beaten)

    async def run(self) -> None:
        """Be a member until cancelled."""
        assert self._socket is not None, "bind first"
        self._broken = asyncio.get_running_loop().create_future()
        async with asyncio.TaskGroup() as tasks:
            self._streams.attend(tasks)
            try:
                self.perform(self.machine.start(self._clock()))
                await self._listen(self._socket)
                tasks.create_task(self._send(), name="send")
                await self._broken
            finally:
                self._broken = None
                self._disarm()
                if self._beats is not None:
                    self._beats.hearken(wanted=False)
                self._streams.attend(None)

    async def _listen(self, opened: socket.socket) -> None:
        """Hear datagrams in the turn of the loop in which they come.

        The library's queue would take another turn for each, which on an idle node is the greater
        part of all that it does; what it holds when we come is heard first.
        """
        self._datagrams = await asyncio_dgram.from_socket(opened)
        transport = self._datagrams._transport  # noqa: SLF001 - the library has no other way
        # asyncio reads into 256 KiB each time, which costs 20 µs a datagram in mmap and munmap.
        transport.max_size = DATAGRAM_MAX
        while self._datagrams._recvq.qsize():  # noqa: SLF001
            self._take(*await self._datagrams.recv())
        transport.set_protocol(Ear(transport.get_protocol(), self._take, self._failed))

    def perform(self, effects: Effects) -> None:
        """Publish, then send and dial; for whoever has called the machine directly, too."""
        for event in effects.events:
            self._hear(event)
        for datagram in effects.datagrams:
            self._post(datagram)
        for dial in effects.dials:
            self._streams.dial(dial)
        self._arm()

    async def farewell(self, patience: float) -> None:
        """Say goodbye, and keep answering until it has been said often enough, or `patience`.

        Seconds. Who does not run has nobody to say it to.
        """
        if self._broken is None:
            return
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
        """Close all sockets; idempotent."""
        await self._streams.close()
        if self._datagrams is not None:
            self._datagrams.close()
            self._datagrams = None
        elif self._socket is not None:
            self._socket.close()
        self._socket = None
        if self._beats is not None:
            self._beats.close()
            self._beats = None
        # The transports close their sockets in the loop's next turn.
        await asyncio.sleep(0)

    # Datagrams.

    def _take(self, data: bytes, source: object) -> None:
        """One that the loop has read, and whatever came with it."""
        with self._fatal():
            self._awake(self._clock())
            self._receive(data, source)
            for _ in range(TURN):
                if not self._read():
                    return

    def _read(self) -> bool:
        """Hear the next one that waits; whether there was any."""
        if self._socket is None:
            return False
        try:
            data, source = self._socket.recvfrom(DATAGRAM_MAX)
        except BlockingIOError:
            return False
        except OSError as error:
            self._failed(error)
        else:
            self._receive(data, source)
        return True

    @contextlib.contextmanager
    def _fatal(self) -> Iterator[None]:
        """What fails in a callback of the loop ends `run`, or it would be logged and forgotten."""
        try:
            yield
        except BaseException as error:
            if self._broken is None or self._broken.done():
                raise
            self._broken.set_exception(error)

    def _beaten(self) -> None:
        with self._fatal():
            self._awake(self._clock())
            self._read_beats()

    def _read_beats(self) -> None:
        """All that wait, in one go: each alone would cost as much as all together."""
        now = self._clock()
        taken, failure = self._beats.take(now) if self._beats is not None else ([], None)
        if failure is not None:
            self._failed(failure)
        peers = [(data, _address(source), age) for data, source, age in taken]
        for _, peer, _ in peers:
            if not self.admission.admits(peer.host):
                self._hear(Dropped(peer, "not_allowed"))
        waiting = [each for each in peers if self.admission.admits(each[1].host)]
        if waiting:
            self.perform(self.machine.receive_all(waiting, now))

    def _admits(self, host: str) -> bool:
        return self.admission.admits(host)

    def _receive(self, data: bytes, source: object) -> None:
        peer = _address(source)
        if not self.admission.admits(peer.host):
            self._hear(Dropped(peer, "not_allowed"))
            return
        self.perform(self.machine.receive(data, peer, self._clock()))

    def _post(self, datagram: Datagram) -> None:
        """Send at once if the kernel takes it: a task for each packet would cost more."""
        if self._socket is None:
            return
        if not self._outbox:
            try:
                self._say(self._socket, datagram)
            except BlockingIOError:
                pass
            except OSError as error:
                self._failed(error)
                return
            else:
                return
        self._outbox.append(datagram)
        self._to_send.set()

    def _say(self, out: socket.socket, datagram: Datagram) -> None:
        where = (datagram.to.host, datagram.to.port)
        try:
            out.sendto(datagram.data, where)
        except BlockingIOError:
            raise
        except OSError as error:
            # Most likely the failure of an earlier datagram to somebody else: this one was not
            # sent, and may be now.
            self._failed(error)
            out.sendto(datagram.data, where)

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
                    self._failed(error)

    def _failed(self, error: Exception) -> None:
        """A call failed, for whatever reason: look who cannot be reached."""
        number = error.errno if isinstance(error, OSError) else None
        name = errno.errorcode.get(number or 0, type(error).__name__)
        self.failures[name] += 1
        log.debug("gossip.socket_error", error=name)
        refused = dict.fromkeys(refusals.take(self._socket) if self._socket is not None else ())
        if self._beats is not None:
            refused.update(dict.fromkeys(self._beats.refused()))
        if refused and not self._refused:
            # Told later: the machine may be in the middle of its effects.
            asyncio.get_running_loop().call_soon(self._tell_refused)
        self._refused.update(refused)

    def _tell_refused(self) -> None:
        refused, self._refused = self._refused, {}
        with self._fatal():
            for target in refused:
                self.perform(self.machine.refused(_address(target), self._clock()))

    # Time.

    def _arm(self) -> None:
        """Wake when the machine wants, and not before: a turn costs more than another timer.

        A callback, since a task takes a turn more.
        """
        if self._broken is None:
            return
        if self._beats is not None:
            self._beats.hearken(wanted=not self.machine.calm)
        deadline = self.machine.deadline
        if self._alarm is not None and self._alarm.when() == deadline:
            return
        self._disarm()
        if deadline != NEVER:
            self._alarm = asyncio.get_running_loop().call_at(deadline, self._ring)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _ring(self) -> None:
        self._alarm = None
        with self._fatal():
            self._awake(self._clock())
            self._read_beats()
            deadline = self.machine.deadline
            if self._clock() >= deadline - GRAIN:
                self._advance(deadline)
            self._arm()

    def _advance(self, deadline: float) -> None:
        late = self._clock() - deadline
        self.worst_lag = max(self.worst_lag, late)
        if late > LATE:
            self._drain()
        # Clock granularity: never hand the machine a time before its own deadline.
        now = max(self._clock(), deadline)
        if late > LATE:
            self.perform(self.machine.lag(late, now))
        if self.machine.deadline <= now:
            self.perform(self.machine.advance(now))

    def _drain(self) -> None:
        """Read what has come while nobody looked, before anybody is missed."""
        until = self._clock() + DRAIN_PATIENCE
        while self._clock() < until and self._read():
            pass


def _nobody(_: float) -> None:
    """Nobody wants to know."""


def _enlarge(datagrams: socket.socket) -> None:
    try:
        datagrams.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER_FORCE, RECEIVE_BUFFER)
    except OSError:
        datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)


def _address(peer: object) -> Address:
    """The library types a peer as anything; for IPv4 and IPv6 it starts with host and port."""
    host, port = cast("tuple[str, int]", peer)[:2]
    return Address(host.partition("%")[0], port)
