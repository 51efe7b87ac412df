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
BELOW_ONE = 1.0 - 2.0**-53
SEED_MAX = 255
MEMORY = 1 << 13
"""Single scores that are remembered; the election keeps its own table of all."""


def prefix(ip: IP, seed: str = "") -> bytes:
    """What is hashed before the name: the same for all names."""
    salt = seed.encode()[:SEED_MAX]
    packed = ip.packed
    return bytes([len(salt)]) + salt + bytes([len(packed)]) + packed


def hashed(start: bytes, name: bytes) -> float:
    """-1 / ln u of the well-mixed hash of `start` and the name, u in (0, 1)."""
    number = int.from_bytes(blake2b(start + name, digest_size=8).digest(), "big")
    # The half keeps u away from 0; the largest numbers round to 1, whose logarithm is 0.
    u = (number + 0.5) / SPAN
    return -1.0 / log(u if u < 1.0 else BELOW_ONE)


@lru_cache(maxsize=MEMORY)
def unit(ip: IP, name: str, seed: str) -> float:
    """The score of weight 1, remembered."""
    return hashed(prefix(ip, seed), name.encode())


def score(ip: IP, name: str, seed: str = "", weight: float = 1.0) -> float:
    """The score of `name` for `ip`; the highest wins, ties go to the greater name."""
    return weight * unit(ip, name, seed)
