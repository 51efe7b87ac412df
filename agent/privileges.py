"""What this process may do to the kernel, and what it would need."""

from __future__ import annotations

from pathlib import Path

CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13}
"""Capability numbers (linux/capability.h): to hold addresses, and to speak ARP and NDP."""


def missing_privileges(status: Path = Path("/proc/self/status")) -> list[str]:
    """Names of the capabilities that this process lacks."""
    effective = 0
    for line in status.read_text().splitlines():
        if line.startswith("CapEff:"):
            effective = int(line.split()[1], 16)
    return [name for name, number in CAPABILITIES.items() if not effective >> number & 1]
