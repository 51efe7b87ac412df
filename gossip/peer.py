"""Who a peer is and how it fares: the words that every other part of gossip uses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

PROTOCOL_VERSIONS = (1, 5, 2)
"""Memberlist protocol versions that we say: understood from 1 to 5, spoken 2."""


class Health(IntEnum):
    """State of a member; the numbers are those of a push/pull record."""

    ALIVE = 0
    SUSPECT = 1
    DEAD = 2
    LEFT = 3

    @property
    def present(self) -> bool:
        """A suspect is still a member: it keeps what it has until more is known."""
        return self <= Health.SUSPECT


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """Where a peer listens, on UDP and TCP alike; `host` is a canonical IP literal."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


NOWHERE = Address("0.0.0.0", 0)  # noqa: S104 - stands for a peer without an address
"""Of a peer that has gone already, or of one that says none."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What this node says of itself; `versions` are memberlist's six version bytes."""

    name: str
    address: Address
    meta: bytes = b""
    versions: bytes = bytes((*PROTOCOL_VERSIONS, 0, 0, 0))


@dataclass(frozen=True, slots=True)
class Member:
    """A member as this node sees it at one moment; times are loop seconds.

    `wayout` is false for other memberlist programs. `unreachable` is the verdict of the
    watchers (apart from `health`, which keeps Lifeguard's timing). `rtt` is the last measured
    round trip in seconds.
    """

    name: str
    address: Address
    health: Health
    incarnation: int
    meta: bytes
    versions: bytes
    since: float
    rtt: float | None
    wayout: bool
    unreachable: bool
