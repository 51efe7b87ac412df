"""Which wayout this is: version, protocol and build.

A constant and not the metadata of the installed package: reading that costs more than the rest of
`wayout version`. A test compares the two.
"""

from __future__ import annotations

import os

VERSION = "0.1.0"
PROTOCOL = "memberlist 1-5, speaks 2"
"""As in gossip.peer.PROTOCOL_VERSIONS, for people."""


def describe() -> dict[str, str]:
    """`wayout version --json`; images and packages say what they were built from."""
    build = os.environ.get("WAYOUT_BUILD", "") or "source"
    return {"version": VERSION, "protocol": PROTOCOL, "build": build}
