"""The documents of the contract (PRODUCT), made from one snapshot: one source for CLI and HTTP.

Everything here is pure: the same snapshot gives the same documents.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agent import facts, notices
from egress import eligibility
from egress.decision import Kind
from egress.eligibility import Vacancy

if TYPE_CHECKING:
    from agent.desk import Document
    from agent.health.board import Standing
    from agent.notices import Notice
    from agent.snapshot import Snapshot
    from egress.decision import Condition
    from egress.model import IP, Assignment, Egress
    from gossip.peer import Member

NOT_WAYOUT = "not_wayout"


def stamp(unix: float) -> str:
    """RFC 3339 in UTC with milliseconds."""
    moment = datetime.fromtimestamp(unix, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def state(shot: Snapshot) -> str:
    """The one word for this node, the most urgent first."""
    world = shot.world
    if world.stopping:
        return "restarting" if world.keep else "stopping"
    if shot.fenced:
        return "isolated"
    if world.draining or world.settings.node.maintenance:
        return "draining"
    return "starting" if shot.unready else "ready"


def node_document(shot: Snapshot, *, version: str, pid: int, address: str) -> Document:
    """`status.node`."""
    return {
        "name": shot.world.me,
        "address": address,
        "cluster": shot.world.settings.node.cluster,
        "version": version,
        "pid": pid,
        "state": state(shot),
        "uptime_seconds": round(shot.now - shot.world.started, 3),
        "eligible": not shot.own.reasons,
        "ineligible_reasons": list(shot.own.reasons),
        "health_score": shot.score,
        "checks": [_check(shot, each) for each in shot.world.fitness.checks],
    }


def _check(shot: Snapshot, standing: Standing) -> Document:
    return {
        "name": standing.name,
        "type": standing.kind,
        "state": standing.state,
        "reason": standing.detail or None,
        "decides": standing.counts,
        "since": stamp(shot.wall - (shot.now - standing.since)) if standing.since else None,
    }


def member_counts(shot: Snapshot) -> Document:
    """`status.members`."""
    counts: dict[str, int] = {"alive": 0, "suspect": 0, "dead": 0, "left": 0}
    for member in shot.world.members.values():
        counts[member.health.name.lower()] += 1
    return dict(counts)


def states(shot: Snapshot) -> dict[str, int]:
    """How many addresses are in each state."""
    counts = dict.fromkeys(("assigned", "moving", "unassigned", "conflict"), 0)
    for egress in shot.egresses:
        for ip in egress.ips:
            word, _ = _state(shot, ip, _owner(shot, ip), shot.assignments.get(egress.name))
            counts[word] += 1
    return counts


def egress_counts(shot: Snapshot) -> Document:
    """`status.egress`: addresses, not objects."""
    counts = states(shot)
    return {
        "total": sum(counts.values()),
        "owned": len(shot.carried),
        "assigned": counts["assigned"],
        "unassigned": counts["unassigned"],
        "conflicts": counts["conflict"],
    }


def members(shot: Snapshot) -> list[Document]:
    """`members --json`."""
    listed = shot.world.members.values()
    return [_member(shot, each) for each in sorted(listed, key=lambda member: member.name)]


def _member(shot: Snapshot, member: Member) -> Document:
    local = member.name == shot.world.me
    known = shot.own if local else facts.read(member.meta)
    reasons = [NOT_WAYOUT] if known is None else list(known.reasons)
    if member.unreachable:
        reasons.append("unreachable")
    known = known or facts.Facts()
    return {
        "name": member.name,
        "address": member.address.host,
        "port": member.address.port,
        "state": member.health.name.lower(),
        "incarnation": member.incarnation,
        "local": local,
        "rtt_seconds": member.rtt if member.rtt is None else round(member.rtt, 6),
        "eligible": member.health.present and not reasons,
        "reasons": [*reasons],
        "labels": dict(known.labels),
        "config_digest": known.cluster_digest,
        "version": known.version,
        "since": stamp(shot.wall - (shot.now - member.since)),
    }


def egress_list(shot: Snapshot) -> list[Document]:
    """`egress list --json`: one row for each IP; the claims say who really carries it."""
    return [
        _row(shot, egress, ip, shot.assignments.get(egress.name))
        for egress in sorted(shot.egresses, key=lambda each: each.name)
        for ip in egress.ips
    ]


def _row(shot: Snapshot, egress: Egress, ip: IP, assignment: Assignment | None) -> Document:
    claim = shot.claims.top(ip)
    owner = _owner(shot, ip)
    word, reason = _state(shot, ip, owner, assignment)
    if reason == Vacancy.NO_ELIGIBLE_NODE:
        reason = f"{reason}: {eligibility.tally(shot.candidates.values(), egress)}"
    place = shot.places.get(ip)
    return {
        "name": egress.name,
        "ip": str(ip),
        "family": ip.version,
        "pool": None,
        "owner": owner,
        "standby": _standby(assignment, owner),
        "state": word,
        "reason": reason,
        "epoch": claim.epoch if claim is not None else 0,
        "since": stamp(claim.at) if claim is not None and claim.at else None,
        "local": ip in shot.carried,
        "interface": place.interface if place is not None and ip in shot.carried else None,
    }


def _owner(shot: Snapshot, ip: IP) -> str | None:
    claim = shot.claims.top(ip)
    return claim.owner if claim is not None and claim.held and _carries(shot, claim.owner) else None


def _carries(shot: Snapshot, name: str) -> bool:
    """A claim counts for as long as its owner is a member that is neither dead nor gone."""
    candidate = shot.candidates.get(name)
    return candidate is not None and candidate.present and not candidate.left


def _standby(assignment: Assignment | None, owner: str | None) -> str | None:
    if assignment is None:
        return None
    return assignment.owner if assignment.owner != owner else assignment.standby


def _state(
    shot: Snapshot, ip: IP, owner: str | None, assignment: Assignment | None
) -> tuple[str, str | None]:
    notice = _notice(shot, ip, assignment)
    said = notice.text if notice is not None else None
    if notice is not None and notice.kind == Kind.ADDRESS_CONFLICT.value:
        return "conflict", said
    if owner is not None and (assignment is None or assignment.owner in {owner, None}):
        return "assigned", said
    if assignment is not None and assignment.owner is not None:
        return "moving", said
    reason = assignment.reason if assignment is not None else Vacancy.NO_ELIGIBLE_NODE
    return "unassigned", said or reason


def _notice(shot: Snapshot, ip: IP, assignment: Assignment | None) -> Notice | None:
    """What is wrong with an address: the word of the elected member, or else ours."""
    elected = assignment.owner if assignment is not None else None
    if elected is not None and elected != shot.world.me:
        said = shot.world.notices.get(elected, ())
        return next((each for each in said if each.ip == ip), None)
    condition = shot.conditions.get(ip)
    return None if condition is None else notices.of({ip: condition})[0]


def told(ip: IP, condition: Condition) -> str:
    """A condition in one line."""
    return notices.of({ip: condition})[0].text
