"""Who runs which configuration: members grouped by what they must agree on.

Pure but for the memory of when each member was first seen with its digest: what changed a moment
ago is converging, and drift only after `config.drift_grace`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent import facts, status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.desk import Document
    from agent.facts import Facts
    from agent.world import World

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Row:
    """One member of our cluster that is there; `since` in loop seconds."""

    name: str
    known: Facts
    since: float
    local: bool

    @property
    def state(self) -> str:
        """`ok`, or what is wrong with its configuration, the most urgent first."""
        if not self.known.cluster_digest:
            return UNKNOWN
        return next((each for each in facts.CONFIG_STATES if each in self.known.config), "ok")


class Drift:
    """Owned by the daemon; `see` is called now and then and before anybody asks."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, float]] = {}

    def see(self, world: World, own: Facts, now: float) -> tuple[Row, ...]:
        """The members as they are now, by name."""
        present = {
            name: known
            for name, member in world.members.items()
            if member.health.present
            and name != world.me
            and (known := facts.read(member.meta)) is not None
            and known.cluster == own.cluster
        }
        present[world.me] = own
        self._seen = {name: self._first(name, each, now) for name, each in present.items()}
        return tuple(
            Row(name, known, self._seen[name][1], name == world.me)
            for name, known in sorted(present.items())
        )

    def _first(self, name: str, known: Facts, now: float) -> tuple[str, float]:
        before = self._seen.get(name)
        if before is not None and before[0] == known.cluster_digest:
            return before
        return known.cluster_digest, now


def counts(rows: tuple[Row, ...]) -> tuple[dict[str, int], int]:
    """How many members are in each state, and how many differ from this node."""
    states = dict.fromkeys(("ok", *facts.CONFIG_STATES, UNKNOWN), 0)
    for each in rows:
        states[each.state] += 1
    mine = next(each.known.cluster_digest for each in rows if each.local)
    return states, sum(each.known.cluster_digest != mine for each in rows)


def document(rows: tuple[Row, ...], *, grace: float, now: float, wall: float) -> Document:
    """`config drift --json`: the largest group first, and among equals the one of this node."""
    sizes = Counter(each.known.cluster_digest for each in rows)
    mine = next(each.known.cluster_digest for each in rows if each.local)
    order = sorted(sizes, key=lambda digest: (-sizes[digest], digest != mine, digest))
    young = {each.name for each in rows if now - each.since < grace}
    settled = {each.known.cluster_digest for each in rows if each.name not in young}
    bad = any(each.state != "ok" for each in rows)
    return {
        "drift": len(settled) > 1,
        "converging": len(sizes) > 1 and len(settled) <= 1,
        "all_ok": len(sizes) == 1 and not bad,
        "grace_seconds": grace,
        "groups": [
            {
                "digest": digest,
                "majority": digest == order[0],
                "local": digest == mine,
                "count": sizes[digest],
                "members": [
                    _row(each, _times(each, now, wall), order[0], young)
                    for each in rows
                    if each.known.cluster_digest == digest
                ],
            }
            for digest in order
        ],
    }


def _times(row: Row, now: float, wall: float) -> Mapping[str, float]:
    return {"age": max(now - row.since, 0.0), "at": wall - (now - row.since)}


def _row(row: Row, times: Mapping[str, float], majority: str, young: set[str]) -> Document:
    differs = row.known.cluster_digest != majority
    return {
        "name": row.name,
        "local": row.local,
        "state": row.state,
        "agreement": ("converging" if row.name in young else "differs") if differs else "agrees",
        "generation": row.known.generation,
        "digest": row.known.cluster_digest,
        "node_digest": row.known.node_digest,
        "version": row.known.version,
        "since": status.stamp(times["at"]),
        "age_seconds": round(times["age"], 3),
    }
