"""The demo: a real cluster, a host that dies, and what an observer on the LAN makes of it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent.lab import faults, verdict
from agent.lab.cluster import temporary
from agent.lab.observation import Observation

if TYPE_CHECKING:
    from agent.lab.cluster import Cluster
    from agent.lab.teller import Teller
    from agent.lab.verdict import Loss

BEFORE = 0.6
"""Seconds in which every IP must be answered by its owner alone before anything is done."""
AFTER = 1.2
"""Seconds in which each must be answered by exactly one host after the last has moved."""
FAILOVER_PATIENCE = 12.0
AGREE_PATIENCE = 8.0


@dataclass(slots=True)
class Story:
    """What has been found so far; `problems` empty at the end means that the promise was kept."""

    cluster: Cluster
    seen: Observation
    teller: Teller
    began: float
    owners: dict[str, str] = field(default_factory=dict)
    victim: str = ""
    killed: float = 0.0
    ready: float = 0.0
    losses: list[Loss] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def lost(self) -> list[str]:
        """The IPs that the dead host carried."""
        return [ip for ip, owner in self.owners.items() if owner == self.victim]

    def say_at(self, text: str) -> None:
        """A line with the time since the beginning."""
        self.teller.say(f"{time.monotonic() - self.began:6.1f} s  {text}")


def run(teller: Teller, name: str, *, nodes: int, ips: int, keep: bool) -> dict[str, Any]:
    """Tell the story and remove everything; the figures, with `ok` and `problems`."""
    began = time.monotonic()
    with temporary(name, nodes=nodes, ips=ips) as cluster:
        how = "as root" if cluster.network.user is None else "without root, in a user namespace"
        teller.say(f"wayout: {nodes} real nodes in network namespaces, {how}", "head")
        with Observation(cluster.network, cluster.ips) as seen:
            story = Story(cluster, seen, teller, began)
            _before(story)
            _failover(story)
            _after(story)
        if keep:
            cluster.leave()
    _end(story, keep=keep)
    return _document(story)


def _before(story: Story) -> None:
    cluster, seen = story.cluster, story.seen
    story.say_at(f"{len(cluster.nodes)} hosts and an observer hang on one bridge")
    story.owners = cluster.settle(rest=seen.look)
    story.say_at(f"all nodes are ready and agree who owns the {len(cluster.ips)} IPs")
    since = time.monotonic()
    seen.look(BEFORE)
    wanted = {ip: cluster.places[owner].mac for ip, owner in story.owners.items()}
    story.problems += verdict.steady(seen.timeline, wanted, since, seen.timeline.until)
    story.ready = time.monotonic() - story.began
    _table(story, story.owners)
    if story.problems:
        return
    story.teller.say("The observer asks for each IP every 10 ms: one host answers each.", "good")


def _failover(story: Story) -> None:
    cluster, seen, teller = story.cluster, story.seen, story.teller
    (story.victim, count), *_ = Counter(sorted(story.owners.values())).most_common(1)
    teller.say("")
    teller.say(f"Killing host {story.victim}, which carries {count} IPs.", "head")
    story.killed = faults.kill(cluster, story.victim)
    old = cluster.places[story.victim].mac
    waiting = story.lost()

    def told() -> bool:
        for ip in list(waiting):
            at = seen.timeline.taken(ip, story.killed, old)
            if at is not None:
                waiting.remove(ip)
                (mac, *_) = sorted(seen.timeline.macs(ip, at, at) - {old})
                after = f"{(at - story.killed) * 1000:6.0f} ms"
                teller.say(f"{after}  {ip} is answered by {cluster.host_of(mac)}")
        return not waiting

    seen.until(told, FAILOVER_PATIENCE)


def _after(story: Story) -> None:
    cluster, seen, timeline = story.cluster, story.seen, story.seen.timeline
    moved = time.monotonic()
    seen.look(AFTER)
    old, until = cluster.places[story.victim].mac, timeline.until
    story.losses = [verdict.loss(timeline, ip, old, story.killed, until) for ip in story.lost()]
    story.problems += verdict.moved(story.losses, old)
    kept = {ip: owner for ip, owner in story.owners.items() if owner != story.victim}
    wanted = {ip: cluster.places[owner].mac for ip, owner in kept.items()}
    story.problems += verdict.steady(timeline, wanted, story.killed, until)
    wanted |= {each.ip: min(each.by) for each in story.losses if each.by}
    story.problems += verdict.steady(timeline, wanted, moved, until)
    _table(story, cluster.settle(AGREE_PATIENCE, members=False, rest=seen.look))


def _table(story: Story, owners: dict[str, str]) -> None:
    cluster, timeline = story.cluster, story.seen.timeline
    since = timeline.until - BEFORE
    silent = {each.ip: f"{each.silent * 1000:.0f} ms" for each in story.losses}
    columns = ["NAME", "IP", "OWNER", "ANSWERED BY"]
    rows = [
        {
            "NAME": name,
            "IP": ip,
            "OWNER": owners[ip],
            "ANSWERED BY": ", ".join(sorted(timeline.macs(ip, since, timeline.until))) or "-",
            "BEFORE": story.owners[ip],
            "WITHOUT ANSWER": silent.get(ip, "-"),
        }
        for name, ip in cluster.record.ips.items()
    ]
    if story.losses:
        columns += ["BEFORE", "WITHOUT ANSWER"]
    story.teller.say("")
    story.teller.table(columns, rows)
    story.teller.say("")


def _end(story: Story, *, keep: bool) -> None:
    teller = story.teller
    for each in story.problems:
        teller.say(each, "bad")
    took = verdict.summary([each.taken for each in story.losses if each.taken is not None])
    if not story.problems and took is not None:
        teller.say(
            f"Every IP was answered by exactly one host before, and by exactly one other host "
            f"{took.worst * 1000:.0f} ms after the death of {story.victim} at the latest.",
            "good",
        )
    if keep:
        name = story.cluster.record.name
        teller.say(f"The lab stays: 'wayout lab status --name {name}', then 'wayout lab down'.")
    else:
        teller.say("Namespaces, processes and files are removed.", "dim")


def _document(story: Story) -> dict[str, Any]:
    took = verdict.summary([each.taken for each in story.losses if each.taken is not None])
    return {
        "ok": not story.problems,
        "problems": story.problems,
        "nodes": len(story.cluster.nodes),
        "owners": story.owners,
        "victim": story.victim,
        "ready_seconds": round(story.ready, 3),
        "takeover_seconds": None if took is None else took.plain(),
        "moves": [each.plain() for each in story.losses],
        "interval_seconds": story.seen.timeline.interval,
        "slowest_seconds": round(story.seen.timeline.slowest, 6),
        "total_seconds": round(time.monotonic() - story.began, 3),
    }
