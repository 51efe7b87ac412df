"""The CRC wrapper: type 12, CRC-32 of the rest, the rest."""

from __future__ import annotations

from zlib import crc32

from gossip.wire.messages import WireError

KIND = 12
OVERHEAD = 5


def close(plain: bytes) -> bytes:
    """`plain` with its checksum before it."""
    return bytes([KIND]) + crc32(plain).to_bytes(4, "big") + plain


def open_(data: bytes) -> bytes:
    """The bytes behind the checksum, if there is one; WireError when it does not match."""
    if not data or data[0] != KIND or len(data) < OVERHEAD:
        return data
    plain = data[OVERHEAD:]
    if crc32(plain) != int.from_bytes(data[1:OVERHEAD], "big"):
        raise WireError("bad_checksum")
    return plain
