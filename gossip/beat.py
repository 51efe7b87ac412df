"""The heartbeat as a value: who beats, in which life, and what it says of the receiver."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from gossip.wire import own

PREFIX = own.MAGIC + bytes([own.HEARTBEAT])
"""How the bytes of every heartbeat begin."""


@dataclass(frozen=True, slots=True)
class Beat:
    """`stop`: the duty of the receiver is over. `hears`: the receiver's own beats arrive."""

    name: str
    incarnation: int
    stop: bool = False
    hears: bool = False

    def packed(self) -> bytes:
        """As a message of ours."""
        raw = self.name.encode("utf-8", "surrogateescape")
        return own.pack(own.HEARTBEAT, [raw, self.incarnation, self.stop, self.hears])


@lru_cache(maxsize=1024)
def read(payload: bytes) -> Beat:
    """What a heartbeat says; ValueError when it is none, WireError when it is not even a message.

    One member's beats are the same bytes for as long as it lives, so most are read once.
    """
    _, value = own.unpack(payload)
    match value:
        case [bytes(raw), int(incarnation), bool(stop), bool(hears)]:
            return Beat(raw.decode("utf-8", "surrogateescape"), incarnation, stop, hears)
        case _:
            raise ValueError("not a heartbeat")
