"""The entry of `wayout`: hold SIGHUP back before anything else, then hand over to the commands."""

import signal

# The default of SIGHUP is death, and `systemctl reload` may come while the daemon still imports.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})

import sys  # noqa: E402 - whatever is imported comes after the mask
from typing import NoReturn  # noqa: E402


def main() -> NoReturn:
    """Run one command and exit with its code."""
    if "run" not in sys.argv[1:]:
        # Only the daemon listens to SIGHUP; a command dies with its terminal as all do.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    from agent.cli.group import wayout

    sys.exit(wayout.main(prog_name="wayout"))


if __name__ == "__main__":
    main()
