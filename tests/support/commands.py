"""Programs run to their end, whatever their exit code."""

import subprocess
import sys


def run(*command):
    """Any program; output as text."""
    return subprocess.run([*command], capture_output=True, text=True, check=False)


def wayout(*arguments):
    """`wayout` of this checkout, as a process of its own."""
    return run(sys.executable, "-m", "agent", *arguments)
