"""The kernel, what this process may do to it, and the clock."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from agent.privileges import missing_privileges
from agent.sysctls import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKS_SINCE = (5, 18)
"""The first Linux that keeps IFA_PROTO, the mark on our addresses."""
LEASES_IN_TRAINS_SINCE = (4, 20)
"""The first Linux whose packet sockets can leave out what this host sends itself."""
TIMEX_BYTES = 256
"""More than struct timex has on any architecture; zeros ask and change nothing."""
TIME_ERROR = 5


def examine() -> Iterator[Finding]:
    """Everything about this machine."""
    yield of_release(os.uname().release)
    yield of_privileges(missing_privileges())
    yield of_ipv6(Path("/proc/net/if_inet6").exists())
    yield of_clock(_clock_state())


def of_release(release: str) -> Finding:
    """What this kernel lacks."""
    found = re.match(r"(\d+)\.(\d+)", release)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    what = f"the kernel is Linux {release}"
    if version < LEASES_IN_TRAINS_SINCE:
        why = "it is older than anything wayout was tried on"
        return Finding(Severity.ERROR, what, why, "install Linux 5.18 or newer")
    if version < MARKS_SINCE:
        why = "addresses cannot be marked, so only the state file knows which are ours"
        return Finding(
            Severity.WARNING, what, why, "keep state.dir, or install Linux 5.18 or newer"
        )
    return Finding(Severity.OK, what, "addresses can be marked as ours")


def of_privileges(missing: list[str]) -> Finding:
    """Whether addresses can be held and the LAN be asked."""
    if not missing:
        return Finding(
            Severity.OK, "CAP_NET_ADMIN and CAP_NET_RAW are there", "addresses can be held"
        )
    return Finding(
        Severity.ERROR,
        f"{' and '.join(missing)} missing here",
        "without them a daemon can hold no address, and this command not ask the LAN",
        "run it as root, or grant them (AmbientCapabilities= in a unit, capabilities in a pod)",
    )


def of_ipv6(there: bool) -> Finding:  # noqa: FBT001 - the one argument
    """Whether the kernel speaks IPv6 at all."""
    if there:
        return Finding(Severity.OK, "IPv6 is there", "egress IPs of both families can be bound")
    return Finding(
        Severity.NOTE,
        "this kernel has no IPv6",
        "IPv6 egress IPs live on other nodes",
        "boot without ipv6.disable=1",
    )


def of_clock(state: int | None) -> Finding:
    """Whether somebody sets the clock; nothing is decided by it."""
    if state is None:
        return Finding(Severity.NOTE, "the state of the clock is not known", "logs may be off")
    if state == TIME_ERROR:
        return Finding(
            Severity.NOTE,
            "the clock is not synchronised",
            "times in logs, history and claims differ from those of other nodes; nothing else does",
            "run chrony or systemd-timesyncd",
        )
    return Finding(Severity.OK, "the clock is synchronised", "times of all nodes can be compared")


def _clock_state() -> int | None:
    try:
        adjtimex = ctypes.CDLL(None, use_errno=True).adjtimex
    except (OSError, AttributeError):
        return None
    state = adjtimex(ctypes.create_string_buffer(TIMEX_BYTES))
    return None if state < 0 else int(state)
