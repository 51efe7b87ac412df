"""What the machine wants done: bytes to send, peers to dial, events to publish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gossip.events import Event
    from gossip.peer import Address


@dataclass(frozen=True, slots=True)
class Datagram:
    """One UDP payload, every layer applied."""

    to: Address
    data: bytes


@dataclass(frozen=True, slots=True)
class Dial:
    """Open a TCP connection, write `data`, and hand the one reply (or the failure) back.

    The shell answers with `Machine.replied(token, ...)` in any case, no later than `timeout`
    seconds after the effect.
    """

    token: int
    to: Address
    data: bytes
    timeout: float
    expects_reply: bool = True


@dataclass(frozen=True, slots=True)
class Effects:
    """The shell publishes `events` first (no await in between), then sends and dials."""

    datagrams: tuple[Datagram, ...] = ()
    dials: tuple[Dial, ...] = ()
    events: tuple[Event, ...] = ()

    def __add__(self, other: Effects) -> Effects:
        return Effects(
            self.datagrams + other.datagrams,
            self.dials + other.dials,
            self.events + other.events,
        )


NOTHING = Effects()
