"""Everything the machine tells: a closed union that one listener reads aloud."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gossip.peer import Address, Health, Member

Plain = None | bool | int | float | str | bytes | list["Plain"] | dict[str, "Plain"]
"""What our own messages carry: values that any msgpack reader understands."""


@dataclass(frozen=True, slots=True)
class HealthChanged:
    """A member came, changed state or went; `was` is None for one never seen before."""

    member: Member
    was: Health | None
    informant: str


@dataclass(frozen=True, slots=True)
class MetaChanged:
    """A member published other metadata."""

    member: Member


@dataclass(frozen=True, slots=True)
class Silent:
    """Heartbeats of a watched owner are missing since `since`: time to ask the wire."""

    name: str
    since: float


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Nobody reaches `name`, last heard at `since`: others may take over if the wire agrees."""

    name: str
    since: float


@dataclass(frozen=True, slots=True)
class Reachable:
    """`name`, silent or unreachable a moment ago, was heard again."""

    name: str


@dataclass(frozen=True, slots=True)
class ProcessGone:
    """The host of `name` lives but nothing listens on its gossip port (ICMP port unreachable)."""

    name: str


@dataclass(frozen=True, slots=True)
class Refuted:
    """Somebody held us for suspect, dead or outdated; we said otherwise."""

    incarnation: int
    accuser: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message of ours from a wayout member, outside the protocol: for the application."""

    sender: str
    kind: int
    value: Plain


@dataclass(frozen=True, slots=True)
class StateReceived:
    """The application state that a peer sent along with a push/pull."""

    sender: str
    value: Plain
    join: bool


@dataclass(frozen=True, slots=True)
class ForeignMessage:
    """A user message that is not ours (serf, alertmanager, a user of the library)."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Synced:
    """A push/pull with this peer was completed."""

    address: Address
    join: bool


@dataclass(frozen=True, slots=True)
class SyncFailed:
    """A push/pull with this peer came to nothing."""

    address: Address
    join: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Contact:
    """Outcome of a burst of pings: who answered of those who were asked, and why we asked.

    `since` is when this node last heard anybody before the burst (loop seconds).
    """

    answered: frozenset[str]
    asked: frozenset[str]
    since: float


@dataclass(frozen=True, slots=True)
class NameConflict:
    """Another address claims the name of a living member."""

    name: str
    known: Address
    claimed: Address


@dataclass(frozen=True, slots=True)
class ProbeFailed:
    """A probe of `name` got no answer in time; `kind` is direct, indirect or tcp."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class DatagramsBlocked:
    """`name` answers over TCP but not over UDP: a firewall or a wrong MTU."""

    name: str


@dataclass(frozen=True, slots=True)
class ScoreChanged:
    """Our local health score (Lifeguard): 0 is well, above that we distrust ourselves."""

    score: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """Something from the network was refused; `reason` is one of a closed set."""

    source: Address
    reason: str


Event = (
    HealthChanged
    | MetaChanged
    | Silent
    | Unreachable
    | Reachable
    | ProcessGone
    | Refuted
    | UserMessage
    | StateReceived
    | ForeignMessage
    | Synced
    | SyncFailed
    | Contact
    | NameConflict
    | ProbeFailed
    | DatagramsBlocked
    | ScoreChanged
    | Dropped
)
