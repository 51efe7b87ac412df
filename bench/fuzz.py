"""Coverage-guided fuzzing of every decoder of bytes from the network, with atheris (libFuzzer).

python bench/fuzz.py [--seconds 600] [--only NAME ...] [--list]

Each decoder gets its share of the time in a process of its own, beginning with the recorded
vectors. What coverage found is then replayed without instrumentation, round after round: that
gives the worst time of one input and the growth of memory. The exit code is 1 when a decoder
crashed, hung, took longer than LIMIT for one input, or grew; the input is then kept as a file in
tests/fuzz/regressions/, which the fast tests replay from then on.
"""

import argparse
import contextlib
import gc
import hashlib
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

GROWTH_MAX = 2 << 20
"""Bytes by which replaying may grow the process, once all caches are warm."""
LONGEST = 65536
HANG = 10
"""Seconds after which libFuzzer gives an input up."""
MEMORY_MAX = 2048
ROUNDS_MIN = 3
REPLAYED_MIN = 20_000
REPLAY_SHARE = 0.1
"""Of the time of a decoder."""
SLOWEST_KEPT = 16
TRIES = 3
"""A slow input is one that is slow every time: the machine may be busy with something else."""


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--seconds", type=float, default=600.0, help="for all decoders together")
    words.add_argument("--only", nargs="+", metavar="NAME", help="these decoders alone")
    words.add_argument("--list", action="store_true", help="name the decoders")
    words.add_argument("--child", nargs=2, metavar=("fuzz|replay", "NAME"), help=argparse.SUPPRESS)
    words.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = words.parse_args()
    if asked.child:
        work = {"fuzz": fuzz, "replay": replay}[asked.child[0]]
        work(asked.child[1], asked.folder, asked.seconds)
        return
    from support.decoders import DECODERS

    if asked.list:
        print("\n".join(DECODERS))
        return
    if unknown := set(asked.only or ()) - DECODERS.keys():
        words.error(f"no decoder {min(unknown)!r}: --list names them")
    sys.exit(all_of(asked.only or list(DECODERS), asked.seconds))


# The parent.


def all_of(names, seconds):
    """Fuzz these decoders; the exit code."""
    share = seconds / len(names)
    print(f"{len(names)} decoders, {share:.1f} s each; limits: {limit() * 1000:.0f} ms for one")
    print(f"input, {GROWTH_MAX >> 10} KiB of growth over {REPLAYED_MIN} replays, no crash")
    row = "{:20} {:>9} {:>7} {:>9} {:>9} {:>10} {:>8}"
    print(row.format("decoder", "runs", "corpus", "replays", "worst ms", "growth KiB", "verdict"))
    failed = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
            found = one(name, Path(folder), share)
        verdict = found["verdict"]
        worst, growth = found["worst"] * 1000, found["growth"] >> 10
        figures = (found["runs"], found["corpus"], found["replays"], f"{worst:.2f}", growth)
        print(row.format(name, *figures, verdict), flush=True)
        failed += [name] if verdict != "ok" else []
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def one(name, folder, seconds):
    """Fuzz and replay one decoder."""
    for part in ("seeds", "corpus", "slow", "artifacts"):
        (folder / part).mkdir()
    child("fuzz", name, folder, seconds * (1 - REPLAY_SHARE))
    crashed = sorted((folder / "artifacts").iterdir())
    runs = read(folder / "fuzz.json")["runs"]
    found = {"runs": runs, "corpus": len(list((folder / "corpus").iterdir()))}
    code = child("replay", name, folder, seconds * REPLAY_SHARE)
    found = read(folder / "replay.json") | found
    if crashed:
        print((folder / "fuzz.log").read_text(errors="replace")[-2000:], file=sys.stderr)
    verdict = "ok"
    if found["growth"] > GROWTH_MAX:
        verdict = "grew"
    if found["worst"] > limit():
        verdict = "slow"
    if crashed or code:
        verdict = "crashed"
    if not found["runs"]:
        print((folder / "fuzz.log").read_text(errors="replace")[-2000:], file=sys.stderr)
        verdict = "not run"
    keep(name, [*crashed, *map(Path, found["slow"])])
    return found | {"verdict": verdict}


def child(work, name, folder, seconds):
    command = [sys.executable, __file__, "--child", work, name]
    command += ["--folder", str(folder), "--seconds", str(seconds)]
    with (folder / f"{work}.log").open("w") as log:
        done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
    if done.returncode and work == "replay":
        print((folder / "replay.log").read_text(errors="replace")[-2000:], file=sys.stderr)
    return done.returncode


def read(path):
    empty = {"runs": 0, "replays": 0, "worst": 0.0, "growth": 0, "slow": []}
    with contextlib.suppress(OSError, ValueError):
        return empty | json.loads(path.read_text())
    return empty


def keep(name, paths):
    """The offending inputs, where the fast tests find them."""
    from support.decoders import REGRESSIONS

    for path in paths:
        data = path.read_bytes()
        kept = REGRESSIONS / name / hashlib.sha256(data).hexdigest()[:16]
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(data)
        print(f"kept {kept}", file=sys.stderr)


def limit():
    from support.decoders import LIMIT

    return LIMIT


# The children.


def fuzz(name, folder, seconds):
    """Look for inputs, guided by coverage; atheris ends the process."""
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is missing: 'make soak' installs it (CPython 3.11 to 3.13 on Linux)")
    with atheris.instrument_imports(include=["agent", "egress", "gossip"]):
        from support.decoders import DECODERS, seeds
    for number, data in enumerate(seeds(name)):
        (folder / "seeds" / str(number)).write_bytes(data[:LONGEST])
    decode, tally = DECODERS[name], Tally(folder)

    def take(data):
        began = time.process_time()
        decode(data)
        tally.count(data, time.process_time() - began)

    words = [f"-max_total_time={math.ceil(seconds)}", f"-max_len={LONGEST}", f"-timeout={HANG}"]
    words += [f"-rss_limit_mb={MEMORY_MAX}", f"-artifact_prefix={folder / 'artifacts'}/"]
    places = [str(folder / "corpus"), str(folder / "seeds")]
    atheris.Setup([sys.argv[0], *words, *places], take)
    atheris.Fuzz()


class Tally:
    """Runs so far, and the slowest inputs; written as it goes, since the process just ends."""

    def __init__(self, folder):
        self._folder = folder
        self._runs = 0
        self._told = 0.0
        self._slowest = []

    def count(self, data, seconds):
        self._runs += 1
        if len(self._slowest) < SLOWEST_KEPT or seconds > self._slowest[0][0]:
            self._slow(data, seconds)
        if self._runs % 64 == 0 and time.monotonic() > self._told + 0.5:
            self._told = time.monotonic()
            (self._folder / "fuzz.json").write_text(json.dumps({"runs": self._runs}))

    def _slow(self, data, seconds):
        path = self._folder / "slow" / hashlib.sha256(data).hexdigest()
        if path.exists():
            return
        path.write_bytes(data)
        self._slowest = sorted([*self._slowest, (seconds, path)])
        if len(self._slowest) > SLOWEST_KEPT:
            self._slowest.pop(0)[1].unlink()


def replay(name, folder, seconds):
    """Decode what was found again and again, as the daemon would: time and memory."""
    from support.decoders import DECODERS, LIMIT, seeds

    decode = DECODERS[name]
    paths = [*(folder / "corpus").iterdir(), *(folder / "slow").iterdir()]
    inputs = [(path, path.read_bytes()) for path in paths]
    inputs += [(None, data) for data in seeds(name)]
    end = time.monotonic() + seconds
    worst, slow, replays, rounds, first = 0.0, [], 0, 0, 0
    while rounds < ROUNDS_MIN or replays < REPLAYED_MIN or time.monotonic() < end:
        for path, data in inputs:
            took = timed(decode, data)
            if took > LIMIT:
                took = min(took, *(timed(decode, data) for _ in range(TRIES)))
                slow += [str(path)] if took > LIMIT and path and str(path) not in slow else []
            worst = max(worst, took)
        replays += len(inputs)
        rounds += 1
        if not first and replays >= REPLAYED_MIN // 4:
            first = resident()
    found = {"replays": replays, "worst": worst, "growth": max(resident() - first, 0)}
    (folder / "replay.json").write_text(json.dumps(found | {"slow": slow}))


def timed(decode, data):
    began = time.process_time()
    decode(data)
    return time.process_time() - began


def resident():
    """Bytes of this process in memory, garbage not counted."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    main()
