"""The inputs of an election as rows of plain data, so that a command can ask what would move.

One row for each member, egress and claim, and one for the rules; times are ages in seconds.
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any

from agent import wiring
from agent.whatif import Picture
from egress.election import Rules
from egress.model import Candidate, Claim, Egress, Expression, Failback, Selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from agent.desk import Document
    from agent.snapshot import Snapshot

FLAGS = ("present", "left", "unreachable", "restarting")


def rows(shot: Snapshot, claims: Sequence[tuple[Claim, float]]) -> list[Document]:
    """What is known now; `claims` with the loop time since when each address is where it is."""
    rules = wiring.rules(shot.world.settings)
    return [
        {
            "kind": "rules",
            "node": shot.world.me,
            "seed": rules.seed,
            "load_factor": rules.load_factor,
            "failback_delay": rules.failback_delay,
        },
        *(_member(each, shot.now) for each in shot.candidates.values()),
        *map(_egress, shot.egresses),
        *(_claim(each, shot.now - since) for each, since in claims),
    ]


def read(told: Iterable[Mapping[str, Any]]) -> tuple[str, Picture]:
    """The picture, and the name of the node that told it."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for row in told:
        kinds.setdefault(row["kind"], []).append(row)
    (rules,) = kinds["rules"]
    members = map(_candidate, kinds.get("member", []))
    claims = list(_claims(kinds.get("claim", [])))
    return rules["node"], Picture(
        egresses=tuple(map(_object, kinds.get("egress", []))),
        candidates={each.name: each for each in members},
        claims=tuple(claim for claim, _ in claims),
        held={claim.ip: since for claim, since in claims},
        rules=Rules(rules["seed"], rules["load_factor"], rules["failback_delay"]),
    )


def _member(each: Candidate, now: float) -> Document:
    well = each.healthy_since <= now
    return {
        "kind": "member",
        "name": each.name,
        **{flag: getattr(each, flag) for flag in FLAGS},
        "reasons": [*each.reasons],
        "weight": each.weight,
        "capacity": each.capacity,
        "labels": dict(each.labels),
        "well_seconds": now - each.healthy_since if well else None,
        "networks": [str(network) for network in each.networks],
        "addresses": [str(address) for address in each.addresses],
    }


def _candidate(row: Mapping[str, Any]) -> Candidate:
    well = row["well_seconds"]
    return Candidate(
        name=row["name"],
        **{flag: row[flag] for flag in FLAGS},
        reasons=tuple(row["reasons"]),
        weight=row["weight"],
        capacity=row["capacity"],
        labels=tuple(sorted(row["labels"].items())),
        healthy_since=float("inf") if well is None else -well,
        networks=tuple(map(ip_network, row["networks"])),
        addresses=tuple(map(ip_address, row["addresses"])),
    )


def _egress(each: Egress) -> Document:
    return {
        "kind": "egress",
        "name": each.name,
        "ips": [str(ip) for ip in each.ips],
        "labels": dict(each.selector.labels),
        "expressions": [
            [expression.key, expression.operator, [*expression.values]]
            for expression in each.selector.expressions
        ],
        "priority": each.priority,
        "failback": each.failback.value,
        "pin": each.pin,
        "interface": each.interface,
        "failover": each.failover,
    }


def _object(row: Mapping[str, Any]) -> Egress:
    bare = Egress(row["name"], tuple(map(ip_address, row["ips"])))
    return replace(
        bare,
        selector=Selector(
            tuple(sorted(row["labels"].items())),
            tuple(Expression(key, sign, tuple(values)) for key, sign, values in row["expressions"]),
        ),
        priority=row["priority"],
        failback=Failback(row["failback"]),
        pin=row["pin"],
        interface=row["interface"],
        failover=row["failover"],
    )


def _claim(claim: Claim, age: float) -> Document:
    return {
        "kind": "claim",
        "ip": str(claim.ip),
        "epoch": claim.epoch,
        "owner": claim.owner,
        "held": claim.held,
        "to": claim.to,
        "seconds": age,
    }


def _claims(told: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Claim, float]]:
    for row in told:
        ip = ip_address(row["ip"])
        claim = Claim(ip, row["epoch"], row["owner"], row["held"], to=row["to"])
        yield claim, -row["seconds"]
