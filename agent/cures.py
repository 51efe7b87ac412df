"""What a start finds in its way, and what it takes over from its predecessor, in words."""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.statefile import State
    from gossip.peer import Address


def unbindable(address: Address, error: OSError) -> str:
    """Why gossip cannot listen, and the cure."""
    match error.errno:
        case errno.EADDRINUSE:
            cure = (
                "another program, perhaps another wayout, has that port: stop it, or set "
                "gossip.bind_port to the same free port on every node"
            )
        case errno.EADDRNOTAVAIL:
            cure = "no interface of this host has that address: set node.address to one that has"
        case _:
            cure = "see the reason, and gossip.bind_address and gossip.bind_port"
    return f"cannot listen for gossip on {address}, {os.strerror(error.errno or 0)}, {cure}"


def wished(state: State, now: float) -> tuple[bool, float | None]:
    """The drain that outlived our predecessor; its end is Unix time on disk, loop time here."""
    if state.drain_until is None:
        return state.draining, None
    left = state.drain_until - time.time()
    return state.draining and left > 0, now + left
