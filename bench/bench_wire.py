"""What decoding costs: every recorded vector, against its limit and against msgpack alone.

The limit is LIMIT for any vector. The ratio says what layers, checks and values cost on top of
msgpack, measured in the same run. python bench/bench_wire.py
"""

import base64
import gc
import json
import statistics
import sys
import time
from pathlib import Path

import msgpack

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
    rows = [(best(decoder(each)), each) for each in vectors]
    rows.sort(key=lambda row: -row[0])
    print(f"{len(rows)} vectors, each the best of {ROUNDS}; limit {LIMIT * 1e6:.0f} µs; slowest:")
    for seconds, vector in rows[:SHOWN]:
        size = len(vector["hex"]) // 2
        print(f"  {seconds * 1e6:7.1f} µs {size:6} bytes  {vector['id']} ({vector['transport']})")
    print(f"  {statistics.median(row[0] for row in rows) * 1e6:7.1f} µs median")
    ratios = [seconds / best(msgpack_alone(each)) for seconds, each in rows if bare(each)]
    print(f"{len(ratios)} bare messages: {statistics.median(ratios):.1f} times msgpack alone")
    seconds, worst = rows[0]
    if seconds > LIMIT:
        sys.exit(f"{worst['id']} takes {seconds * 1e6:.0f} µs, more than {LIMIT * 1e6:.0f}")


def decoder(vector):
    """A function that reads this vector as a node would."""
    data = bytes.fromhex(vector["hex"])
    ring = Keyring((base64.b64decode(vector["key"]),)) if vector["key"] else None
    envelope = Envelope(label=(vector["label"] or "").encode(), keyring=ring)
    if vector["transport"] == "udp":
        return lambda: envelope.open(data)
    dialler = vector["role"] == "server"

    def read():
        try:
            return Assembler(envelope, dialler=dialler).feed(data)
        except WireError as error:  # One was recorded with a wrong label.
            return error

    return read


def bare(vector):
    plain = not vector["key"] and not vector["label"] and vector["transport"] == "udp"
    return plain and int(vector["hex"][:2], 16) in BARE


def msgpack_alone(vector):
    data = bytes.fromhex(vector["hex"])[1:]
    return lambda: msgpack.unpackb(data, raw=True)


def best(work):
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)


if __name__ == "__main__":
    main()
