"""One message on a TCP connection: framing out, and an assembler for what comes in pieces.

Label header (dialling side alone), then an encrypted frame with its length, or the message as it
is; either may be compressed. A plain message has no length: msgpack values are read until the
counts of the header are met. The responder's label stands only in the authenticated data.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from gossip.wire import codec, lzw, seal
from gossip.wire import label as labels
from gossip.wire.codec import Values
from gossip.wire.messages import Ack, Err, Ping, PushPull, User, WireError
from gossip.wire.record import READERS, Record, read_state

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from gossip.wire.messages import PeerState, StreamMessage
    from gossip.wire.packet import Envelope

T = TypeVar("T")

FRAME_HEADER = 5
STATES_MAX = 1 << 14
"""Records of one push/pull; a cluster of that size is beyond what this program is for."""
STREAM_MAX = 8 << 20
"""Most bytes of one message, compressed or not (memberlist itself takes 20 MiB)."""
ERROR_MAX = 1024
TURN_RECORDS = 200
"""Records that take some two milliseconds."""
TURN_STEPS = 3
"""Steps of decompression, 64 codes each, that take about a tenth of a millisecond."""


def encode(message: StreamMessage) -> bytes:
    """The message without any layer."""
    match message:
        case PushPull(join, states, user_state):
            counts = {"Nodes": len(states), "UserStateLen": len(user_state), "Join": join}
            head = codec.encode_header(codec.PUSH_PULL, counts)
            return head + b"".join(map(codec.encode_state, states)) + user_state
        case User(payload):
            return codec.encode_header(codec.USER, {"UserMsgLen": len(payload)}) + payload
        case _:
            return codec.encode(message)


def frame(message: StreamMessage, envelope: Envelope, *, dialler: bool) -> bytes:
    """The message with every layer; only the side that dialled writes the label header."""
    plain = encode(message)
    if (ring := envelope.sealing) is not None:
        length = seal.OVERHEAD + len(plain)
        head = bytes([codec.ENCRYPT]) + length.to_bytes(4, "big")
        nonce = envelope.nonces(seal.NONCE)
        plain = head + ring.seal(plain, head + envelope.label, nonce)
    return labels.header(envelope.label) + plain if dialler else plain


class Pause(Enum):
    """Why the assembler stops for a moment."""

    BYTES = "more bytes are needed"
    TURN = "others have their turn"


if TYPE_CHECKING:
    Steps = Generator[Pause, None, T]


class Assembler:
    """Bytes of one connection, until they make a message.

    `dialler`: we are the side that dialled, so what comes is the responder's and has no label
    header. `limit`: most bytes that are taken. After a WireError the connection is of no use.
    """

    def __init__(self, envelope: Envelope, *, dialler: bool, limit: int = STREAM_MAX) -> None:
        self.limit = limit
        self.message: StreamMessage | None = None
        self._envelope = envelope
        self._dialler = dialler
        self._buffer = bytearray()
        self._taken = 0
        self._whole = False
        self._steps = self._assemble()

    def feed(self, data: bytes) -> StreamMessage | None:
        """The message, or None while more is needed; WireError when it is not one of ours."""
        for _ in self.work(data):
            pass
        return self.message

    def work(self, data: bytes) -> Iterator[None]:
        """`feed` in turns of some milliseconds; the outcome is `message`."""
        self._taken += len(data)
        if self._taken > self.limit + FRAME_HEADER + seal.OVERHEAD + 2 + labels.LABEL_MAX:
            raise WireError("too_long")
        self._buffer += data
        while self.message is None:
            try:
                pause = next(self._steps)
            except StopIteration as end:
                self.message = end.value
                return
            if pause is Pause.BYTES:
                return
            yield

    # Layers, outermost first.

    def _assemble(self) -> Steps[StreamMessage]:
        if not self._dialler:
            yield from self._take_label()
        yield from self._hold(1)
        if self._buffer[0] == codec.ENCRYPT:
            self._go_inside((yield from self._unsealed()))
        elif self._envelope.keyring is not None and self._envelope.verify_incoming:
            self._require_complaint()
        if self._buffer[0] == codec.COMPRESS:
            self._go_inside((yield from self._decompressed()))
        return (yield from self._message())

    def _take_label(self) -> Steps[None]:
        yield from self._hold(1)
        if self._buffer[0] == labels.KIND:
            yield from self._hold(2)
            yield from self._hold(2 + self._buffer[1])
        self._buffer = bytearray(labels.strip(bytes(self._buffer), self._envelope.label))

    def _require_complaint(self) -> None:
        """A peer without our key cannot seal what it has to say against us."""
        if not self._dialler or self._buffer[0] != codec.ERR:
            raise WireError("not_sealed")

    def _unsealed(self) -> Steps[bytes]:
        if self._envelope.keyring is None:
            raise WireError("sealed")
        yield from self._hold(FRAME_HEADER)
        head = bytes(self._buffer[:FRAME_HEADER])
        length = int.from_bytes(head[1:], "big")
        if length > self.limit + seal.OVERHEAD:
            raise WireError("too_long")
        yield from self._hold(FRAME_HEADER + length)
        sealed = bytes(self._buffer[FRAME_HEADER : FRAME_HEADER + length])
        return self._envelope.keyring.open(sealed, head + self._envelope.label)

    def _decompressed(self) -> Steps[bytes]:
        values = self._values()
        data = codec.compressed(Record((yield from self._next(values, values.map))))
        decoder = lzw.Decoder(data, self.limit)
        steps = 0
        while not decoder.step():
            steps += 1
            if steps % TURN_STEPS == 0:
                yield Pause.TURN
        return decoder.plain()

    def _go_inside(self, plain: bytes) -> None:
        if not plain:
            raise WireError("empty")
        self._buffer = bytearray(plain)
        self._whole = True

    # The message itself.

    def _message(self) -> Steps[StreamMessage]:
        kind = self._buffer[0]
        if kind not in {codec.PING, codec.ACK, codec.USER, codec.PUSH_PULL, codec.ERR}:
            raise WireError("unknown_type")
        values = self._values()
        record = Record((yield from self._next(values, values.map)))
        if kind == codec.PUSH_PULL:
            return (yield from self._push_pull(values, record))
        if kind == codec.USER:
            size = record.whole("UserMsgLen", self.limit)
            return User((yield from self._next(values, lambda: values.raw(size))))
        if kind == codec.ERR:
            return Err(record.name("Error", ERROR_MAX))
        found = READERS[kind](record)
        assert isinstance(found, Ping | Ack)
        return found

    def _push_pull(self, values: Values, record: Record) -> Steps[PushPull]:
        count = record.whole("Nodes", STATES_MAX)
        size = record.whole("UserStateLen", self.limit)
        join = record.flag("Join")
        states: list[PeerState] = []
        for position in range(1, count + 1):
            states += _state((yield from self._next(values, values.map)))
            if position % TURN_RECORDS == 0:
                yield Pause.TURN
        user_state = yield from self._next(values, lambda: values.raw(size))
        return PushPull(join, tuple(states), user_state, count - len(states))

    # Bytes.

    def _hold(self, size: int) -> Steps[None]:
        """Go on when the buffer holds so many bytes."""
        while len(self._buffer) < size:
            if self._whole:
                raise WireError("truncated")
            yield Pause.BYTES

    def _values(self) -> Values:
        """What follows the type byte; it gets every byte that comes from now on."""
        values = Values(self.limit)
        values.feed(memoryview(self._buffer)[1:])
        self._buffer = bytearray()
        return values

    def _next(self, values: Values, take: Callable[[], T]) -> Steps[T]:
        """What `take` gives, as soon as enough has come."""
        while True:
            try:
                return take()
            except EOFError:
                yield from self._hold(1)
                values.feed(self._buffer)
                self._buffer = bytearray()


def _state(fields: dict[bytes, Any]) -> list[PeerState]:
    """A record that nobody can read spoils no other."""
    try:
        return [read_state(Record(fields))]
    except WireError:
        return []
