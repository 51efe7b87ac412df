"""The messages of the memberlist protocol as values; encoding is `codec`'s business.

Field names are ours, the wire's are given in the docstrings where they differ. Addresses stay
raw bytes (4 or 16) here, since peers compare them raw.
Source: hashicorp/memberlist, protocol versions 1 to 5.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Reason = Literal[
    "bad_address",
    "bad_checksum",
    "bad_compression",
    "bad_field",
    "bad_label",
    "bad_padding",
    "decompressed_too_long",
    "empty",
    "no_key_fits",
    "not_a_map",
    "not_msgpack",
    "not_ours",
    "not_sealed",
    "sealed",
    "too_deep",
    "too_long",
    "too_many_items",
    "too_many_parts",
    "truncated",
    "unknown_compression",
    "unknown_type",
    "wrong_label",
]
"""Why bytes are not taken."""


class WireError(Exception):
    """Not a message we take. `reason` becomes a metric label, so its values are a closed list."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


class Nil(bytes):
    """No bytes, said with msgpack's nil and not with an empty string; peers send both."""

    __slots__ = ()


NIL = Nil()


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asks and where the answer goes (SourceAddr, SourcePort, SourceNode)."""

    addr: bytes
    port: int
    node: str


@dataclass(frozen=True, slots=True)
class Ping:
    """Type 0. A receiver with another name than `node` must not answer."""

    seq: int
    node: str
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class IndirectPing:
    """Type 1: please ping `target` for me; `nack` asks for a word when it does not answer."""

    seq: int
    target: bytes
    port: int
    node: str
    nack: bool
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Ack:
    """Type 2."""

    seq: int
    payload: bytes = NIL


@dataclass(frozen=True, slots=True)
class Nack:
    """Type 11: the relay lives, the target did not answer it in time."""

    seq: int


@dataclass(frozen=True, slots=True)
class Suspect:
    """Type 3; `accuser` is From."""

    incarnation: int
    node: str
    accuser: str


@dataclass(frozen=True, slots=True)
class Alive:
    """Type 4; `versions` is Vsn, six bytes."""

    incarnation: int
    node: str
    addr: bytes
    port: int
    meta: bytes
    versions: bytes


@dataclass(frozen=True, slots=True)
class Dead:
    """Type 5; a node that accuses itself leaves."""

    incarnation: int
    node: str
    accuser: str


@dataclass(frozen=True, slots=True)
class User:
    """Type 8: opaque bytes of the application."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class PeerState:
    """One record of a push/pull; `health` is State: 0 alive, 1 suspect, 2 dead, 3 left."""

    name: str
    addr: bytes
    port: int
    meta: bytes
    incarnation: int
    health: int
    versions: bytes


@dataclass(frozen=True, slots=True)
class PushPull:
    """Type 6, streams alone: everything a node knows, and the application's state.

    `unread` counts records that came along and that nobody could read.
    """

    join: bool
    states: tuple[PeerState, ...]
    user_state: bytes = b""
    unread: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Err:
    """Type 13, streams alone: why the responder will not go on."""

    text: str


PacketMessage = Ping | IndirectPing | Ack | Nack | Suspect | Alive | Dead | User
StreamMessage = PushPull | Ping | Ack | User | Err
