"""Messages of the application: to one member, or to all of them, each passed on once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossip.events import UserMessage
from gossip.local import PACKET_FRAMING
from gossip.rumors import FRAMING
from gossip.wire import codec, own
from gossip.wire.messages import User

if TYPE_CHECKING:
    from gossip.events import Plain
    from gossip.local import Local
    from gossip.spread import Spread

FIRST_KIND = 32
"""Kinds below belong to gossip itself."""
REMEMBERED_MAX = 4096
"""Broadcasts that are known when they come again."""
IDENT_BITS = 48


class TooLongError(ValueError):
    """A message that fits no datagram cannot be broadcast."""


class Bulletin:
    """Owned by one machine."""

    def __init__(self, local: Local, spread: Spread) -> None:
        self._local = local
        self._spread = spread
        self._seen: dict[int, None] = {}

    def broadcast(self, kind: int, value: Plain, about: str | None) -> None:
        """Tell all wayout members; a newer message `about` the same replaces an older one."""
        ident = self._local.rng.getrandbits(IDENT_BITS) or 1
        data = self._encoded(kind, ident, about, value)
        if len(data) > self._room():
            raise TooLongError(f"{len(data)} bytes fit no datagram")
        self._remember(ident)
        self._spread.flood(_subject(self._local.name, kind, about, ident), data)

    def send(self, name: str, kind: int, value: Plain) -> None:
        """Tell one wayout member; over TCP when it fits no datagram."""
        record = self._local.roster.get(name)
        if record is None or not record.wayout:
            return
        data = self._encoded(kind, 0, None, value)
        if len(data) > self._room():
            timeout = self._local.tuning.stream_timeout
            self._local.dial(record.address, User(data[1:]), timeout, None)
        else:
            self._local.send(record.address, record, data)

    def received(self, payload: bytes, kind: int, value: Plain) -> None:
        """A message from a member; ValueError when it makes no sense."""
        match value:
            case [bytes(raw), int(ident), None | str() as about, inner]:
                sender = raw.decode("utf-8", "surrogateescape")
            case _:
                raise ValueError("not a message")
        if sender == self._local.name:
            return
        if ident:
            if ident in self._seen:
                return
            self._remember(ident)
            data = codec.encode(User(payload))
            self._spread.flood(_subject(sender, kind, about, ident), data)
        self._local.tell(UserMessage(sender, kind, inner))

    def _encoded(self, kind: int, ident: int, about: str | None, value: Plain) -> bytes:
        name = self._local.name.encode("utf-8", "surrogateescape")
        return codec.encode(User(own.pack(kind, [name, ident, about, value])))

    def _room(self) -> int:
        local = self._local
        return local.tuning.datagram_bytes - PACKET_FRAMING - FRAMING - local.envelope.overhead

    def _remember(self, ident: int) -> None:
        if len(self._seen) >= REMEMBERED_MAX:
            del self._seen[next(iter(self._seen))]
        self._seen[ident] = None


def _subject(sender: str, kind: int, about: str | None, ident: int) -> tuple[str, int, str | int]:
    return sender, kind, ident if about is None else about
