"""Several messages in one datagram: count, lengths, parts.

Receivers before memberlist 0.2.4 compute the size of the length table in eight bits, so nobody
gets more than 127 parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossip.wire.messages import WireError

if TYPE_CHECKING:
    from collections.abc import Sequence

KIND = 7
SENT_MAX = 127
PART_MAX = 0xFFFF


def bundle(parts: Sequence[bytes]) -> bytes:
    """One message as it is, several as a compound; at most `SENT_MAX`."""
    if len(parts) == 1:
        return parts[0]
    assert 0 < len(parts) <= SENT_MAX
    lengths = b"".join(len(part).to_bytes(2, "big") for part in parts)
    return bytes((KIND, len(parts))) + lengths + b"".join(parts)


def split(data: bytes) -> list[bytes]:
    """The parts that are there in full; a cut-off one and what follows it are lost (as in Go)."""
    if len(data) < 2:  # noqa: PLR2004 - type and count
        raise WireError("truncated")
    count = data[1]
    start = 2 + 2 * count
    if len(data) < start:
        raise WireError("truncated")
    parts = []
    for position in range(2, start, 2):
        end = start + int.from_bytes(data[position : position + 2], "big")
        if end > len(data):
            break
        parts.append(data[start:end])
        start = end
    return parts
