"""The faults that can be measured: how each is done and undone, and what may move because of it."""

from __future__ import annotations

import os
import re
import signal
import time
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from agent.client import ClientError, call
from agent.lab import faults
from agent.lab.processes import LabError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent.lab.cluster import Cluster

    Rest = Callable[[float], None]
    Deed = Callable[[Cluster, Sequence[str], Rest], None]

VERB_PATIENCE = 10.0
TAKEN_WITHIN = 20.0
REJOIN_WITHIN = 60.0
"""Seconds; a node that comes back is given addresses after 30 s of health."""
RELOADS = 50
RELOAD_EVERY = 0.05
LOOK = 0.05
"""Seconds between two looks at something that is waited for."""
PAUSE = re.compile(r"sigstop-(\d{1,3}(?:\.\d{1,3})?)")


class Scope(Enum):
    """Whose addresses a fault is about: those of one node, of the smaller half, or all."""

    NODE = "node"
    MINORITY = "minority"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Kind:
    """A fault. `patience`: how long the move of what is concerned may take; 0: nothing may move.

    `strike` and `undo` are given the nodes that are hit, and how to rest without missing what the
    observer says. `prepare` comes before, and what moves then does not count. `seconds`: how long
    to watch before the fault is undone, None: until all has moved. `planned`: what moves is handed
    over by name, which takes members that have known each other for a while.
    """

    strike: Deed
    undo: Deed
    does: str
    patience: float = TAKEN_WITHIN
    scope: Scope = Scope.NODE
    prepare: Deed | None = None
    seconds: float | None = None
    planned: bool = False


def find(name: str) -> Kind:
    """The fault of this name; `sigstop-N` hangs for N seconds. LabError if there is none such."""
    pause = PAUSE.fullmatch(name)
    if pause is not None:
        seconds = float(pause[1])
        does = f"the daemon hangs for {seconds:g} s, its host lives on"
        return replace(KINDS["sigstop"], does=does, seconds=seconds)
    if name not in KINDS:
        raise LabError(f"there is no fault {name!r}, there are {', '.join(KINDS)} and sigstop-N")
    return KINDS[name]


def _each(deed: Callable[[Cluster, str], object]) -> Deed:
    def do(cluster: Cluster, names: Sequence[str], rest: Rest) -> None:
        for name in names:
            deed(cluster, name)
            rest(0.0)

    return do


def _start(cluster: Cluster, name: str) -> None:
    cluster.start([name])


def _drain(cluster: Cluster, name: str) -> None:
    _ask(cluster, name, "drain", wait=False)


def _undrain(cluster: Cluster, name: str) -> None:
    _ask(cluster, name, "undrain")


def _ask(cluster: Cluster, name: str, verb: str, **arguments: object) -> None:
    try:
        call(str(cluster.file(name, "sock")), verb, timeout=VERB_PATIENCE, **arguments)
    except ClientError as error:
        raise LabError(f"{name} would not {verb}, {error.message}") from error


def _cut(only: str) -> Callable[[Cluster, str], object]:
    return lambda cluster, name: faults.cut(cluster, name, only=only)


def _differ(cluster: Cluster, name: str) -> float:
    """The victim's file gives every address to the victim; the others' files do not."""
    path, kept = cluster.file(name, "yaml"), cluster.file(name, "kept")
    text = path.read_text()
    kept.write_text(text)
    began = time.monotonic()
    path.write_text(text.replace('"}\n', f'", pin: {name}}}\n'))
    _ask(cluster, name, "reload")
    return began


def _agree(cluster: Cluster, name: str) -> None:
    cluster.file(name, "kept").replace(cluster.file(name, "yaml"))
    _ask(cluster, name, "reload")


def _nothing(_cluster: Cluster, _names: Sequence[str], _rest: Rest) -> None:
    pass


def _reload_storm(cluster: Cluster, names: Sequence[str], rest: Rest) -> None:
    """Files that change all the time, every third of them broken, and a SIGHUP for each."""
    good = {name: cluster.file(name, "yaml").read_text() for name in names}
    try:
        for number in range(RELOADS):
            for name, text in good.items():
                changed = text.replace("egress:\n", f"egress:\n  failback_delay: {30 + number}s\n")
                broken = number % 3 == 2  # noqa: PLR2004 - every third
                cluster.file(name, "yaml").write_text("egress: [" if broken else changed)
                pid = cluster.pid(name)
                if pid is not None:
                    os.kill(pid, signal.SIGHUP)
            rest(RELOAD_EVERY)
    finally:
        for name, text in good.items():
            cluster.file(name, "yaml").write_text(text)
            _ask(cluster, name, "reload")


def _rolling_restart(cluster: Cluster, names: Sequence[str], rest: Rest) -> None:
    """One daemon after the other is replaced, each once the one before is ready again."""
    for name in names:
        faults.restart(cluster, name)
        cluster.settle(rest=rest)


def _rolling_upgrade(cluster: Cluster, names: Sequence[str], rest: Rest) -> None:
    """As a DaemonSet does it: preStop, SIGTERM, and a new container."""
    for name in names:
        _ask(cluster, name, "restart_prepare", seconds=30.0)
        faults.stop(cluster, name)
        cluster.start([name])
        cluster.settle(rest=rest)


def _rejoined(cluster: Cluster, names: Sequence[str], rest: Rest) -> None:
    """The host comes back, and is given its share again."""
    cluster.start(names)
    limit = time.monotonic() + REJOIN_WITHIN
    while not set(names) <= set(cluster.glance().values()):
        if time.monotonic() > limit:
            raise LabError(f"{names[0]} was given nothing within {REJOIN_WITHIN:g} s")
        rest(LOOK)


def _died(cluster: Cluster, names: Sequence[str], rest: Rest) -> None:
    for name in names:
        faults.kill(cluster, name)
    limit = time.monotonic() + TAKEN_WITHIN
    while set(names) & set(cluster.glance().values()):
        if time.monotonic() > limit:
            raise LabError(f"{names[0]} is dead and still has its addresses")
        rest(LOOK)


KINDS = {
    "host-death": Kind(_each(faults.kill), _each(_start), "the host dies"),
    "sigkill": Kind(_each(faults.crash), _each(_start), "the daemon is killed, its host lives on"),
    "sigstop": Kind(
        _each(faults.pause), _each(faults.resume), "the daemon hangs, its host lives on"
    ),
    "sigterm": Kind(
        _each(faults.stop), _each(_start), "the daemon is stopped in good order", planned=True
    ),
    "drain": Kind(
        _each(_drain), _each(_undrain), "the node hands over and stays a member", planned=True
    ),
    "gossip-cut": Kind(
        _each(_cut("gossip")), _each(faults.heal), "gossip is dropped, all else goes through"
    ),
    "unplug": Kind(
        _each(faults.cut), _each(faults.heal), "the cable is pulled, the daemon runs on"
    ),
    "partition": Kind(
        _each(_cut("peers")),
        _each(faults.heal),
        "less than half of the nodes lose the others, and find them again",
        scope=Scope.MINORITY,
    ),
    "rejoin": Kind(
        _rejoined,
        _nothing,
        "a host that died comes back and is given addresses again",
        patience=0.0,
        scope=Scope.ALL,
        prepare=_died,
    ),
    "drift": Kind(
        _each(_differ),
        _each(_agree),
        "one node runs another file than the others",
        patience=0.0,
    ),
    "sigusr2": Kind(
        _each(faults.restart), _nothing, "the daemon is replaced by a new one", patience=0.0
    ),
    "rolling-restart": Kind(
        _rolling_restart,
        _nothing,
        "all daemons are replaced, one after the other (SIGUSR2)",
        patience=0.0,
        scope=Scope.ALL,
    ),
    "rolling-upgrade": Kind(
        _rolling_upgrade,
        _nothing,
        "all daemons are replaced, one after the other (restart-prepare, SIGTERM)",
        patience=0.0,
        scope=Scope.ALL,
    ),
    "reload-storm": Kind(
        _reload_storm,
        _nothing,
        f"{RELOADS} reloads on every node, each of another file, every third one broken",
        patience=0.0,
        scope=Scope.ALL,
    ),
}
