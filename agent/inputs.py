"""Everything the controller can be told: facts that say "look again", never orders.

An input that is still unread is replaced by a newer one of its kind; those that would lose
something by that say how two of them add up (`after`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.desk import Document
    from agent.health.board import Fitness
    from agent.notices import Notice
    from config.schema.settings import Settings
    from egress.model import IP, Binding, Claim, Reply
    from gossip.peer import Member


MOVES_MAX = 4096
"""Unread news that is kept."""


@dataclass(frozen=True, slots=True)
class MembersSeen:
    """The whole membership as gossip sees it now.

    `silent`: watched members whose heartbeats are missing. `lost`: members that went missing
    lately, with the loop time at which each was last heard. `synced`: a push/pull succeeded.
    """

    members: Mapping[str, Member]
    silent: frozenset[str]
    lost: Mapping[str, float]
    synced: bool


@dataclass(frozen=True, slots=True)
class MembersChanged:
    """Membership is not what it was: ask for `MembersSeen`."""


@dataclass(frozen=True, slots=True)
class ClaimsHeard:
    """Claims of other members, and ours as others repeat them."""

    claims: tuple[Claim, ...]

    def after(self, older: Self) -> Self:
        """The newest word of each owner on each address; which one wins is decided later."""
        known = {(claim.ip, claim.owner): claim for claim in (*older.claims, *self.claims)}
        return type(self)(tuple(known.values()))


@dataclass(frozen=True, slots=True)
class NoticesHeard:
    """What members say is wrong with addresses; the newest word of each member counts."""

    notices: Mapping[str, tuple[Notice, ...]]

    def after(self, older: Self) -> Self:
        """Each member speaks for itself."""
        return type(self)({**older.notices, **self.notices})


@dataclass(frozen=True, slots=True)
class MovesHeard:
    """Moves that ended on other members, as entries of history."""

    entries: tuple[Document, ...]

    def after(self, older: Self) -> Self:
        """All of them, up to a bound: the oldest go first."""
        return type(self)((*older.entries, *self.entries)[-MOVES_MAX:])


@dataclass(frozen=True, slots=True)
class ContactReported:
    """Who answered a burst of pings, of those asked; silence began at `since` (loop seconds)."""

    answered: frozenset[str]
    asked: frozenset[str]
    since: float


@dataclass(frozen=True, slots=True)
class GatewayAnswered:
    """Whether a gateway answered on the wire; None when there is none to ask."""

    answers: bool | None


@dataclass(frozen=True, slots=True)
class KernelChanged:
    """Links or addresses may have changed by another hand: read them again."""


@dataclass(frozen=True, slots=True)
class WireAnswered:
    """Replies of the LAN to questions about addresses."""

    replies: tuple[Reply, ...]

    def after(self, older: Self) -> Self:
        """Each reply is about a question of its own."""
        return type(self)((*older.replies, *self.replies))


@dataclass(frozen=True, slots=True)
class LeaseLapsed:
    """Leases that ran out, or may have, before they could be renewed."""

    bindings: tuple[Binding, ...]

    def after(self, older: Self) -> Self:
        """Every lapsed binding counts."""
        return type(self)((*older.bindings, *self.bindings))


@dataclass(frozen=True, slots=True)
class RivalsHeard:
    """Frames on the LAN in which another MAC speaks for addresses that we hold."""

    macs: Mapping[IP, str]

    def after(self, older: Self) -> Self:
        """The newest MAC for each address is enough."""
        return type(self)({**older.macs, **self.macs})


@dataclass(frozen=True, slots=True)
class HealthSeen:
    """What the health checks of this node come to."""

    fitness: Fitness


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """A configuration was committed or refused: what runs, its digests, and what is wrong."""

    settings: Settings
    generation: int
    cluster_digest: str
    node_digest: str
    state: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DrainWished:
    """The operator wants this node empty until `until` (loop seconds; None: until told)."""

    draining: bool
    until: float | None = None


@dataclass(frozen=True, slots=True)
class RestartPrepared:
    """A stop that is wished until then (loop seconds) is a restart: it keeps the addresses."""

    until: float


@dataclass(frozen=True, slots=True)
class StopWished:
    """The daemon is about to end; `keep` leaves the addresses for its successor."""

    keep: bool = False


@dataclass(frozen=True, slots=True)
class Nudged:
    """Nothing new is known, but somebody waits for a fresh look."""

    why: str = field(default="")


Input = (
    MembersChanged
    | MembersSeen
    | ClaimsHeard
    | NoticesHeard
    | MovesHeard
    | ContactReported
    | GatewayAnswered
    | KernelChanged
    | WireAnswered
    | LeaseLapsed
    | RivalsHeard
    | HealthSeen
    | SettingsChanged
    | DrainWished
    | RestartPrepared
    | StopWished
    | Nudged
)
