"""Fields of one msgpack map, read as what they must be, and the messages made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gossip.wire.messages import (
    NIL,
    Ack,
    Alive,
    Dead,
    IndirectPing,
    Nack,
    Origin,
    PeerState,
    Ping,
    Suspect,
    WireError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gossip.wire.messages import PacketMessage

NAME_MAX = 512
META_MAX = 512
PAYLOAD_MAX = 65536


class Record:
    """The fields of one map, each taken as what it must be; missing ones and nil are zero."""

    def __init__(self, fields: dict[bytes, Any]) -> None:
        self._fields = fields

    def whole(self, name: str, most: int = 0xFFFFFFFF) -> int:
        """An unsigned number."""
        value = self._fields.get(name.encode())
        if value is None:
            return 0
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            raise WireError("bad_field")
        return value

    def raw(self, name: str, most: int = 0xFFFFFFFF) -> bytes:
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
        value = self._fields.get(name.encode())
        if value is not None and not isinstance(value, bool):
            raise WireError("bad_field")
        return value is True

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
    return Ack(record.whole("SeqNo"), record.raw("Payload", PAYLOAD_MAX))


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
    0: _ping,
    1: _indirect,
    2: _ack,
    11: _nack,
    3: _suspect,
    5: _dead,
    4: _alive_of,
}
"""By type byte; what is not a map stands in `codec` and `stream`."""
