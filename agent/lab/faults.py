"""What can happen to a node of a lab, and how it is undone.

kill    the host dies: its cable is cut, then its processes and all that its kernel knew are gone
stop    SIGTERM: the daemon hands over and leaves
pause   SIGSTOP: the daemon hangs, its host goes on; resume is SIGCONT
cut     the cable is pulled: the host loses its carrier; or, with nft in the switch, gossip or
        everything but the observer is dropped, and the host notices nothing
lose    a share of all frames from and to other nodes is dropped
restart SIGUSR2: the daemon keeps its addresses for a successor, which is started
"""

from __future__ import annotations

import shutil
import signal
import time
from typing import TYPE_CHECKING

from agent.lab.addresses import OBSERVER
from agent.lab.cluster import GOSSIP_PORT
from agent.lab.hosts import SWITCH, find, port
from agent.lab.processes import POLL, LabError, send, wait

if TYPE_CHECKING:
    from agent.lab.cluster import Cluster

STOP_PATIENCE = 15.0
"""A daemon has 10 s to hand over, by default."""
EVERYTHING = 100
"""Percent; nft refuses it as a comparison that is always true."""
FAULTS = ("gossip", "peers", "loss")
"""Tables in the switch, one for each kind and node."""


def kill(cluster: Cluster, name: str) -> float:
    """The host dies; the moment before its cable was cut."""
    _must(cluster, name, "running", "paused", "ended", "crashed")
    began = time.monotonic()
    cluster.network.unplug(name)
    crash(cluster, name)
    cluster.network.destroy(name)
    # What is on disk outlives a boot, what is under /run does not.
    shutil.rmtree(cluster.file(name, "run"), ignore_errors=True)
    cluster.record.killed.append(name)
    cluster.record.save()
    return began


def crash(cluster: Cluster, name: str) -> float:
    """SIGKILL alone: the daemon is gone, its host lives on; the moment before."""
    began = time.monotonic()
    daemon = cluster.record.daemons.get(cluster.node(name).name)
    if daemon is not None:
        send(daemon, signal.SIGKILL)
        wait(daemon, STOP_PATIENCE)
        cluster.ended(name)
    return began


def stop(cluster: Cluster, name: str, *, patience: float = STOP_PATIENCE) -> float:
    """SIGTERM, and wait for the end; the moment before. LabError if it does not end."""
    _must(cluster, name, "running")
    return _ended(cluster, name, signal.SIGTERM, patience)


def pause(cluster: Cluster, name: str) -> float:
    """SIGSTOP; the moment before."""
    _must(cluster, name, "running")
    began = time.monotonic()
    daemon = cluster.record.daemons[name]
    send(daemon, signal.SIGSTOP)
    # Its threads stop one after the other; until the last has, it is not paused.
    while daemon.alive and not daemon.stopped and time.monotonic() < began + STOP_PATIENCE:
        time.sleep(POLL)
    return began


def resume(cluster: Cluster, name: str) -> float:
    """SIGCONT; the moment before."""
    _must(cluster, name, "paused")
    began = time.monotonic()
    send(cluster.record.daemons[name], signal.SIGCONT)
    return began


def restart(cluster: Cluster, name: str, *, patience: float = STOP_PATIENCE) -> float:
    """SIGUSR2, wait for the end, start anew; the moment before."""
    _must(cluster, name, "running")
    began = _ended(cluster, name, signal.SIGUSR2, patience)
    cluster.start([name])
    return began


def cut(cluster: Cluster, name: str, *, only: str | None = None) -> float:
    """Pull the cable, or drop `only` gossip, or only what goes to peers; the moment before."""
    _must(cluster, name, "running", "paused", "ended", "crashed")
    began = time.monotonic()
    match only:
        case None:
            cluster.network.unplug(name)
        case "gossip":
            ours = f"meta l4proto {{ tcp, udp }} th dport {GOSSIP_PORT} drop"
            theirs = f"meta l4proto {{ tcp, udp }} th sport {GOSSIP_PORT} drop"
            _filter(cluster, "gossip", name, [ours, theirs])
        case _:
            _filter(cluster, "peers", name, ["drop"])
    return began


def lose(cluster: Cluster, name: str, percent: int) -> float:
    """Drop a share of what goes to and from other nodes; 0 ends it. The moment before."""
    _must(cluster, name, "running", "paused", "ended", "crashed")
    began = time.monotonic()
    share = "" if percent == EVERYTHING else f"numgen random mod {EVERYTHING} < {percent} "
    rules = [f"{share}drop"] if percent else []
    _filter(cluster, "loss", name, rules)
    return began


def heal(cluster: Cluster, name: str) -> float:
    """Undo every cut and loss; the moment before."""
    _must(cluster, name, "running", "paused", "ended", "crashed")
    began = time.monotonic()
    cluster.network.plug(name)
    if find("nft"):
        for kind in FAULTS:
            _filter(cluster, kind, name, [])
    return began


def _filter(cluster: Cluster, kind: str, name: str, rules: list[str]) -> None:
    """Apply rules to all frames between a node and the other nodes; none removes the filter.

    In the switch and not in the host: there a dropped packet makes sendto() fail (K41).
    """
    if not find("nft"):
        raise LabError("this fault needs the program nft, install it: apt-get install nftables")
    table = f"bridge wayout_{kind}_{name}"
    ends = (("iifname", "oifname"), ("oifname", "iifname"))
    lines = [
        f'{here} "{port(name)}" {there} != "{port(OBSERVER)}" {rule}'
        for here, there in ends
        for rule in rules
    ]
    body = "\n".join(lines)
    chain = f"chain f {{ type filter hook forward priority 0;\n{body}\n}}"
    fresh = f"table {table} {{\n{chain}\n}}\n" if rules else ""
    feed = f"add table {table}\ndelete table {table}\n{fresh}"
    cluster.network.run(SWITCH, ("nft", "-f", "-"), feed=feed)


def _ended(cluster: Cluster, name: str, number: signal.Signals, patience: float) -> float:
    began = time.monotonic()
    daemon = cluster.record.daemons[name]
    send(daemon, number)
    if not wait(daemon, patience):
        raise LabError(
            f"{name} has not ended {patience:g} s after {number.name}, "
            f"its log is {cluster.file(name, 'log')}"
        )
    cluster.ended(name)
    return began


def _must(cluster: Cluster, name: str, *states: str) -> None:
    state = cluster.state(name)
    if state not in states:
        raise LabError(f"{name} is {state}, this needs one that is {' or '.join(states)}")
