"""LZW as Go's compress/lzw with LSB order and 8-bit literals (the GIF variant).

Codes 0-255 are literals, 256 clears, 257 ends, 258 and up stand in the table; widths grow from 9
to 12 bits. The encoder clears at 4095, one before the table is full, as Go does.
"""

from __future__ import annotations

from gossip.wire.messages import WireError

CLEAR, EOF = 256, 257
FIRST = 258
WIDTH_MIN, WIDTH_MAX = 9, 12
LAST_CODE = (1 << WIDTH_MAX) - 1
LITERALS = tuple(bytes([value]) for value in range(CLEAR))
BATCH = 64
"""Codes that one step takes."""


def decode(data: bytes, limit: int) -> bytes:
    """The plain bytes; WireError when invalid, cut off, or more than `limit` come out."""
    decoder = Decoder(data, limit)
    while not decoder.step():
        pass
    return decoder.plain()


class Decoder:
    """Decodes in steps, so that a long text need not hold the loop.

    There is no table: entry number j after a reset is the text of code number j and the first byte
    of the text after it, and both stand in what was decoded since.
    """

    def __init__(self, data: bytes, limit: int) -> None:
        self._data = data
        self._limit = limit
        self._position = 0  # in bits
        self._size = 0
        self._done: list[bytes] = []
        self._reset()

    def plain(self) -> bytes:
        """Everything, once `step` has said that this was the end."""
        return b"".join(self._done)

    def step(self) -> bool:
        """Take up to `BATCH` codes; whether the end has been reached. Raises WireError."""
        codes = self._codes()
        mark = None
        if CLEAR in codes or EOF in codes:
            mark = next(code for code in codes if code in (CLEAR, EOF))
            del codes[codes.index(mark) :]
        known = len(self._texts)
        self._read(codes)
        self._position += self._width * (len(codes) + (mark is not None))
        self._size += sum(map(len, self._texts[known:]))
        if self._size > self._limit:
            raise WireError("decompressed_too_long")
        if mark is not None:
            self._done += self._texts
            self._reset()
        elif self._width < WIDTH_MAX and EOF + len(self._texts) == 1 << self._width:
            self._width += 1
        return mark == EOF

    def _reset(self) -> None:
        self._texts: list[bytes] = []
        self._width = WIDTH_MIN

    def _codes(self) -> list[int]:
        """The next codes that are surely of one width."""
        width, start = self._width, self._position
        count = min(BATCH, (8 * len(self._data) - start) // width)
        if width < WIDTH_MAX:
            count = min(count, (1 << width) - EOF - len(self._texts))
        if count <= 0:
            raise WireError("truncated")
        end = start + count * width
        bits = int.from_bytes(self._data[start >> 3 : (end + 7) >> 3], "little") >> (start & 7)
        mask = (1 << width) - 1
        return [bits >> shift & mask for shift in range(0, count * width, width)]

    def _read(self, codes: list[int]) -> None:
        texts = self._texts
        add = texts.append
        try:
            for code in codes:
                if code < CLEAR:
                    add(LITERALS[code])
                    continue
                place = code - FIRST
                head = texts[place]
                try:
                    add(head + texts[place + 1][:1])
                except IndexError:  # The text that is just being made: it begins as its head.
                    add(head + head[:1])
        except IndexError:
            raise WireError("bad_compression") from None


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
