"""What the daemon knows, as one immutable picture, and what follows from it.

`fold` replaces parts of the picture; nothing here acts. Times are loop seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, assert_never

from agent import facts
from agent.inputs import (
    ClaimsHeard,
    ContactReported,
    DrainWished,
    KernelChanged,
    LeaseLapsed,
    MembersChanged,
    MembersSeen,
    Nudged,
    RivalsHeard,
    SettingsChanged,
    StopWished,
    WireAnswered,
)
from egress.model import Candidate, Observed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.facts import Facts
    from agent.inputs import Input
    from config.schema import Settings
    from gossip.peer import Member


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One moment. `healthy` tells since when each member has been present and eligible."""

    me: str
    settings: Settings
    started: float
    generation: int = 1
    cluster_digest: str = ""
    node_digest: str = ""
    members: Mapping[str, Member] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    lost: Mapping[str, float] = field(default_factory=dict)
    synced: bool = False
    healthy: Mapping[str, float] = field(default_factory=dict)
    contact: ContactReported | None = None
    observed: Observed = field(default_factory=Observed)
    draining: bool = False
    drain_until: float | None = None
    stopping: bool = False
    keep: bool = False


def fold(world: World, item: Input, now: float) -> World:
    """The picture after `item`; what belongs to the parts (claims, replies) leaves it as it is."""
    match item:
        case MembersSeen():
            return _members(world, item, now)
        case ContactReported():
            return replace(world, contact=item)
        case SettingsChanged():
            return replace(
                world,
                settings=item.settings,
                generation=item.generation,
                cluster_digest=item.cluster_digest,
                node_digest=item.node_digest,
            )
        case DrainWished():
            return replace(world, draining=item.draining, drain_until=item.until)
        case StopWished():
            return replace(world, stopping=True, keep=item.keep)
        case MembersChanged() | ClaimsHeard() | KernelChanged() | WireAnswered() | LeaseLapsed():
            return world
        case RivalsHeard() | Nudged():
            return world
        case _:
            assert_never(item)


def _members(world: World, seen: MembersSeen, now: float) -> World:
    healthy = {
        name: world.healthy.get(name, now) for name, member in seen.members.items() if _well(member)
    }
    return replace(
        world,
        members=seen.members,
        silent=seen.silent,
        lost=seen.lost,
        synced=world.synced or seen.synced,
        healthy=healthy,
    )


def _well(member: Member) -> bool:
    known = facts.read(member.meta)
    return known is not None and member.health.present and not known.reasons


def expire(world: World, now: float) -> World:
    """Wishes that have run their time are over."""
    if world.drain_until is not None and now >= world.drain_until:
        return replace(world, draining=False, drain_until=None)
    return world


def candidates(world: World, own: Facts) -> dict[str, Candidate]:
    """Every wayout member as ownership sees it, this node included (from its own facts)."""
    found = {
        name: _candidate(world, member, known)
        for name, member in world.members.items()
        if name != world.me and (known := facts.read(member.meta)) is not None
    }
    since = world.started if not own.reasons else float("inf")
    found[world.me] = _described(Candidate(name=world.me, healthy_since=since), own)
    return found


def _candidate(world: World, member: Member, known: Facts) -> Candidate:
    bare = Candidate(
        name=member.name,
        present=member.health.present,
        left=member.health.name == "LEFT",
        unreachable=member.unreachable,
        healthy_since=world.healthy.get(member.name, float("inf")),
    )
    return _described(bare, known)


def _described(bare: Candidate, known: Facts) -> Candidate:
    return replace(
        bare,
        reasons=known.reasons,
        weight=known.weight,
        capacity=known.capacity,
        labels=known.labels,
        macs=known.macs,
        networks=known.networks,
        lease=known.lease,
        restarting=known.restarting > 0.0,
    )
