"""One message on a TCP connection: framing out, and an assembler for what comes in pieces.

Label header (dialling side alone), then an encrypted frame with its length, or the message as it
is; either may be compressed. A plain message has no length: msgpack values are read until the
counts of the header are met. The responder's label stands only in the authenticated data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossip.wire import codec, seal
from gossip.wire import label as labels
from gossip.wire.codec import Record
from gossip.wire.messages import Ack, Err, Ping, PushPull, User, WireError

if TYPE_CHECKING:
    from gossip.wire.messages import StreamMessage
    from gossip.wire.packet import Envelope

FRAME_HEADER = 5
STATES_MAX = 1 << 16
STREAM_MAX = 20 << 20
"""Most bytes of one message, compressed or not (memberlist's own limit on a frame)."""


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


class Assembler:
    """Bytes of one connection, until they make a message.

    `dialler`: we are the side that dialled, so what comes is the responder's and has no label
    header. `limit`: most bytes that are taken.
    """

    def __init__(self, envelope: Envelope, *, dialler: bool, limit: int = STREAM_MAX) -> None:
        self._envelope = envelope
        self._buffer = bytearray()
        self._replies = dialler
        self._wants_label = not dialler
        self.limit = limit

    def feed(self, data: bytes) -> StreamMessage | None:
        """The message, or None while more is needed; WireError when it is not one of ours."""
        self._buffer += data
        if len(self._buffer) > self.limit + FRAME_HEADER + seal.OVERHEAD:
            raise WireError("too_long")
        try:
            return self._read()
        except EOFError:
            return None

    def _read(self) -> StreamMessage:
        if self._wants_label:
            self._take_label()
        data = bytes(self._buffer)
        if not data:
            raise EOFError
        if data[0] == codec.ENCRYPT:
            return self._whole(self._unsealed(data))
        if self._envelope.keyring is not None and self._envelope.verify_incoming:
            self._require_plain_error(data)
        if data[0] == codec.COMPRESS:
            _, _ = codec.unpack_map(data, 1)
            return self._whole(data)
        return _message(data, self.limit)

    def _require_plain_error(self, data: bytes) -> None:
        """A peer without our key cannot seal what it has to say against us."""
        if not self._replies or data[0] != codec.ERR:
            raise WireError("not_sealed")

    def _take_label(self) -> None:
        if not self._buffer:
            raise EOFError
        if self._buffer[0] == labels.KIND:
            size = self._buffer[1] + 2 if len(self._buffer) > 1 else 2
            if len(self._buffer) < size or len(self._buffer) < 2:  # noqa: PLR2004 - type, length
                raise EOFError
        rest = labels.strip(bytes(self._buffer), self._envelope.label)
        self._buffer = bytearray(rest)
        self._wants_label = False

    def _unsealed(self, data: bytes) -> bytes:
        if self._envelope.keyring is None:
            raise WireError("sealed")
        if len(data) < FRAME_HEADER:
            raise EOFError
        length = int.from_bytes(data[1:FRAME_HEADER], "big")
        if length > self.limit:
            raise WireError("too_long")
        if len(data) < FRAME_HEADER + length:
            raise EOFError
        sealed = data[FRAME_HEADER : FRAME_HEADER + length]
        return self._envelope.keyring.open(sealed, data[:FRAME_HEADER] + self._envelope.label)

    def _whole(self, plain: bytes) -> StreamMessage:
        """A message that must be there in full, perhaps compressed once."""
        if plain[:1] == bytes([codec.COMPRESS]):
            plain = codec.decompress(plain, self.limit)
        try:
            return _message(plain, self.limit)
        except EOFError:
            raise WireError("truncated") from None


def _message(data: bytes, limit: int) -> StreamMessage:
    if not data:
        raise WireError("empty")
    kind = data[0]
    if kind not in {codec.PING, codec.ACK, codec.USER, codec.PUSH_PULL, codec.ERR}:
        raise WireError("unknown_type")
    fields, end = codec.unpack_map(data, 1)
    record = Record(fields)
    if kind == codec.PUSH_PULL:
        return _push_pull(data, record, end, limit)
    if kind == codec.USER:
        return User(_exactly(data, end, record.whole("UserMsgLen", limit)))
    if kind == codec.ERR:
        return Err(record.name("Error", 1024))
    found = codec.decode(kind, data)
    assert isinstance(found, Ping | Ack)
    return found


def _push_pull(data: bytes, record: Record, end: int, limit: int) -> PushPull:
    count = record.whole("Nodes", STATES_MAX)
    size = record.whole("UserStateLen", limit)
    join = record.flag("Join")
    states = []
    for fields, position in codec.unpack_maps(data, end, count):
        states.append(codec.read_state(Record(fields)))
        end = position
    return PushPull(join, tuple(states), _exactly(data, end, size))


def _exactly(data: bytes, start: int, size: int) -> bytes:
    if len(data) < start + size:
        raise EOFError
    return data[start : start + size]
