"""Rendezvous scores: how well a member suits an address, the same on every node for ever.

Scores are wire format: a node that computes others elects others. BLAKE2b (RFC 7693) with 8 bytes
over length-prefixed seed, length-prefixed packed address and the name; weights by -w / ln u
(Schindelhauer and Schomaker, 2005).
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from math import log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from egress.model import IP

SPAN = 2.0**64
SEED_MAX = 255


@lru_cache(maxsize=1 << 17)
def unit(ip: IP, name: str, seed: str) -> float:
    """-1 / ln u of the well-mixed hash of (seed, ip, name), u in (0, 1)."""
    prefix = seed.encode()[:SEED_MAX]
    packed = ip.packed
    message = bytes([len(prefix)]) + prefix + bytes([len(packed)]) + packed + name.encode()
    number = int.from_bytes(blake2b(message, digest_size=8).digest(), "big")
    # The half keeps u away from 0; the largest numbers round to 1, whose logarithm is 0.
    u = min((number + 0.5) / SPAN, 1.0 - 2.0**-53)
    return -1.0 / log(u)


def score(ip: IP, name: str, seed: str = "", weight: float = 1.0) -> float:
    """The score of `name` for `ip`; the highest wins, ties go to the greater name."""
    return weight * unit(ip, name, seed)
