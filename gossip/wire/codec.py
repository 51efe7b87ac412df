"""Messages to bytes and back: a type byte and one msgpack map; with `own` the door to msgpack.

The encoding is the one of go-msgpack's default handle: the old specification with one raw type,
field names as keys in ASCII order. What is read may be in the new specification, too, with fields
in any order, missing, or unknown.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgpack

from gossip.wire import compound, lzw
from gossip.wire.messages import (
    Ack,
    Alive,
    Dead,
    Err,
    IndirectPing,
    Nack,
    Nil,
    Ping,
    Suspect,
    User,
    WireError,
)
from gossip.wire.record import READERS, Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gossip.wire.messages import Origin, PacketMessage, PeerState

PING, INDIRECT_PING, ACK, SUSPECT, ALIVE, DEAD, PUSH_PULL, COMPOUND, USER, COMPRESS = range(10)
ENCRYPT, NACK, HAS_CRC, ERR = 10, 11, 12, 13
HAS_LABEL = 244
NESTING_MAX = 4
"""Wrappers within wrappers that are followed; real peers use two."""
PARTS_MAX = 1024
"""Messages and wrappers that one datagram may come to."""
PACKET_MAX = 65536
"""Bytes of a datagram, and all that may come out of it by decompression."""
OFTEN_BYTES = 256
OFTEN = 512
"""Packets of at most so many bytes whose messages are kept, and how many."""
READ_SIZE = 65536
READING: Mapping[str, Any] = {
    "raw": True,
    "strict_map_key": False,
    "max_map_len": 32,
    "max_array_len": 64,
    "max_ext_len": 0,
}
"""How msgpack is read; no message of memberlist comes near these counts."""

Mapped = Ping | IndirectPing | Ack | Nack | Suspect | Alive | Dead | Err
"""Messages whose body is a map."""
KINDS: Mapping[type, int] = {
    Ping: PING,
    IndirectPing: INDIRECT_PING,
    Ack: ACK,
    Suspect: SUSPECT,
    Alive: ALIVE,
    Dead: DEAD,
    Nack: NACK,
    Err: ERR,
}

Fields = dict[str, Any]


def body(fields: Mapping[str, object]) -> bytes:
    """One map in the old msgpack flavour, keys in ASCII order."""
    ordered = {key: _nil(fields[key]) for key in sorted(fields)}
    return bytes(msgpack.packb(ordered, use_bin_type=False, unicode_errors="surrogateescape"))


def _nil(value: object) -> object:
    return None if isinstance(value, Nil) else value


def encode(message: PacketMessage | Err) -> bytes:
    """Type byte and body of one message; a push/pull and a user message over TCP: `stream`."""
    if isinstance(message, User):
        return bytes([USER]) + message.payload
    return encode_header(KINDS[type(message)], _fields(message))


def _fields(message: Mapped) -> Fields:
    match message:
        case Ping(seq, node, origin):
            return {"SeqNo": seq, "Node": _raw(node), **_origin(origin)}
        case IndirectPing(seq, target, port, node, nack, origin):
            fields: Fields = {"SeqNo": seq, "Target": target, "Port": port, "Node": _raw(node)}
            return fields | {"Nack": nack} | _origin(origin)
        case Ack(seq, payload):
            return {"SeqNo": seq, "Payload": payload}
        case Nack(seq):
            return {"SeqNo": seq}
        case Suspect(incarnation, node, accuser) | Dead(incarnation, node, accuser):
            return {"Incarnation": incarnation, "Node": _raw(node), "From": _raw(accuser)}
        case Alive():
            return _alive(message)
        case Err(text):
            return {"Error": _raw(text)}


def encode_header(kind: int, fields: Mapping[str, object]) -> bytes:
    """A type byte and one map, for stream messages that go on after it."""
    return bytes([kind]) + body(fields)


def encode_state(state: PeerState) -> bytes:
    """One record of a push/pull."""
    return body(
        {
            "Name": _raw(state.name),
            "Addr": state.addr,
            "Port": state.port,
            "Meta": state.meta,
            "Incarnation": state.incarnation,
            "State": state.health,
            "Vsn": state.versions,
        }
    )


def decode_packet(data: bytes) -> tuple[PacketMessage, ...]:
    """All messages of one opened datagram, wrappers unwrapped.

    As in Go, a part that nobody can read spoils nothing but itself. WireError when no message is
    left, or when the whole is more work than a datagram is worth.
    """
    if len(data) <= OFTEN_BYTES:
        return _often(data)
    return _decode_packet(data)


@lru_cache(maxsize=OFTEN)
def _often(data: bytes) -> tuple[PacketMessage, ...]:
    """Small packets are mostly heartbeats, which are the same bytes ten times a second."""
    return _decode_packet(data)


def _decode_packet(data: bytes) -> tuple[PacketMessage, ...]:
    if data and data[0] not in (COMPOUND, COMPRESS):
        return (decode(data[0], data),)
    unwrapping = _Unwrapping()
    unwrapping.take(data, NESTING_MAX)
    return tuple(unwrapping.found)


class _TooMuchError(WireError):
    """No part of this datagram is worth going on."""


class _Unwrapping:
    """What was found in one datagram, and how much it may still cost."""

    def __init__(self) -> None:
        self.found: list[PacketMessage] = []
        self._parts = PARTS_MAX
        self._room = PACKET_MAX

    def take(self, data: bytes, depth: int) -> None:
        """Find the messages in `data`; WireError when there are none."""
        self._parts -= 1
        if self._parts < 0:
            raise _TooMuchError("too_many_parts")
        if not data:
            raise WireError("empty")
        kind = data[0]
        if kind not in (COMPOUND, COMPRESS):
            self.found.append(decode(kind, data))
        elif depth == 0:
            raise _TooMuchError("too_deep")
        elif kind == COMPOUND:
            self._take_parts(compound.split(data), depth - 1)
        else:
            self.take(self._decompressed(data), depth - 1)

    def _take_parts(self, parts: list[bytes], depth: int) -> None:
        before = len(self.found)
        refused = WireError("empty")
        for part in parts:
            try:
                self.take(part, depth)
            except _TooMuchError:
                raise
            except WireError as error:
                refused = error
        if len(self.found) == before:
            raise refused

    def _decompressed(self, data: bytes) -> bytes:
        try:
            plain = decompress(data, self._room)
        except WireError as error:
            if error.reason == "decompressed_too_long":
                raise _TooMuchError(error.reason) from None
            raise
        self._room -= len(plain)
        return plain


def decode(kind: int, data: bytes) -> PacketMessage:
    """One plain message; `data` with its type byte."""
    if kind == USER:
        return User(data[1:])
    reader = READERS.get(kind)
    if reader is None:
        raise WireError("unknown_type")
    return reader(_record(data))


def _record(data: bytes) -> Record:
    """The map behind the type byte; bytes after it are ignored."""
    try:
        value = msgpack.unpackb(memoryview(data)[1:], **READING)
    except msgpack.ExtraData as more:
        value = more.unpacked
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        value = _reread(data)
    if not isinstance(value, dict):
        raise WireError("not_a_map")
    return Record(value)


def _reread(data: bytes) -> dict[bytes, Any]:
    """Find out what is wrong with the map behind the type byte."""
    values = Values(len(data))
    values.feed(memoryview(data)[1:])
    try:
        return values.map()
    except EOFError:
        raise WireError("truncated") from None


def decompress(data: bytes, limit: int) -> bytes:
    """The plain bytes of a compress message; WireError when they would be more than `limit`."""
    plain = lzw.decode(compressed(_record(data)), limit)
    if not plain:
        raise WireError("empty")
    return plain


def compressed(record: Record) -> bytes:
    """What a compress message holds; WireError unless it is LZW, the one way there is."""
    if record.whole("Algo", 255) != 0:
        raise WireError("unknown_compression")
    return record.raw("Buf")


class Values:
    """Maps and raw bytes one after the other, fed in pieces; at most `limit` bytes of each."""

    def __init__(self, limit: int) -> None:
        self._unpacker = msgpack.Unpacker(
            read_size=min(limit, READ_SIZE), max_buffer_size=limit, **READING
        )
        self._raw = bytearray()

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Bytes that came; WireError when too many wait."""
        try:
            self._unpacker.feed(data)
        except msgpack.BufferFull:
            raise WireError("too_long") from None

    def map(self) -> dict[bytes, Any]:
        """The next value, which must be a map; EOFError when more is needed (then feed, retry)."""
        try:
            value = self._unpacker.unpack()
        except msgpack.OutOfData:
            raise EOFError from None
        except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
            raise WireError("not_msgpack") from error
        if not isinstance(value, dict):
            raise WireError("not_a_map")
        return value

    def raw(self, size: int) -> bytes:
        """The next `size` bytes as they are; EOFError as with `map`."""
        self._raw += self._unpacker.read_bytes(size - len(self._raw))
        if len(self._raw) < size:
            raise EOFError
        taken, self._raw = bytes(self._raw), bytearray()
        return taken


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _origin(origin: Origin | None) -> Fields:
    if origin is None:
        return {}
    fields: Fields = {"SourceAddr": origin.addr, "SourcePort": origin.port}
    return fields | ({"SourceNode": _raw(origin.node)} if origin.node else {})


def _alive(message: Alive) -> Fields:
    return {
        "Incarnation": message.incarnation,
        "Node": _raw(message.node),
        "Addr": message.addr,
        "Port": message.port,
        "Meta": message.meta,
        "Vsn": message.versions,
    }
