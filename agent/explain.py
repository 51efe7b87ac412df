"""`egress explain`: the working behind an owner, candidate by candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent import status, wiring
from egress import election

if TYPE_CHECKING:
    from agent.desk import JSON, Document
    from agent.snapshot import Snapshot
    from egress.model import IP, Egress

RULES = {
    "sticky": "a living, fit member claims it, and nothing says that it should move",
    "failback": "a member that scores higher has been well for long enough",
    "pinned": "the member that it is pinned to can carry it",
    "score": "the highest score among fit members with room",
    "none": "no member can carry it",
}


def egress(shot: Snapshot, name: str) -> Document:
    """Why the egress `name` is where it is; LookupError if there is none such."""
    found = next((each for each in shot.egresses if each.name == name), None)
    if found is None:
        raise LookupError(name)
    assignment = shot.assignments[name]
    return {
        "name": name,
        "owner": assignment.owner,
        "standby": assignment.standby,
        "rule": assignment.rule,
        "because": RULES[assignment.rule],
        "reason": assignment.reason,
        "failback": found.failback.value,
        "addresses": [_address(shot, ip) for ip in found.ips],
        "candidates": _candidates(shot, found),
    }


def _address(shot: Snapshot, ip: IP) -> Document:
    claim = shot.claims.top(ip)
    phase = shot.phases.get(ip)
    place = shot.places.get(ip)
    condition = shot.conditions.get(ip)
    return {
        "ip": str(ip),
        "claimed_by": claim.owner if claim is not None else None,
        "held": claim.held if claim is not None else None,
        "epoch": claim.epoch if claim is not None else 0,
        "here": phase.stage.value if phase is not None else "idle",
        "detail": phase.detail if phase is not None else None,
        "interface": place.interface if place is not None else None,
        "place": place.reason if place is not None else None,
        "condition": status.told(ip, condition) if condition is not None else None,
    }


def _candidates(shot: Snapshot, found: Egress) -> list[JSON]:
    entries = election.ranking(found, shot.candidates, wiring.rules(shot.world.settings))
    return [
        {
            "name": entry.name,
            "score": round(entry.score, 6),
            "fit": entry.refusal is None,
            "refusal": entry.refusal,
            "reasons": [*shot.candidates[entry.name].reasons],
            "carries": len(shot.claims.held_by(entry.name)),
        }
        for entry in entries
    ]
