"""Our own messages, states and metadata: two magic bytes, a kind, one msgpack value.

0xC1 is never valid msgpack and no type of serf, so other programs cannot mistake them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgpack

from gossip.wire.messages import WireError

if TYPE_CHECKING:
    from gossip.events import Plain

MAGIC = b"\xc1\x01"
HEADER = len(MAGIC) + 1
SIZE_MAX = 1 << 22
ITEMS_MAX = 160_000
"""Values of one message, containers counted: what takes some 25 ms to read.

A full table of claims comes to nine for each of its 16 000 rows.
"""
DEPTH_MAX = 16
"""Lists and maps within each other; who reads a value may do so recursively."""

HEARTBEAT, SILENT, UNREACHABLE, META, STATE, REACHABLE, REQUEST, REPLY = range(1, 9)


def is_ours(data: bytes) -> bool:
    """Whether these bytes claim to be a message of ours."""
    return data.startswith(MAGIC)


def pack(kind: int, value: Plain) -> bytes:
    """`value` as a message of `kind` (0 to 255)."""
    return MAGIC + bytes([kind]) + bytes(msgpack.packb(value, use_bin_type=True))


class _Budget:
    """How many values a long message may still hold: msgpack limits each container alone."""

    def __init__(self) -> None:
        self._left = ITEMS_MAX

    def list(self, values: list[Plain]) -> list[Plain]:
        self._spend(1 + len(values))
        return values

    def map(self, fields: dict[Any, Plain]) -> dict[str, Plain]:
        self._spend(1 + len(fields))
        return _plain_keys(fields)

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise WireError("too_many_items")


def _no_extension(_code: int, _data: bytes) -> Plain:
    raise ValueError("an extension is no plain value")


def _plain_keys(fields: dict[Any, Plain]) -> dict[str, Plain]:
    for key in fields:
        if type(key) is not str:
            raise ValueError("a key of a plain value is text")
    return fields


def unpack(data: bytes) -> tuple[int, Plain]:
    """Kind and value; WireError when these bytes are not ours or make no sense."""
    if not is_ours(data) or len(data) <= HEADER:
        raise WireError("not_ours")
    if len(data) > SIZE_MAX:
        raise WireError("too_long")
    # A short one cannot hold too many: each value takes a byte.
    budget = _Budget() if len(data) > ITEMS_MAX else None
    try:
        value = msgpack.unpackb(
            memoryview(data)[HEADER:],
            raw=False,
            list_hook=budget and budget.list,
            object_hook=budget.map if budget else _plain_keys,
            ext_hook=_no_extension,
            max_array_len=ITEMS_MAX,
            max_map_len=ITEMS_MAX,
            max_ext_len=0,
            strict_map_key=True,
        )
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError) as error:
        raise WireError("not_msgpack") from error
    _require_shallow(value)
    return data[len(MAGIC)], cast("Plain", value)


def _require_shallow(value: Plain) -> None:
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [
            inner
            for each in level
            if isinstance(each, list | dict)
            for inner in (each if isinstance(each, list) else each.values())
        ]
        if not level:
            return
    raise WireError("too_deep")
