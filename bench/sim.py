"""One simulated cluster, replayable from its seed: how long deaths take to be noticed.

Runs the real gossip machines in virtual time: joins NODES members, lets a tenth of them (at least
one) carry addresses, kills one that carries and one that does not, and prints when the others
came to know. `make sim SEED=7 NODES=200`.
"""

import argparse
import statistics
import sys
import time
from hashlib import blake2b
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from gossip.events import HealthChanged, Unreachable
from gossip.peer import Health
from support.cluster import Cluster

WATCHED, UNWATCHED = 5.0, 40.0


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--nodes", type=int, default=100)
    words.add_argument("--loss", type=float, default=0.0, help="share of datagrams, 0 to 1")
    asked = words.parse_args()
    if asked.nodes < 3:
        words.error("a cluster that can notice a death has 3 nodes at least")
    began = time.process_time()
    cluster = Cluster(seed=asked.seed, loss=asked.loss)
    print(f"{asked.nodes} nodes gather ...", flush=True)
    names = cluster.gather(asked.nodes)
    carriers = names[: max(asked.nodes // 10, 1)]
    for name in carriers:
        cluster.do(name, lambda machine, now: machine.carry(carrying=True, now=now))
    cluster.run(3.0)
    owner, other = carriers[0], names[-1]
    owner_died = crash(cluster, owner, WATCHED)
    other_died = crash(cluster, other, UNWATCHED)
    tell("an owner dies: verdict unreachable", first(cluster, Unreachable, owner, owner_died))
    tell("a node without addresses dies: dead", dead(cluster, other, other_died))
    false = sum(
        isinstance(event, HealthChanged)
        and event.member.health is Health.DEAD
        and event.member.name not in (owner, other)
        for host in cluster.hosts.values()
        for _, event in host.events
    )
    print(f"false deaths: {false}")
    digest = blake2b(repr(cluster.history()).encode(), digest_size=8).hexdigest()
    print(f"seed {asked.seed}, digest {digest}, {time.process_time() - began:.1f} s of CPU")


def crash(cluster, name, seconds):
    died = cluster.now
    cluster.crash(name)
    cluster.run(seconds)
    return died


def first(cluster, kind, name, since):
    """For each living member, seconds until it heard this about `name`."""
    found = []
    for host in cluster.hosts.values():
        times = [at for at, e in host.events if isinstance(e, kind) and e.name == name]
        found += [min(at - since for at in times)] if host.running and times else []
    return found


def dead(cluster, name, since):
    found = []
    for host in cluster.hosts.values():
        times = [
            at
            for at, event in host.events
            if isinstance(event, HealthChanged)
            and event.member.name == name
            and event.member.health is Health.DEAD
            and at >= since
        ]
        found += [min(times) - since] if host.running and times else []
    return found


def tell(what, seconds):
    if not seconds:
        print(f"{what}: nobody noticed")
        return
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)]
    print(
        f"{what}: {len(ordered)} members knew after {statistics.median(ordered):.3f} s (median), "
        f"{p99:.3f} s (p99), {ordered[-1]:.3f} s (last)"
    )


if __name__ == "__main__":
    main()
