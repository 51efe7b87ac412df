"""Messages to bytes and back: a type byte and one msgpack map; only importer of msgpack.

The encoding is the one of go-msgpack's default handle: the old specification with one raw type,
field names as keys in ASCII order. Anything is accepted that go-msgpack accepts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgpack

from gossip.wire import compound, lzw
from gossip.wire.messages import (
    NIL,
    Ack,
    Alive,
    Dead,
    Err,
    IndirectPing,
    Nack,
    Nil,
    Origin,
    PacketMessage,
    PeerState,
    Ping,
    Suspect,
    User,
    WireError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PING, INDIRECT_PING, ACK, SUSPECT, ALIVE, DEAD, PUSH_PULL, COMPOUND, USER, COMPRESS = range(10)
ENCRYPT, NACK, HAS_CRC, ERR = 10, 11, 12, 13
HAS_LABEL = 244
NESTING_MAX = 4
"""Wrappers within wrappers that are followed; real peers use two."""
PARTS_MAX = 1024
"""Messages that one datagram may come to, whatever its wrappers."""
PACKET_MAX = 65536
NAME_MAX = 512
MAP_MAX = 32
ARRAY_MAX = 64
META_MAX = 512

Fields = dict[str, Any]


def body(fields: Mapping[str, object]) -> bytes:
    """One map in the old msgpack flavour, keys in ASCII order."""
    ordered = {key: _nil(fields[key]) for key in sorted(fields)}
    return bytes(msgpack.packb(ordered, use_bin_type=False, unicode_errors="surrogateescape"))


def _nil(value: object) -> object:
    return None if isinstance(value, Nil) else value


def encode(message: PacketMessage | Err) -> bytes:
    """Type byte and body of one message; a push/pull and a user message over TCP: `stream`."""
    match message:
        case Ping(seq, node, origin):
            return b"\x00" + body({"SeqNo": seq, "Node": _raw(node), **_origin(origin)})
        case IndirectPing(seq, target, port, node, nack, origin):
            fields: Fields = {"SeqNo": seq, "Target": target, "Port": port, "Node": _raw(node)}
            return b"\x01" + body(fields | {"Nack": nack} | _origin(origin))
        case Ack(seq, payload):
            return b"\x02" + body({"SeqNo": seq, "Payload": payload})
        case Nack(seq):
            return b"\x0b" + body({"SeqNo": seq})
        case Suspect() | Dead():
            kind = b"\x03" if isinstance(message, Suspect) else b"\x05"
            return kind + body(
                {
                    "Incarnation": message.incarnation,
                    "Node": _raw(message.node),
                    "From": _raw(message.accuser),
                }
            )
        case Alive():
            return b"\x04" + body(_alive(message))
        case User(payload):
            return b"\x08" + payload
        case Err(text):
            return b"\x0d" + body({"Error": _raw(text)})


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
    """All messages of one opened datagram, wrappers unwrapped; WireError if any is not ours."""
    found: list[PacketMessage] = []
    _collect(data, NESTING_MAX, found)
    return tuple(found)


def _collect(data: bytes, depth: int, found: list[PacketMessage]) -> None:
    if not data:
        raise WireError("empty")
    kind = data[0]
    if kind in (COMPOUND, COMPRESS):
        if depth == 0:
            raise WireError("too_deep")
        parts = compound.split(data) if kind == COMPOUND else (decompress(data, PACKET_MAX),)
        for part in parts:
            _collect(part, depth - 1, found)
        return
    if len(found) >= PARTS_MAX:
        raise WireError("too_many_parts")
    found.append(decode(kind, data))


def decode(kind: int, data: bytes) -> PacketMessage:
    """One plain message; `data` with its type byte."""
    if kind == USER:
        return User(data[1:])
    reader = READERS.get(kind)
    if reader is None:
        raise WireError("unknown_type")
    return reader(_record(data))


def _record(data: bytes) -> Record:
    try:
        return Record(unpack_map(data, 1)[0])
    except EOFError:
        raise WireError("truncated") from None


def decompress(data: bytes, limit: int) -> bytes:
    """The plain bytes of a compress message; WireError when they would be more than `limit`."""
    record = _record(data)
    if record.whole("Algo", 255) != 0:
        raise WireError("unknown_compression")
    plain = lzw.decode(record.raw("Buf", limit), limit)
    if not plain:
        raise WireError("empty")
    return plain


def unpack_map(data: bytes, start: int) -> tuple[dict[bytes, Any], int]:
    """One map of `data` from `start` on, and where it ends; EOFError when it is cut off."""
    return next(unpack_maps(data, start, 1))


def unpack_maps(data: bytes, start: int, count: int) -> Iterator[tuple[dict[bytes, Any], int]]:
    """`count` maps back to back, each with where it ends; EOFError when one is cut off."""
    unpacker = msgpack.Unpacker(
        raw=True,
        strict_map_key=False,
        max_buffer_size=max(len(data), 1),
        max_map_len=MAP_MAX,
        max_array_len=ARRAY_MAX,
        max_ext_len=0,
    )
    unpacker.feed(memoryview(data)[start:])
    for _ in range(count):
        try:
            value = unpacker.unpack()
        except msgpack.OutOfData:
            raise EOFError from None
        except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
            raise WireError("not_msgpack") from error
        if not isinstance(value, dict):
            raise WireError("not_a_map")
        yield value, start + unpacker.tell()


class Record:
    """The fields of one map, each taken as what it must be; missing ones are zero."""

    def __init__(self, fields: dict[bytes, Any]) -> None:
        self._fields = fields

    def whole(self, name: str, most: int = 0xFFFFFFFF) -> int:
        """An unsigned number."""
        value = self._fields.get(name.encode(), 0)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            raise WireError("bad_field")
        return value

    def raw(self, name: str, most: int) -> bytes:
        """Bytes; nil and a missing field are `NIL`, which is empty."""
        value = self._fields.get(name.encode())
        if value is None:
            return NIL
        if not isinstance(value, bytes) or len(value) > most:
            raise WireError("bad_field")
        return value

    def name(self, name: str, most: int = NAME_MAX) -> str:
        """Text; what is not UTF-8 survives as surrogates."""
        return self.raw(name, most).decode("utf-8", "surrogateescape")

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._fields.get(name.encode(), False)
        if not isinstance(value, bool):
            raise WireError("bad_field")
        return value

    def addr(self, name: str) -> bytes:
        """An IP in 4 or 16 bytes."""
        value = self.raw(name, 16)
        if len(value) not in {4, 16}:
            raise WireError("bad_address")
        return value

    def origin(self) -> Origin | None:
        """Where an answer goes, when it was said."""
        if not self.raw("SourceAddr", 16) or not self.whole("SourcePort", 0xFFFF):
            return None
        return Origin(self.addr("SourceAddr"), self.whole("SourcePort"), self.name("SourceNode"))


def read_state(record: Record) -> PeerState:
    """One record of a push/pull."""
    return PeerState(
        name=record.name("Name"),
        addr=record.addr("Addr"),
        port=record.whole("Port", 0xFFFF),
        meta=record.raw("Meta", META_MAX),
        incarnation=record.whole("Incarnation"),
        health=record.whole("State", 255),
        versions=record.raw("Vsn", 16),
    )


def _ping(record: Record) -> Ping:
    return Ping(record.whole("SeqNo"), record.name("Node"), record.origin())


def _indirect(record: Record) -> IndirectPing:
    return IndirectPing(
        seq=record.whole("SeqNo"),
        target=record.addr("Target"),
        port=record.whole("Port", 0xFFFF),
        node=record.name("Node"),
        nack=record.flag("Nack"),
        origin=record.origin(),
    )


def _ack(record: Record) -> Ack:
    return Ack(record.whole("SeqNo"), record.raw("Payload", PACKET_MAX))


def _nack(record: Record) -> Nack:
    return Nack(record.whole("SeqNo"))


def _suspect(record: Record) -> Suspect:
    return Suspect(record.whole("Incarnation"), record.name("Node"), record.name("From"))


def _dead(record: Record) -> Dead:
    return Dead(record.whole("Incarnation"), record.name("Node"), record.name("From"))


def _alive_of(record: Record) -> Alive:
    return Alive(
        incarnation=record.whole("Incarnation"),
        node=record.name("Node"),
        addr=record.addr("Addr"),
        port=record.whole("Port", 0xFFFF),
        meta=record.raw("Meta", META_MAX),
        versions=record.raw("Vsn", 16),
    )


READERS: Mapping[int, Callable[[Record], PacketMessage]] = {
    PING: _ping,
    INDIRECT_PING: _indirect,
    ACK: _ack,
    NACK: _nack,
    SUSPECT: _suspect,
    DEAD: _dead,
    ALIVE: _alive_of,
}


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
