"""What reading a configuration costs, against PyYAML's C loader on the same text.

python bench/bench_config.py: CPU time, the least of several runs. Fails beyond a limit.
"""

import sys
import tempfile
import time
from pathlib import Path

import yaml

from config.load import Source, judged, load, surroundings
from config.yaml import parse

# Name, limit in milliseconds, limit as a multiple of the peer (None: no limit).
LIMITS = {
    "yaml: 5000 lines": (None, 1.5),
    "load: 5000 lines": (50.0, 2.0),
    "check: 600 nodes": (2000.0, None),
    "poll: nothing new": (1.0, None),
}


def lines(count):
    rows = ["version: 1", "egress:", "  egresses:"]
    for n in range((count - 3) // 3):
        rows += [f"    e{n}:", f"      egress_ip: 10.{n // 62500}.{n // 250 % 250}.{n % 250 + 1}"]
        rows.append("      priority: 3")
    return "\n".join(rows) + "\n"


def fleet():
    rows = ["version: 1", "groups:"]
    for rack in range(10):
        rows += [f"  - name: rack{rack}", f'    match: {{names: ["r{rack:02}-*"]}}']
        rows.append(f"    set: {{interfaces: {{default: bond{rack}}}}}")
    rows.append("nodes:")
    rows += [f"  r{n % 10:02}-n{n:03}: {{node: {{zone: r{n % 10:02}}}}}" for n in range(597)]
    rows += [f"  r00-x{n}: {{logging: {{level: debug}}}}" for n in range(3)]
    return "\n".join(rows) + "\n"


def least(action, times):
    taken = []
    for _ in range(times):
        began = time.process_time()
        action()
        taken.append(time.process_time() - began)
    return min(taken) * 1e3


def main():
    text = lines(5000)
    with tempfile.TemporaryDirectory() as folder:
        large, many = Path(folder, "large.yaml"), Path(folder, "many.yaml")
        large.write_text(text)
        many.write_text(fleet())
        source = Source(many, surroundings(environ={}))
        peer = least(lambda: yaml.load(text, Loader=yaml.CSafeLoader), 7)
        found = {
            "yaml: 5000 lines": least(lambda: parse("x", text.encode()), 7),
            "load: 5000 lines": least(lambda: load(large, environ={}), 7),
            "check: 600 nodes": least(lambda: list(judged(many, [None], and_named=True)), 3),
            "poll: nothing new": least(source.content, 20),
        }
    print(f"{'PyYAML C loader: 5000 lines':28s}{peer:9.2f} ms")
    failed = []
    for name, took in found.items():
        limit, ratio = LIMITS[name]
        bound = f"limit {limit:g} ms" if limit else ""
        against = f"{took / peer:5.2f} x peer, limit {ratio:g}" if ratio else ""
        print(f"{name:28s}{took:9.2f} ms  {bound:16s} {against}")
        # On a slow or busy machine the ratio tells more than the time.
        if (ratio and took > ratio * peer) or (limit and not ratio and took > limit):
            failed.append(name)
    if failed:
        sys.exit(f"beyond the limit: {', '.join(failed)}")


if __name__ == "__main__":
    main()
