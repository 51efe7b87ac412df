"""Huge pages for what stays: a node that is woken now and then pays for every page it looks up.

Between two heartbeats the processor forgets where our memory is, and in a virtual machine each
page that is found again costs a walk through two tables. What was imported and built is therefore
moved into pages of 2 MiB, once. Sources: madvise(2), MADV_COLLAPSE (Linux 6.1).
"""

from __future__ import annotations

import ctypes
from pathlib import Path

HUGE = 2 << 20
_MADV_COLLAPSE = 25
MAPPINGS = Path("/proc/self/maps")


def collapse() -> int:
    """Move our memory, and the code of the interpreter, into huge pages; how many bytes were.

    An older kernel, or one that has no memory in one piece, refuses, which changes nothing. Takes
    some milliseconds for each 10 MiB.
    """
    try:
        madvise = ctypes.CDLL(None).madvise
        told = MAPPINGS.read_text()
    except (OSError, AttributeError):
        return 0
    moved = 0
    for line in told.splitlines():
        for start in _pieces(line):
            if madvise(ctypes.c_void_p(start), ctypes.c_size_t(HUGE), _MADV_COLLAPSE) == 0:
                moved += HUGE
    return moved


def _pieces(line: str) -> range:
    """Where huge pages would begin in a mapping that is worth it."""
    span, rights, _, _, inode, *_ = line.split()
    ours = rights == "rw-p" and inode == "0"
    if not ours and rights != "r-xp":
        return range(0)
    low, high = (int(each, 16) for each in span.split("-"))
    return range(-(-low // HUGE) * HUGE, high - HUGE + 1, HUGE)
