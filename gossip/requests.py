"""Questions from one wayout member to another over TCP: one request, one reply.

For what is too large or too rare for gossip. Only members are asked and answered; labels, keys,
admission and the limits of streams hold as for every conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossip.events import Dropped
from gossip.wire import own, stream
from gossip.wire.messages import User, WireError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gossip.events import Plain
    from gossip.local import Local
    from gossip.peer import Address
    from gossip.wire.messages import StreamMessage

    Handler = Callable[[str, Plain], Plain]
    Done = Callable[[Plain], None]

REQUEST_MAX = 1 << 16
"""Bytes of a request; replies may be as long as any message of ours (own.SIZE_MAX)."""


class Requests:
    """Owned by one machine. A reply is a list: `[value]`, or `[]` from who has no answer."""

    def __init__(self, local: Local) -> None:
        self._local = local
        self._handlers: dict[int, Handler] = {}

    def serve(self, kind: int, handler: Handler) -> None:
        """Answer requests of `kind` with what `handler(sender, value)` returns, at once."""
        self._handlers[kind] = handler

    def begin(self, name: str, kind: int, value: Plain, done: Done) -> None:
        """Ask a member; `done` gets its answer, or None when there is none."""
        record = self._local.roster.get(name)
        if record is None or not record.wayout or not record.health.present:
            done(None)
            return

        def replied(message: StreamMessage | None, _now: float) -> None:
            done(_answer(message))

        me = self._local.name.encode("utf-8", "surrogateescape")
        payload = own.pack(own.REQUEST, [me, kind, value])
        timeout = self._local.tuning.stream_timeout
        self._local.dial(record.address, User(payload), timeout, replied)

    def answer(self, payload: bytes, source: Address) -> bytes | None:
        """The bytes that answer a request of a member; None when it is no request."""
        if not own.is_ours(payload) or payload[own.HEADER - 1 : own.HEADER] != _REQUEST:
            return None
        try:
            reply = self._reply(payload)
        except WireError as error:
            reply = error.reason
        if isinstance(reply, str):
            self._local.tell(Dropped(source, reply))
            reply = []
        data = own.pack(own.REPLY, reply)
        if len(data) > own.SIZE_MAX:
            data = own.pack(own.REPLY, [])
        return stream.frame(User(data), self._local.envelope, dialler=False)

    def _reply(self, payload: bytes) -> list[Plain] | str:
        """The reply, or why there is none; WireError when the request makes no sense."""
        if len(payload) > REQUEST_MAX:
            raise WireError("too_long")
        match own.unpack(payload):
            case (_, [bytes(raw), int(kind), value]):
                sender = raw.decode("utf-8", "surrogateescape")
            case _:
                return "bad_value"
        record = self._local.roster.get(sender)
        if record is None or not record.wayout:
            return "not_a_member"
        handler = self._handlers.get(kind)
        return "unknown_kind" if handler is None else [handler(sender, value)]


_REQUEST = bytes([own.REQUEST])


def _answer(message: StreamMessage | None) -> Plain:
    """The value of a reply; None for anything else."""
    if not isinstance(message, User):
        return None
    try:
        found = own.unpack(message.payload)
    except WireError:
        return None
    match found:
        case (own.REPLY, [value]):
            return value
        case _:
            return None
