"""What decoding costs: every recorded vector, against its limit and against msgpack alone.

The limit is LIMIT for any datagram, and for any time that reading a stream holds the loop: long
streams are read in turns, and one with thousands of LZW codes takes some milliseconds in all.
The ratio says what layers, checks and values cost on top of msgpack, measured in the same run.

python bench/bench_wire.py
"""

import base64
import gc
import json
import statistics
import sys
import time
from pathlib import Path

import msgpack

from gossip.wire import codec
from gossip.wire.messages import WireError
from gossip.wire.packet import Envelope
from gossip.wire.seal import Keyring
from gossip.wire.stream import Assembler

FOLDER = Path(__file__).parents[1] / "tests" / "vectors" / "memberlist"
LIMIT = 200e-6
ROUNDS = 50
"""The best of so many counts: the machine may be busy with something else."""
SHOWN = 6
BARE = {0, 1, 2, 3, 4, 5, 11}
"""Types whose body is one map, with nothing around it."""


def main():
    vectors = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]
    gc.disable()
    rows = [(*cost(each), each) for each in vectors]
    rows.sort(key=lambda row: -row[1])
    print(f"{len(rows)} vectors, each the best of {ROUNDS}; no turn may take {LIMIT * 1e6:.0f} µs")
    print("   turn µs    all µs  bytes  the slowest")
    for turn, whole, vector in rows[:SHOWN]:
        size = len(vector["hex"]) // 2
        name = f"{vector['id']} ({vector['transport']})"
        print(f"  {turn * 1e6:8.1f}  {whole * 1e6:8.1f} {size:6}  {name}")
    median = statistics.median(row[1] for row in rows)
    print(f"  {'':8}  {median * 1e6:8.1f}         median")
    ratios = [whole / best(msgpack_alone(each)) for _, whole, each in rows if bare(each)]
    print(f"{len(ratios)} bare messages: {statistics.median(ratios):.1f} times msgpack alone")
    turn, _, worst = max(rows, key=lambda row: row[0])
    if turn > LIMIT:
        sys.exit(f"{worst['id']} holds the loop for {turn * 1e6:.0f} µs, the limit is 200")


def cost(vector):
    """Seconds of the longest turn, and of all turns together, of reading this vector."""
    data = bytes.fromhex(vector["hex"])
    ring = Keyring((base64.b64decode(vector["key"]),)) if vector["key"] else None
    envelope = Envelope(label=(vector["label"] or "").encode(), keyring=ring)
    if vector["transport"] == "udp":
        seconds = best(lambda: envelope.open(data), forget=codec._often.cache_clear)
        return seconds, seconds
    dialler = vector["role"] == "server"
    found = [turns(Assembler(envelope, dialler=dialler), data) for _ in range(ROUNDS)]
    # The same turns every time: each is as long as at its best.
    best_ones = [min(times) for times in zip(*found, strict=True)]
    return max(best_ones), sum(best_ones)


def turns(assembler, data):
    """Seconds of each turn."""
    found, began = [], time.perf_counter()
    try:
        for _ in assembler.work(data):
            found.append(time.perf_counter() - began)
            began = time.perf_counter()
    except WireError:
        pass  # One was recorded with a wrong label.
    return [*found, time.perf_counter() - began]


def bare(vector):
    plain = not vector["key"] and not vector["label"] and vector["transport"] == "udp"
    return plain and int(vector["hex"][:2], 16) in BARE


def msgpack_alone(vector):
    data = bytes.fromhex(vector["hex"])[1:]
    return lambda: msgpack.unpackb(data, raw=True)


def best(work, forget=lambda: None):
    """The shortest time of `work`, done anew each time: `forget` is called before it."""
    found = []
    for _ in range(ROUNDS):
        forget()
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)


if __name__ == "__main__":
    main()
