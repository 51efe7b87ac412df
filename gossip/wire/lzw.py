"""LZW as Go's compress/lzw with LSB order and 8-bit literals (the GIF variant).

Codes 0-255 are literals, 256 clears, 257 ends, 258 and up stand in the table; widths grow from 9
to 12 bits. The encoder clears at 4095, one before the table is full, as Go does.
"""

from __future__ import annotations

from gossip.wire.messages import WireError

CLEAR, EOF = 256, 257
WIDTH_MIN, WIDTH_MAX = 9, 12
LAST_CODE = (1 << WIDTH_MAX) - 1
LITERALS = [bytes([value]) for value in range(256)]


def decode(data: bytes, limit: int) -> bytes:
    """The plain bytes; WireError when invalid, cut off, or more than `limit` come out."""
    out: list[bytes] = []
    size = bits = pending = 0
    width, overflow = WIDTH_MIN, 1 << WIDTH_MIN
    table = [*LITERALS, b"", b""]
    previous: bytes | None = None
    high = EOF
    for byte in data:
        bits |= byte << pending
        pending += 8
        if pending < width:
            continue
        code = bits & (1 << width) - 1
        bits >>= width
        pending -= width
        if code == CLEAR:
            del table[258:]
            width, overflow, previous, high = WIDTH_MIN, 1 << WIDTH_MIN, None, EOF
            continue
        if code == EOF:
            return b"".join(out)
        text = _text(code, high, table, previous)
        size += len(text)
        if size > limit:
            raise WireError("decompressed_too_long")
        out.append(text)
        if previous is not None:
            table.append(previous + text[:1])
        previous = text
        high += 1
        if high >= overflow:
            if width == WIDTH_MAX:
                previous = None
                high -= 1
            else:
                width += 1
                overflow = 1 << width
    raise WireError("truncated")


def _text(code: int, high: int, table: list[bytes], previous: bytes | None) -> bytes:
    if code < CLEAR or EOF < code < len(table):
        return table[code]
    if code == high and previous is not None:
        return previous + previous[:1]
    raise WireError("bad_compression")


class _Bits:
    """Codes packed least significant bit first."""

    def __init__(self) -> None:
        self.out = bytearray()
        self._bits = 0
        self._pending = 0

    def put(self, code: int, width: int) -> None:
        self._bits |= code << self._pending
        self._pending += width
        while self._pending >= 8:  # noqa: PLR2004 - a byte
            self.out.append(self._bits & 0xFF)
            self._bits >>= 8
            self._pending -= 8

    def end(self) -> bytes:
        if self._pending:
            self.out.append(self._bits & 0xFF)
        return bytes(self.out)


def encode(plain: bytes) -> bytes:
    """The same bytes that Go makes of `plain`."""
    bits = _Bits()
    bits.put(CLEAR, WIDTH_MIN)
    width, overflow, high = WIDTH_MIN, 1 << WIDTH_MIN, EOF
    table: dict[tuple[int, int], int] = {}
    if not plain:
        bits.put(EOF, width)
        return bits.end()
    code = plain[0]
    for byte in plain[1:]:
        known = table.get((code, byte))
        if known is not None:
            code = known
            continue
        bits.put(code, width)
        high += 1
        if high == overflow:
            width, overflow = width + 1, overflow << 1
        if high == LAST_CODE:
            bits.put(CLEAR, width)
            width, overflow, high = WIDTH_MIN, 1 << WIDTH_MIN, EOF
            table.clear()
        else:
            table[code, byte] = high
        code = byte
    bits.put(code, width)
    high += 1
    if high == overflow:
        width += 1
    if high == LAST_CODE:
        bits.put(CLEAR, width)
        width = WIDTH_MIN
    bits.put(EOF, width)
    return bits.end()
