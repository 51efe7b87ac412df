"""What the daemon works out by itself from an option and the size of the cluster: the sums."""

from __future__ import annotations

from math import ceil, floor, log2, log10
from typing import TYPE_CHECKING

from agent import wiring
from config.types import show_seconds
from gossip.tuning import push_pull_period, retransmissions, suspicion_bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from config.schema.settings import Settings

_CONSTANT_UP_TO = 32
"""Members up to which the exchange of full state keeps its period (memberlist)."""


def counted(settings: Settings, members: int) -> int:
    """The size that timing counts with: never less than `gossip.expected_nodes`."""
    return max(1, members, settings.gossip.expected_nodes or 0)


def sums(path: tuple[str, ...], settings: Settings, members: int) -> tuple[str, ...]:
    """How the values that depend on the option at `path` come about, one in a line."""
    work = _SUMS.get(path)
    return () if work is None else work(settings, counted(settings, members))


def _span(seconds: float) -> str:
    return show_seconds(round(seconds, 3))


def _suspicion(settings: Settings, members: int) -> tuple[str, ...]:
    gossip = settings.gossip
    bounds = suspicion_bounds(wiring.tuning(settings), members, members)
    scale = max(1.0, floor(1000 * log10(members)) / 1000)
    interval = _span(gossip.probe_interval)
    least, most = _span(bounds.least), _span(bounds.most)
    return (
        f"least time to refute: suspicion_mult {gossip.suspicion_mult}"
        f" x max(1, log10 of {members} nodes) {scale:g} x probe_interval {interval} = {least}",
        f"most, while one member alone suspects: {least}"
        f" x suspicion_max_mult {gossip.suspicion_max_mult} = {most}",
        f"members that must agree for the least: suspicion_mult {gossip.suspicion_mult}"
        f" - 2, if there are so many = {bounds.wanted}",
    )


def _retransmits(settings: Settings, members: int) -> tuple[str, ...]:
    factor = settings.gossip.retransmit_mult
    count = retransmissions(factor, members)
    step = ceil(log10(members + 1))
    return (
        f"times that a rumour is sent on: retransmit_mult {factor}"
        f" x ⌈log10({members} nodes + 1)⌉ {step} = {count}",
    )


def _push_pull(settings: Settings, members: int) -> tuple[str, ...]:
    base = settings.gossip.push_pull_interval
    period = _span(push_pull_period(base, members))
    if members <= _CONSTANT_UP_TO:
        return (f"period: {members} nodes are no more than {_CONSTANT_UP_TO}, so {period}",)
    step = ceil(log2(members) - 5) + 1
    return (f"period: {_span(base)} x (⌈log2 of {members} nodes - 5⌉ + 1) {step} = {period}",)


def _awareness(settings: Settings, _members: int) -> tuple[str, ...]:
    gossip = settings.gossip
    worst = gossip.awareness_max - 1
    most = _span(gossip.probe_interval * gossip.awareness_max)
    return (
        f"slowest probing, in the worst health {worst}: probe_interval"
        f" {_span(gossip.probe_interval)} x (1 + {worst}) = {most}",
    )


def _lease(settings: Settings, _members: int) -> tuple[str, ...]:
    lease = settings.egress.lease
    return (
        f"renewed every: lease {_span(lease)} ÷ 4 = {_span(lease / 4)}",
        f"gone at the latest after a death: lease {_span(lease)} + 1.3s = {_span(lease + 1.3)}",
    )


def _expected(settings: Settings, members: int) -> tuple[str, ...]:
    return (f"nodes that timing counts with: {members}", *_suspicion(settings, members))


_SUMS: Mapping[tuple[str, ...], Callable[[Settings, int], tuple[str, ...]]] = {
    ("gossip", "suspicion_mult"): _suspicion,
    ("gossip", "suspicion_max_mult"): _suspicion,
    ("gossip", "probe_interval"): lambda one, many: (
        *_suspicion(one, many),
        *_awareness(one, many),
    ),
    ("gossip", "retransmit_mult"): _retransmits,
    ("gossip", "push_pull_interval"): _push_pull,
    ("gossip", "awareness_max"): _awareness,
    ("gossip", "expected_nodes"): _expected,
    ("egress", "lease"): _lease,
}
