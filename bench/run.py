"""Every benchmark, one after the other, each against a peer or a limit in the same run."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main():
    failed = []
    for script in sorted(HERE.glob("bench_*.py")):
        print(f"== {script.name}", flush=True)
        done = subprocess.run([sys.executable, str(script)], check=False)
        if done.returncode:
            failed.append(script.name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
