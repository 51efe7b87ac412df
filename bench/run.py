"""Every benchmark, one after the other, each against a peer or a limit in the same run.

`--full` lets those that can take long do so.
"""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
LONG = ("bench_simulation.py",)


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--full", action="store_true", help="hours of virtual time, large clusters")
    full = words.parse_args().full
    failed = []
    for script in sorted(HERE.glob("bench_*.py")):
        print(f"== {script.name}", flush=True)
        options = ["--full"] if full and script.name in LONG else []
        done = subprocess.run([sys.executable, str(script), *options], check=False)
        if done.returncode:
            failed.append(script.name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
