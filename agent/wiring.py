"""Settings and facts translated into the words of gossip and egress, which are strangers."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from agent.facts import Facts
from agent.release import VERSION
from egress import partition, placement
from egress.election import Rules
from egress.model import Egress, Expression, Failback, Selector
from egress.placement import Placement, Scope
from gossip.peer import PROTOCOL_VERSIONS, Address, Identity
from gossip.tuning import Tuning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent.world import World
    from config.schema.egress import EgressEntry, NodeSelector
    from config.schema.settings import Settings
    from egress.model import IP, Interface, Observed

ZONE_LABEL = "topology.kubernetes.io/zone"
CONTROLS = 3
"""Addresses that are asked along with each question on an interface."""


def identity(settings: Settings, name: str, address: Address) -> Identity:
    """Who this node is on the wire."""
    versions = bytes((*PROTOCOL_VERSIONS, *settings.gossip.delegate_version))
    return Identity(name=name, address=address, versions=versions)


def tuning(settings: Settings) -> Tuning:
    """Timing of gossip."""
    gossip = settings.gossip
    return Tuning(
        probe_interval=gossip.probe_interval,
        probe_timeout=gossip.probe_timeout,
        watch_interval=gossip.watch_interval,
        gossip_interval=gossip.gossip_interval,
        push_pull_interval=gossip.push_pull_interval,
        rejoin_interval=gossip.rejoin_interval,
        indirect_checks=gossip.indirect_checks,
        suspicion_mult=gossip.suspicion_mult,
        suspicion_max_mult=gossip.suspicion_max_mult,
        awareness_max=gossip.awareness_max,
        retransmit_mult=gossip.retransmit_mult,
        fanout=gossip.fanout,
        size_floor=gossip.expected_nodes or 0,
        allowed=gossip.allowed_cidrs,
    )


def literal_seeds(settings: Settings) -> tuple[Address, ...]:
    """Seeds that are addresses and not names; this node may be among them."""
    found = []
    for seed in settings.gossip.seeds:
        try:
            host = str(ip_address(seed.host))
        except ValueError:
            continue
        found.append(Address(host, seed.port or settings.gossip.bind_port))
    return tuple(dict.fromkeys(found))


def egresses(settings: Settings) -> tuple[Egress, ...]:
    """The egresses of the file, by name."""
    section = settings.egress
    return tuple(
        _egress(name, entry, section.failback.value)
        for name, entry in sorted(section.egresses.items())
    )


def _egress(name: str, entry: EgressEntry, failback: str) -> Egress:
    return Egress(
        name=name,
        ips=entry.ips,
        selector=_selector(entry.node_selector),
        priority=entry.priority,
        failback=Failback(entry.failback.value if entry.failback is not None else failback),
        pin=entry.pin,
        interface=entry.interface,
        failover=entry.failover.value == "auto",
    )


def _selector(node: NodeSelector) -> Selector:
    return Selector(
        labels=tuple(sorted(node.match_labels.items())),
        expressions=tuple(
            Expression(each.key, each.operator.value, each.values)
            for each in node.match_expressions
        ),
    )


def rules(settings: Settings) -> Rules:
    """What the election goes by besides its objects."""
    section = settings.egress
    return Rules(
        seed=section.hash_seed,
        load_factor=section.load_factor,
        failback_delay=section.failback_delay,
    )


def policy(settings: Settings) -> partition.Policy:
    """What to do on the small side of a partition."""
    return partition.Policy(settings.egress.partition.value)


def scope(settings: Settings) -> Scope:
    """Which interfaces may carry egress IPs."""
    section = settings.interfaces
    default = section.default if isinstance(section.default, str) else None
    return Scope(allow=section.allow, deny=section.deny, default=default)


def places(wanted: Sequence[Egress], observed: Observed, allowed: Scope) -> dict[IP, Placement]:
    """Where each address belongs on this host, or why nowhere."""
    return {
        ip: placement.place(ip, egress.interface, observed, allowed)
        for egress in wanted
        for ip in egress.ips
    }


def controls(
    world: World, gateways: Mapping[str, Sequence[IP]], peers: Sequence[IP]
) -> dict[str, tuple[IP, ...]]:
    """By interface, addresses that ought to answer: its gateways, then members on its subnets."""
    found: dict[str, tuple[IP, ...]] = {}
    for link in placement.usable(world.observed, scope(world.settings)):
        near = [ip for ip in peers if _reaches(link, ip)]
        found[link.name] = tuple([*gateways.get(link.name, ()), *near][:CONTROLS])
    return found


def _reaches(link: Interface, ip: IP) -> bool:
    return any(ip.version == net.version and ip in net for net in link.networks)


def own_facts(world: World, reasons: Sequence[str]) -> Facts:
    """What this node says of itself."""
    node = world.settings.node
    links = placement.usable(world.observed, scope(world.settings))
    labels = dict(node.labels)
    if node.zone is not None:
        labels.setdefault(ZONE_LABEL, node.zone)
    return Facts(
        version=VERSION,
        cluster=node.cluster,
        generation=world.generation,
        cluster_digest=world.cluster_digest,
        node_digest=world.node_digest,
        config=world.config_state,
        reasons=tuple(reasons),
        weight=node.weight,
        capacity=node.max_addresses or None,
        labels=tuple(sorted(labels.items())),
        macs=frozenset(link.mac for link in links),
        # Where there is no carrier no subnet is reached, whatever the kernel still lists.
        networks=tuple(net for link in links if link.carrier for net in link.networks),
        addresses=tuple(ip for link in links for ip in link.addresses),
        lease=world.settings.egress.lease,
        restarting=node.restart_timeout if world.stopping and world.keep else 0.0,
        lacks=_lacking(world),
    )


def _lacking(world: World) -> frozenset[str]:
    """Interfaces that are asked for here and cannot be used; nothing before the first look."""
    if not world.observed.interfaces:
        return frozenset()
    found = wishes(world.settings)
    return placement.lacking(found, world.observed, scope(world.settings))


def wishes(settings: Settings) -> frozenset[str]:
    """Interfaces that egresses name, and the empty name for those that name none."""
    return frozenset({"", *(each.interface or "" for each in settings.egress.egresses.values())})


def _grounded(world: World) -> str | None:
    """Why no interface of this node can carry anything now."""
    named = wishes(world.settings)
    if len(_lacking(world)) < len(named):
        return None
    there = placement.usable(world.observed, scope(world.settings))
    found = [*there, *(link for link in world.observed.interfaces if link.name in named)]
    return "no_carrier" if found else "no_interface"


def own_reasons(world: World, *, fenced: bool, damped: bool, unready: Sequence[str]) -> list[str]:
    """Why this node may own nothing now; empty when it may."""
    node = world.settings.node
    grounded = _grounded(world)
    claims = [
        (not node.eligible or node.weight == 0, "not_eligible"),
        (node.maintenance, "maintenance"),
        (world.draining, "draining"),
        (world.stopping and not world.keep, "stopping"),
        (fenced, "isolated"),
        (damped, "damped"),
        (bool(unready), "starting"),
        (grounded is not None, grounded or ""),
    ]
    return [*(reason for holds, reason in claims if holds), *world.fitness.reasons]
