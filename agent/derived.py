"""What `auto` and the formulas of gossip come to on this node now, with what went into them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent import wiring
from config.addresses import Auto
from gossip.tuning import push_pull_period, retransmissions, suspicion_bounds

if TYPE_CHECKING:
    from agent.desk import Document
    from config.schema.settings import Settings


@dataclass(frozen=True, slots=True)
class Sizes:
    """The members that gossip counts, and the largest number of the last ten minutes."""

    members: int
    of_late: int


def rows(settings: Settings, address: str, sizes: Sizes) -> list[Document]:
    """One row a value: its name, what it is now, and its inputs."""
    return [*_addresses(settings, address), *_timing(settings, sizes)]


def _row(name: str, value: float | str, **inputs: float | str) -> Document:
    return {"name": name, "value": value, "from": {**inputs}}


def _addresses(settings: Settings, address: str) -> list[Document]:
    node, gossip = settings.node, settings.gossip
    advertised = gossip.advertise_address
    known = address if isinstance(advertised, Auto) else str(advertised)
    return [
        _row(
            "gossip.bind_address",
            address,
            option=_said(gossip.bind_address),
            node=_said(node.address),
        ),
        _row("gossip.advertise_address", known, option=_said(advertised), bind=address),
    ]


def _said(value: object) -> str:
    return "auto" if isinstance(value, Auto) else str(value)


def _timing(settings: Settings, sizes: Sizes) -> list[Document]:
    tuning = wiring.tuning(settings)
    bounds = suspicion_bounds(tuning, sizes.members, sizes.of_late)
    spread = retransmissions(tuning.retransmit_mult, sizes.members)
    period = push_pull_period(tuning.push_pull_interval, sizes.members)
    timing: dict[str, float | str] = {
        "suspicion_mult": tuning.suspicion_mult,
        "probe_interval": tuning.probe_interval,
        "members_of_late": sizes.of_late,
    }
    late = {**timing, "suspicion_max_mult": tuning.suspicion_max_mult}
    many: dict[str, float | str] = {"members": sizes.members}
    return [
        _row("suspicion seconds, many accusers", bounds.least, **timing),
        _row("suspicion seconds, one accuser", bounds.most, **late),
        _row(
            "accusers that shorten it", bounds.wanted, suspicion_mult=tuning.suspicion_mult, **many
        ),
        _row("times a rumour is sent", spread, retransmit_mult=tuning.retransmit_mult, **many),
        _row("push/pull seconds", period, push_pull_interval=tuning.push_pull_interval, **many),
    ]
