"""The protocol's constants, and what follows from them and from the size of the cluster.

Formulas and the meaning of the constants: hashicorp/memberlist (config.go, util.go). Ours are
more hurried where egress addresses need it, and there are a few that memberlist does not have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

NEVER = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """How one node probes, gossips and heals; seconds unless said otherwise.

    As in memberlist: `probe_interval` between two probes, `probe_timeout` for the direct ack,
    `indirect_checks` relays asked after it, `gossip_interval` between two rounds of gossip to
    `fanout` members, `retransmit_mult`, `suspicion_mult`, `suspicion_max_mult`, `awareness_max`
    (the health score stays below it), `push_pull_interval` before scaling, `stream_timeout` for
    one TCP exchange, `datagram_bytes` that piggybacking fills up, `dead_retention` for which the
    dead are gossiped to and kept as records, `reclaim_after` which a dead name may come back at
    another address.

    Ours: `nack_share` of the probe timeout after which a relay says that its target is mute;
    `rejoin_interval` between dials to seeds that are not alive; `knock_interval` between pings
    to the dead, `redial_interval` between TCP dials to them at the most; `forget_after` which
    the dead are forgotten; `watch_interval` between heartbeats to `watchers` members;
    `size_memory` over which the largest size of the cluster counts for timing, and `size_floor`
    below which it never does; `allowed`
    networks of members (empty: all). `additions` turns on what no number governs: prompt gossip,
    accusations answered to the accused, syncs with strangers, doubt about ourselves.
    """

    probe_interval: float = 0.5
    probe_timeout: float = 0.2
    indirect_checks: int = 3
    gossip_interval: float = 0.2
    fanout: int = 3
    retransmit_mult: int = 4
    suspicion_mult: int = 4
    suspicion_max_mult: int = 6
    awareness_max: int = 8
    push_pull_interval: float = 30.0
    stream_timeout: float = 5.0
    datagram_bytes: int = 1400
    dead_retention: float = 30.0
    reclaim_after: float = 0.0
    nack_share: float = 0.8
    rejoin_interval: float = 5.0
    knock_interval: float = 1.0
    redial_interval: float = 15.0
    forget_after: float = 86_400.0
    watch_interval: float = 0.1
    watchers: int = 2
    size_memory: float = 600.0
    size_floor: int = 0
    allowed: tuple[IPv4Network | IPv6Network, ...] = ()
    additions: bool = True


@dataclass(frozen=True, slots=True)
class SuspicionBounds:
    """A suspicion lasts between `least` and `most` seconds; `wanted` confirmations end it first."""

    least: float
    most: float
    wanted: int


def default() -> Tuning:
    """What wayout runs with when nobody says otherwise."""
    return Tuning()


def fast() -> Tuning:
    """For small clusters on one quiet LAN: more packets, sooner verdicts."""
    return Tuning(probe_interval=0.25, probe_timeout=0.1, gossip_interval=0.1, watch_interval=0.05)


def memberlist_lan() -> Tuning:
    """Memberlist's LAN defaults and none of our additions, to compare with."""
    return Tuning(
        probe_interval=1.0,
        probe_timeout=0.5,
        stream_timeout=10.0,
        reclaim_after=NEVER,
        nack_share=1.0,
        rejoin_interval=NEVER,
        knock_interval=NEVER,
        redial_interval=NEVER,
        forget_after=0.0,
        watchers=0,
        size_memory=0.0,
        additions=False,
    )


def retransmissions(multiplier: int, members: int) -> int:
    """How often a rumor is sent by each member that hears it."""
    return multiplier * math.ceil(math.log10(members + 1))


def suspicion_bounds(tuning: Tuning, members: int, timing_members: int) -> SuspicionBounds:
    """How long a suspicion lasts, in a cluster of `members` records.

    `timing_members` stands for the size where it is about time alone: the largest of late, so
    that a minority does not become hasty.
    """
    scale = math.floor(1000 * max(1.0, math.log10(max(1, timing_members))))
    # Whole microseconds first: the products must not fall below the table by a rounding error.
    micros = tuning.suspicion_mult * scale * round(tuning.probe_interval * 1_000_000) // 1000
    least = micros / 1_000_000
    wanted = tuning.suspicion_mult - 2
    if members - 2 < wanted:
        wanted = 0
    return SuspicionBounds(least, tuning.suspicion_max_mult * least, max(0, wanted))


def push_pull_period(base: float, members: int) -> float:
    """Seconds between two exchanges of full state: rarer in large clusters, which cost more."""
    if members <= 32:  # noqa: PLR2004 - memberlist's pushPullScaleThreshold
        return base
    return base * (math.ceil(math.log2(members) - 5) + 1)
