"""What would move if members came or went, or the objects were others: the election, asked ahead.

Everything here is pure. Times are seconds from now: what happened is negative, and the answer is
that of a moment after the last fail-back that is waited for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent import wiring
from egress import causes, election
from egress.claims import Claims
from egress.model import Candidate, Cause, Claim

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent.desk import JSON, Document
    from config.schema.settings import Settings
    from egress.election import Rules
    from egress.model import IP, Assignment, Egress

SETTLED = 1.0
"""Seconds after the last delay has run out."""
OF_FILE = ("not_eligible", "maintenance")
"""What a member says against itself because of its configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The inputs of an election. `held`: since when each address is with whom it is."""

    egresses: tuple[Egress, ...]
    candidates: Mapping[str, Candidate]
    claims: tuple[Claim, ...]
    held: Mapping[IP, float]
    rules: Rules


def without(picture: Picture, names: Iterable[str]) -> Picture:
    """These members are gone."""
    gone = {
        name: replace(each, present=False)
        for name in names
        if (each := picture.candidates.get(name)) is not None
    }
    return replace(picture, candidates={**picture.candidates, **gone})


def joined(picture: Picture, names: Iterable[str]) -> Picture:
    """These members have just come, and are well."""
    come = {name: Candidate(name) for name in names if name not in picture.candidates}
    return replace(picture, candidates={**picture.candidates, **come})


def configured(picture: Picture, settings: Mapping[str, Settings], me: str) -> Picture:
    """Everybody runs another configuration: `settings` as each member would read it."""
    return replace(
        picture,
        egresses=wiring.egresses(settings[me]),
        rules=wiring.rules(settings[me]),
        candidates={
            name: _described(each, settings[name]) for name, each in picture.candidates.items()
        },
    )


def fresh(settings: Mapping[str, Settings], me: str) -> Picture:
    """A cluster that starts with nothing claimed; its members are those of `settings`."""
    bare = Picture(egresses=(), candidates={}, claims=(), held={}, rules=wiring.rules(settings[me]))
    return configured(joined(bare, settings), settings, me)


def settled(picture: Picture) -> Picture:
    """Everything is where the election wants it."""
    chosen = _elected(picture)
    claims = [
        Claim(ip, 1, owner, held=True)
        for each in picture.egresses
        for ip in each.ips
        if (owner := chosen[each.name].owner) is not None
    ]
    # Claimed by those who were there before, so nobody is homesick.
    return replace(picture, claims=tuple(claims), held={each.ip: SETTLED for each in claims})


def plan(before: Picture, after: Picture) -> Document:
    """`plan --json`: from where things are in one picture to where they would be in the other."""
    carried = _carried(before)
    chosen = _elected(after)
    moves: list[JSON] = []
    unassigned: list[JSON] = []
    load = {name: 0 for name, each in sorted(after.candidates.items()) if each.present}
    for egress in after.egresses:
        assignment = chosen[egress.name]
        for ip in egress.ips:
            origin = carried.pop(ip, None)
            if assignment.owner is None:
                unassigned.append({"ip": str(ip), "name": egress.name, "reason": assignment.reason})
            else:
                load[assignment.owner] = load.get(assignment.owner, 0) + 1
            if assignment.owner != origin:
                why = _why(after, egress, assignment, origin)
                moves.append(_move(ip, egress.name, origin, assignment.owner, why))
    names = {ip: each.name for each in before.egresses for ip in each.ips}
    for ip, origin in carried.items():
        if ip in names:
            moves.append(_move(ip, names[ip], origin, None, Cause.CONFIG))
    return {"moves": moves, "unassigned": unassigned, "load": {**load}}


def _elected(picture: Picture) -> Mapping[str, Assignment]:
    claims = Claims(picture.rules.seed)
    for claim in picture.claims:
        claims.fold(claim, picture.held.get(claim.ip, 0.0))
    now = picture.rules.failback_delay + SETTLED
    return election.elect(picture.egresses, picture.candidates, claims, picture.rules, now)


def _carried(picture: Picture) -> dict[IP, str]:
    present = {name for name, each in picture.candidates.items() if each.present}
    return {each.ip: each.owner for each in picture.claims if each.held and each.owner in present}


def _move(ip: IP, name: str, origin: str | None, to: str | None, why: Cause) -> Document:
    return {"ip": str(ip), "name": name, "from": origin, "to": to, "reason": why.value}


def _why(after: Picture, egress: Egress, assignment: Assignment, origin: str | None) -> Cause:
    if origin is None:
        return Cause.START
    holder = after.candidates.get(origin)
    if holder is None or not holder.present:
        return Cause.NODE_LEFT
    if holder.unreachable:
        return Cause.NODE_DEAD
    if assignment.rule == "failback":
        return Cause.FAILBACK
    if assignment.rule == "pinned":
        return Cause.CONFIG
    return causes.of_member(holder, egress)


def _described(bare: Candidate, settings: Settings) -> Candidate:
    node = settings.node
    says = {"not_eligible": not node.eligible or node.weight == 0, "maintenance": node.maintenance}
    kept = [each for each in bare.reasons if each not in OF_FILE]
    labels = {**dict(bare.labels), **node.labels}
    if node.zone is not None:
        labels.setdefault(wiring.ZONE_LABEL, node.zone)
    return replace(
        bare,
        reasons=(*(name for name, holds in says.items() if holds), *kept),
        weight=node.weight,
        capacity=node.max_addresses or None,
        labels=tuple(sorted(labels.items())),
    )
