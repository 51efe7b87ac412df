"""The same fault again and again, and how long each address was nobody's or two hosts'."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.client import ClientError, call
from agent.lab import faults, verdict
from agent.lab.processes import LabError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agent.lab.cluster import Cluster
    from agent.lab.observation import Observation
    from agent.lab.verdict import Loss

STEADY = 0.4
"""Seconds in which each IP must be answered by its owner alone before the next fault."""
STEADY_PATIENCE = 45.0
KEPT = 10.0
"""Seconds of the past that a trial still looks at."""
VERB_PATIENCE = 10.0
AFTERWARDS = 1.0
"""Seconds of watching after the last IP has moved, and again after the fault is undone."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A fault: how to do it, how to undo it, and how long a take-over may take at most.

    `patience` 0 means that nothing should move at all.
    """

    strike: Callable[[Cluster, str], float]
    undo: Callable[[Cluster, str], object]
    patience: float
    does: str


def _start(cluster: Cluster, name: str) -> None:
    cluster.start([name])


def _drain(cluster: Cluster, name: str) -> float:
    began = time.monotonic()
    _ask(cluster, name, "drain", wait=False)
    return began


def _undrain(cluster: Cluster, name: str) -> None:
    _ask(cluster, name, "undrain")


def _ask(cluster: Cluster, name: str, verb: str, **arguments: object) -> None:
    try:
        call(str(cluster.file(name, "sock")), verb, timeout=VERB_PATIENCE, **arguments)
    except ClientError as error:
        raise LabError(f"{name} would not {verb}, {error.message}") from error


def _cut_gossip(cluster: Cluster, name: str) -> float:
    return faults.cut(cluster, name, only="gossip")


def _differ(cluster: Cluster, name: str) -> float:
    """The victim's file gives every address to the victim; the others' files do not."""
    path, kept = cluster.file(name, "yaml"), cluster.file(name, "kept")
    text = path.read_text()
    kept.write_text(text)
    began = time.monotonic()
    path.write_text(text.replace('"}\n', f'", pin: {name}}}\n'))
    _ask(cluster, name, "reload", seconds=VERB_PATIENCE)
    return began


def _agree(cluster: Cluster, name: str) -> None:
    path, kept = cluster.file(name, "yaml"), cluster.file(name, "kept")
    kept.replace(path)
    _ask(cluster, name, "reload", seconds=VERB_PATIENCE)


def _nothing(_cluster: Cluster, _name: str) -> None:
    pass


KINDS = {
    "host-death": Kind(faults.kill, _start, 20.0, "the host dies"),
    "sigkill": Kind(faults.crash, _start, 20.0, "the daemon is killed, its host lives on"),
    "sigstop": Kind(faults.pause, faults.resume, 20.0, "the daemon hangs, its host lives on"),
    "sigterm": Kind(faults.stop, _start, 20.0, "the daemon is stopped in good order"),
    "drain": Kind(_drain, _undrain, 20.0, "the node hands over and stays a member"),
    "gossip-cut": Kind(_cut_gossip, faults.heal, 20.0, "gossip is dropped, all else goes through"),
    "unplug": Kind(faults.cut, faults.heal, 20.0, "the cable is pulled, the daemon runs on"),
    "drift": Kind(_differ, _agree, 0.0, "one node runs another file than the others"),
    "sigusr2": Kind(faults.restart, _nothing, 0.0, "the daemon is replaced by a new one"),
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault: who was hit, what became of its IPs, and which others moved without need."""

    victim: str
    losses: tuple[Loss, ...]
    needless: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "victim": self.victim,
            "moves": [each.plain() for each in self.losses],
            "needless": list(self.needless),
        }


def trials(
    cluster: Cluster, seen: Observation, fault: str, repeat: int, seconds: float | None = None
) -> Iterator[Trial]:
    """Strike the node that carries most, watch, undo; so many times.

    `seconds` is how long to watch before the fault is undone, None: until all has moved.
    """
    kind = KINDS[fault]
    for _ in range(repeat):
        owners = _steady(cluster, seen)
        (victim, _), *_ = Counter(sorted(owners.values())).most_common(1)
        yield _trial(cluster, seen, kind, owners, Target(victim, seconds))


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to strike, and how long to watch then (None: until all has moved)."""

    name: str
    seconds: float | None = None


def _trial(
    cluster: Cluster, seen: Observation, kind: Kind, owners: dict[str, str], target: Target
) -> Trial:
    victim, timeline = target.name, seen.timeline
    old = cluster.places[victim].mac
    lost = [ip for ip, owner in owners.items() if owner == victim]
    timeline.forget(timeline.until - KEPT)
    began = kind.strike(cluster, victim)
    if target.seconds is None:
        seen.until(lambda: all(timeline.taken(ip, began, old) for ip in lost), kind.patience)
        seen.look(AFTERWARDS)
    else:
        seen.look(max(began + target.seconds - time.monotonic(), 0.0))
    struck = timeline.until
    kind.undo(cluster, victim)
    seen.look(AFTERWARDS)
    _steady(cluster, seen)
    losses = tuple(_loss(seen, ip, old, began, struck) for ip in lost)
    others = [ip for ip in owners if ip not in lost and timeline.moves(ip, began, timeline.until)]
    return Trial(victim, losses, tuple(others))


def _loss(seen: Observation, ip: str, old: str, began: float, struck: float) -> Loss:
    """Silence counts until the fault is undone, two answerers until everything is quiet again."""
    timeline = seen.timeline
    quiet = verdict.loss(timeline, ip, old, began, struck)
    doubled = sum(each.seconds for each in timeline.overlaps(ip, began, timeline.until))
    return verdict.Loss(ip, quiet.taken, quiet.silent, doubled, quiet.by)


def _steady(cluster: Cluster, seen: Observation) -> dict[str, str]:
    """Wait until daemons and observer agree about every IP; the owners."""
    limit = time.monotonic() + STEADY_PATIENCE
    while True:
        owners = cluster.settle(max(limit - time.monotonic(), 0.0), rest=seen.look)
        since = time.monotonic()
        seen.look(STEADY)
        macs = {ip: cluster.places[owner].mac for ip, owner in owners.items()}
        wrong = verdict.steady(seen.timeline, macs, since, seen.timeline.until)
        if not wrong:
            return owners
        if time.monotonic() > limit:
            raise LabError(f"the cluster does not come to rest, {wrong[0]}")


def document(
    cluster: Cluster, seen: Observation, fault: str, done: Sequence[Trial]
) -> dict[str, Any]:
    """The figures of all trials."""
    losses = [each for trial in done for each in trial.losses]
    taken = [each.taken for each in losses if each.taken is not None]
    return {
        "fault": fault,
        "repeat": len(done),
        "nodes": len(cluster.nodes),
        "ips": len(cluster.ips),
        "lost": len(losses),
        "takeover_seconds": _figures(taken),
        "not_taken_over": len(losses) - len(taken),
        "silence_seconds": _figures(each.silent for each in losses),
        "two_answerers_seconds": _figures(each.doubled for each in losses),
        "two_answerers_ips": sum(1 for each in losses if each.doubled),
        "needless_moves": sum(len(trial.needless) for trial in done),
        "resolution_seconds": seen.timeline.interval,
        "slowest_seconds": round(seen.timeline.slowest, 6),
        "trials": [trial.plain() for trial in done],
    }


def _figures(values: Iterable[float]) -> dict[str, float] | None:
    found = verdict.summary(values)
    return None if found is None else found.plain()
