"""The promises of membership, measured in virtual time, each with its limit and its seed.

Quick by default; `--full` adds clusters of 1000, an hour of virtual time, and a long partition.
"""

import argparse
import sys
import time
from random import Random

from gossip.simulator.link import Link
from gossip.simulator.scenario import PRESETS, Run, Scenario, Stall, run

WIDE = "{:<58} {:>12} {:>12}  {:<6} {}"


class Table:
    def __init__(self):
        self.failed = 0
        print(WIDE.format("CLAIM", "LIMIT", "MEASURED", "", "SEED"))

    def line(self, claim, limit, value, seed):
        holds = value is not None and value <= limit
        self.failed += not holds
        shown = "nothing" if value is None else f"{value:.3f}"
        verdict = "ok" if holds else "FAILS"
        print(WIDE.format(claim, f"{limit:g}", shown, verdict, seed), flush=True)


def deaths_of_owners(table, sizes, seed):
    for size in sizes:
        kill = max(1, min(size // 3, 20))
        result = run(
            Scenario(nodes=size, owners=kill, kill=kill, duration=6.0 * kill, seed=seed), Random
        )
        found, known = result.detection, result.known_by(0.99)
        label = f"an owner of {size} dies ({kill} times): unreachable"
        table.line(f"{label}, median s", 0.5, found and found.p50, seed)
        table.line(f"{label}, p99 s", 0.9, found and found.p99, seed)
        late = known and found and known.max - found.p50
        limit = 1.0 if size >= 1000 else 0.5
        table.line(f"known to 99 % of {size}, s after the median", limit, late, seed)


def death_of_another(table, seed):
    result = run(Scenario(nodes=100, owners=0, kill=10, duration=150.0, seed=seed), Random)
    found = result.detection
    table.line("a node of 100 without addresses dies, median s", 5.5, found and found.p50, seed)


def false_deaths(table, minutes, seed):
    duration = minutes * 60.0
    common = {"nodes": 100, "owners": 10, "duration": duration, "seed": seed}
    lossy = run(Scenario(**common, link=Link(loss=0.05)), Random)
    table.line(f"false deaths at 5 % loss, {minutes} min", 0, lossy.alarms.deaths, seed)
    stalled = run(Scenario(**common, stall=Stall(nodes=10, seconds=0.5, every=10.0)), Random)
    table.line(f"false deaths, 10 stalled, {minutes} min", 0, stalled.alarms.deaths, seed)
    bad = Link(loss=0.25)
    ours = run(Scenario(**common, link=bad), Random).alarms.deaths
    theirs = run(
        Scenario(**common, link=bad, tuning=PRESETS["memberlist-lan"]()), Random
    ).alarms.deaths
    claim = f"false deaths at 25 % loss, {minutes} min; memberlist-lan: {theirs}"
    table.line(claim, theirs / 10, ours, seed)


def traffic(table, sizes, seed):
    plain = {}
    for size in sizes:
        quiet = run(Scenario(nodes=size, owners=0, duration=30.0, seed=seed), Random)
        plain[size] = quiet.rates.packets
        print(f"   {size} nodes: {quiet.rates.packets:.2f} packets/s, {quiet.rates.octets:.0f} B/s")
    spread = max(plain.values()) / min(plain.values()) - 1
    table.line(f"packets a node at {sizes}: largest over least - 1", 0.3, spread, seed)
    owned = run(Scenario(nodes=100, owners=10, duration=30.0, seed=seed), Random)
    more = owned.owner_rates.packets - plain[100]
    table.line("packets/s more that an owner of 100 sends", 35.0, more, seed)


def partition(table, nodes, minutes, seed):
    scenario = Scenario(nodes=nodes, owners=2, duration=minutes * 60.0 + 60.0, seed=seed)
    under_way = Run(scenario, Random)
    under_way.advance(20.0)
    network = under_way.network
    network.part(*under_way.names[: nodes // 3])
    under_way.advance(minutes * 60.0)
    apart, healed = network.views(), network.now
    network.heal()
    while network.views() > 1 and not under_way.done:
        under_way.advance(0.1)
    took = network.now - healed if apart > 1 and network.views() == 1 else None
    table.line(f"{nodes} nodes, {minutes} min of partition: one view after s", 15.0, took, seed)


def rapid_loss(table, seed):
    under_way = Run(Scenario(nodes=1000, owners=10, duration=60.0, seed=seed), Random)
    under_way.advance(12.0)
    ill = set(under_way.names[-10:])
    for name in ill:
        under_way.network.lossy(name, 0.8)
    rapid(table, under_way, ill, "1 % of 1000 with 80 % loss", seed)


def rapid_flip(table, seed):
    under_way = Run(Scenario(nodes=1000, owners=10, duration=80.0, seed=seed), Random)
    under_way.advance(12.0)
    ill = set(under_way.names[-10:])
    for start in (0.0, 40.0):
        begin = under_way.network.now + start
        for name in ill:
            host = under_way.network.hosts[name]
            under_way.network.at(begin, lambda name=name: under_way.network.part(name))
            under_way.network.at(begin + 20.0, lambda host=host: setattr(host, "side", 0))
    rapid(table, under_way, ill, "10 of 1000 go and come, 20 s each", seed)


def rapid(table, under_way, ill, label, seed):
    from gossip.simulator.measure import alarms

    while not under_way.done:
        under_way.advance(5.0)
    result = under_way.result()
    print("   views:", " ".join(f"{at:.0f}s:{count}" for at, count in result.views[::5]))
    healthy = [name for name in under_way.names if name not in ill]
    wrong = alarms(under_way.network, 1010.0, of=healthy).deaths
    table.line(f"{label}: healthy ones removed", 0, wrong, seed)


def cost(table, seed):
    began = time.process_time()
    under_way = Run(Scenario(nodes=1000, owners=100, duration=60.0, seed=seed), Random)
    under_way.advance(10.0)
    gathered = time.process_time()
    print(f"   1000 nodes gathered in {gathered - began:.1f} s of CPU")
    while not under_way.done:
        under_way.advance(5.0)
    table.line("1000 nodes, 100 owners, 60 s: CPU s", 30.0, time.process_time() - gathered, seed)


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--full", action="store_true", help="1000 nodes, an hour, a long partition")
    words.add_argument("--seed", type=int, default=1)
    asked = words.parse_args()
    table, seed = Table(), asked.seed
    deaths_of_owners(table, (3, 10, 100, 1000) if asked.full else (3, 10, 100), seed)
    death_of_another(table, seed)
    traffic(table, (5, 100, 1000) if asked.full else (5, 100), seed)
    partition(table, 12, 10 if asked.full else 2, seed)
    false_deaths(table, 60 if asked.full else 1, seed)
    if asked.full:
        rapid_loss(table, seed)
        rapid_flip(table, seed)
        cost(table, seed)
    sys.exit(f"{table.failed} claims do not hold" if table.failed else 0)


if __name__ == "__main__":
    main()
