"""What the daemon knows, as one immutable picture, and what follows from it.

`fold` replaces parts of the picture; nothing here acts. Times are loop seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, assert_never

from agent import facts
from agent.health.board import Fitness
from agent.inputs import (
    ClaimsHeard,
    ContactReported,
    DrainWished,
    GatewayAnswered,
    HealthSeen,
    KernelChanged,
    LeaseLapsed,
    MembersChanged,
    MembersSeen,
    MovesHeard,
    NoticesHeard,
    Nudged,
    RestartPrepared,
    RivalsHeard,
    SettingsChanged,
    StopWished,
    WireAnswered,
)
from egress.model import Candidate, Observed
from gossip.peer import Health

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.facts import Facts
    from agent.inputs import Input
    from agent.notices import Notice
    from config.schema.settings import Settings
    from egress.model import IP
    from gossip.peer import Member


REMEMBERED_FOR = 86_400.0
"""Seconds for which a member that never came is expected: as long as gossip keeps the dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One moment. `healthy` tells since when each member has been present and eligible.

    `seeds`: the literal seeds as `host:port`, this node excluded. `notices`: what other members
    say is wrong with addresses. `remembered`: members that were known before this process began.
    `restart_until`: a stop that is wished until then is a restart.
    """

    me: str
    settings: Settings
    started: float
    seeds: tuple[str, ...] = ()
    generation: int = 1
    cluster_digest: str = ""
    node_digest: str = ""
    config_state: frozenset[str] = frozenset()
    members: Mapping[str, Member] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    lost: Mapping[str, float] = field(default_factory=dict)
    synced: bool = False
    healthy: Mapping[str, float] = field(default_factory=dict)
    contact: ContactReported | None = None
    notices: Mapping[str, tuple[Notice, ...]] = field(default_factory=dict)
    remembered: frozenset[str] = frozenset()
    observed: Observed = field(default_factory=Observed)
    fitness: Fitness = field(default_factory=Fitness)
    draining: bool = False
    drain_until: float | None = None
    restart_until: float = float("-inf")
    stopping: bool = False
    keep: bool = False
    started_up: bool = False

    def with_settings(self, settings: Settings) -> World:
        """The same moment under other settings."""
        return replace(self, settings=settings)


def fold(world: World, item: Input, now: float) -> World:
    """The picture after `item`; what belongs to the parts (claims, replies) leaves it as it is."""
    match item:
        case MembersSeen():
            return _members(world, item, now)
        case ContactReported() | HealthSeen():
            return _noted(world, item)
        case NoticesHeard(heard):
            known = {**world.notices, **heard}
            return replace(world, notices={name: said for name, said in known.items() if said})
        case SettingsChanged():
            return replace(
                world,
                settings=item.settings,
                generation=item.generation,
                cluster_digest=item.cluster_digest,
                node_digest=item.node_digest,
                config_state=item.state,
            )
        case DrainWished() | RestartPrepared() | StopWished():
            return _wished(world, item)
        case MembersChanged() | ClaimsHeard() | KernelChanged() | WireAnswered() | LeaseLapsed():
            return world
        case RivalsHeard() | GatewayAnswered() | MovesHeard() | Nudged():
            return world
        case _:
            assert_never(item)


def _noted(world: World, item: ContactReported | HealthSeen) -> World:
    if isinstance(item, HealthSeen):
        return replace(world, fitness=item.fitness)
    return replace(world, contact=item)


def _wished(world: World, wish: DrainWished | RestartPrepared | StopWished) -> World:
    match wish:
        case DrainWished(draining, until):
            return replace(world, draining=draining, drain_until=until)
        case RestartPrepared(until):
            return replace(world, restart_until=until)
        case StopWished(keep):
            return replace(world, stopping=True, keep=keep)
        case _:
            assert_never(wish)


def _members(world: World, seen: MembersSeen, now: float) -> World:
    healthy = {
        name: world.healthy.get(name, now) for name, member in seen.members.items() if _well(member)
    }
    return replace(
        world,
        members=seen.members,
        silent=seen.silent,
        lost=seen.lost,
        remembered=expected_names(world, seen, now),
        synced=world.synced or seen.synced,
        healthy=healthy,
    )


def _well(member: Member) -> bool:
    known = facts.read(member.meta)
    return known is not None and member.health.present and not known.reasons


def expire(world: World, now: float) -> World:
    """Wishes that have run their time are over, and so is a start, once and for all."""
    if not world.started_up and not unready(world, now):
        world = replace(world, started_up=True)
    if world.drain_until is not None and now >= world.drain_until:
        return replace(world, draining=False, drain_until=None)
    return world


def expected_names(world: World, seen: MembersSeen, now: float) -> frozenset[str]:
    """Members there ought to be: those seen that have not left, and those remembered.

    Kept on disk, for nodes that restart together on the small side of a partition would otherwise
    forget the larger one and take what it carries. Whom gossip has forgotten is forgotten here
    too; who never came in this life counts for as long as gossip would have kept it.
    """
    left = {name for name, each in seen.members.items() if each.health is Health.LEFT}
    waited = now - world.started < REMEMBERED_FOR
    missing = world.remembered - world.members.keys() if waited else frozenset()
    return frozenset((missing | seen.members.keys()) - left - {world.me})


def unready(world: World, now: float) -> tuple[str, ...]:
    """Why nothing may be newly bound yet; empty once it may.

    A start waits for every literal seed to be there, so that nodes that start together share
    the addresses at once instead of moving them later, and for the first round of every health
    check; after `gossip.join_timeout` it acts with whoever and whatever is there. A start that
    is over does not begin again when a seed dies.
    """
    if world.started_up or now - world.started >= world.settings.gossip.join_timeout:
        return ()
    if missing := missing_seeds(world):
        return (f"waiting for {missing[0]}",)
    if world.fitness.awaited:
        return (f"waiting for check {world.fitness.awaited[0]}",)
    return () if world.synced or not world.settings.gossip.seeds else ("joining",)


def missing_seeds(world: World) -> list[str]:
    """Literal seeds that are no living members."""
    there = {str(each.address) for each in world.members.values() if each.health.present}
    return [name for name in world.seeds if name not in there]


def peer_addresses(world: World) -> tuple[IP, ...]:
    """Gossip addresses of living members, ours excluded, in the order of their names."""
    return tuple(
        ip_address(member.address.host)
        for name, member in sorted(world.members.items())
        if name != world.me and member.health.present and not member.unreachable
    )


def candidates(world: World, own: Facts, since: float | None = None) -> dict[str, Candidate]:
    """Every wayout member as ownership sees it, this node included (from its own facts).

    `since`: when this node became well, its start if not given.
    """
    found = {
        name: _candidate(world, member, known)
        for name, member in world.members.items()
        if name != world.me
        and (known := facts.read(member.meta)) is not None
        and known.cluster == own.cluster
    }
    began = world.started if since is None else since
    well = began if not own.reasons else float("inf")
    found[world.me] = _described(Candidate(name=world.me, healthy_since=well), own)
    return found


def _candidate(world: World, member: Member, known: Facts) -> Candidate:
    bare = Candidate(
        name=member.name,
        present=member.health.present,
        left=member.health is Health.LEFT,
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
        addresses=known.addresses,
        restarting=known.restarting > 0.0,
        lacks=known.lacks,
    )
