"""Our own messages, states and metadata: two magic bytes, a kind, one msgpack value.

0xC1 is never valid msgpack and no type of serf, so other programs cannot mistake them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgpack

from gossip.wire.messages import WireError

if TYPE_CHECKING:
    from gossip.events import Plain

MAGIC = b"\xc1\x01"
HEADER = len(MAGIC) + 1
SIZE_MAX = 1 << 22
ITEMS_MAX = 1 << 17

HEARTBEAT, SILENT, UNREACHABLE, META, STATE, REACHABLE = range(1, 7)


def is_ours(data: bytes) -> bool:
    """Whether these bytes claim to be a message of ours."""
    return data.startswith(MAGIC)


def pack(kind: int, value: Plain) -> bytes:
    """`value` as a message of `kind` (0 to 255)."""
    return MAGIC + bytes([kind]) + bytes(msgpack.packb(value, use_bin_type=True))


def unpack(data: bytes) -> tuple[int, Plain]:
    """Kind and value; WireError when these bytes are not ours or make no sense."""
    if not is_ours(data) or len(data) <= HEADER:
        raise WireError("not_ours")
    if len(data) > SIZE_MAX:
        raise WireError("too_long")
    try:
        value = msgpack.unpackb(
            memoryview(data)[HEADER:],
            raw=False,
            max_array_len=ITEMS_MAX,
            max_map_len=ITEMS_MAX,
            max_ext_len=0,
            strict_map_key=True,
        )
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError) as error:
        raise WireError("not_msgpack") from error
    return data[len(MAGIC)], cast("Plain", value)
