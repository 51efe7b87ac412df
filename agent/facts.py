"""What a wayout member says of itself in its metadata, as a value and as plain data.

Metadata is at most 512 bytes, so keys are one letter and addresses are packed; `restarting` is
spelled out because gossip itself reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from gossip.wire import own
from gossip.wire.messages import WireError

if TYPE_CHECKING:
    from egress.model import IP, Network
    from gossip.events import Plain

LIMIT = 512
"""Bytes of metadata that memberlist carries."""
META_KIND = 4
"""Kind number of metadata among our own messages."""
MAC_BYTES = 6
MOST_MACS = 8
MOST_NETWORKS = 8
MOST_ADDRESSES = 8
MOST_LABELS = 32
MOST_REASONS = 8
MOST_LACKS = 8
LONGEST_TEXT = 128

CONFIG_STATES = ("inconsistent", "stale", "pending")
"""What may be wrong with a configuration, as bits in this order: a roll-back failed, the files
were refused, something waits for a restart."""

DEFAULT_CLUSTER = "wayout"
"""Left out of the metadata, like every other default."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that elections, status and peers need to know of a member.

    `reasons`: why it may own nothing; empty means eligible. `restarting`: seconds for which it
    asks to be waited for. `config`: some of CONFIG_STATES. `networks`: subnets of its egress
    interfaces; `addresses`: its own addresses there. `lease` in seconds. Digests are hexadecimal.
    `lacks`: as in `egress.model.Candidate`.
    """

    version: str = ""
    cluster: str = DEFAULT_CLUSTER
    generation: int = 0
    cluster_digest: str = ""
    node_digest: str = ""
    config: frozenset[str] = frozenset()
    reasons: tuple[str, ...] = ()
    weight: float = 1.0
    capacity: int | None = None
    labels: tuple[tuple[str, str], ...] = ()
    macs: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()
    addresses: tuple[IP, ...] = ()
    lease: float = 3.0
    restarting: float = 0.0
    lacks: frozenset[str] = frozenset()


def to_plain(facts: Facts) -> dict[str, Plain]:
    """Plain data for `Machine.set_meta`; what is default is left out to save bytes."""
    full: dict[str, Plain] = {
        "v": facts.version,
        "k": facts.cluster if facts.cluster != DEFAULT_CLUSTER else None,
        "g": facts.generation,
        "d": bytes.fromhex(facts.cluster_digest),
        "n": bytes.fromhex(facts.node_digest),
        "b": sum(1 << at for at, each in enumerate(CONFIG_STATES) if each in facts.config),
        "r": list(facts.reasons),
        "w": facts.weight if facts.weight != 1.0 else None,
        "c": facts.capacity,
        "l": dict(facts.labels),
        "m": [bytes.fromhex(mac.replace(":", "")) for mac in sorted(facts.macs)[:MOST_MACS]],
        "s": [
            net.network_address.packed + bytes([net.prefixlen])
            for net in facts.networks[:MOST_NETWORKS]
        ],
        "a": [address.packed for address in facts.addresses[:MOST_ADDRESSES]],
        "t": facts.lease if facts.lease != 3.0 else None,  # noqa: PLR2004 - the default lease
        "restarting": facts.restarting,
        "x": [*sorted(facts.lacks)[:MOST_LACKS]],
    }
    return {key: value for key, value in full.items() if value}


def packed(facts: Facts) -> bytes:
    """The metadata as it goes over the wire."""
    return own.pack(META_KIND, to_plain(facts))


@lru_cache(maxsize=4096)
def read(meta: bytes) -> Facts | None:
    """Facts from a member's metadata, or None when it is not wayout's or makes no sense.

    Metadata comes from the network: a field of the wrong kind is as good as absent.
    """
    try:
        kind, value = own.unpack(meta)
    except WireError:
        return None
    if kind != META_KIND or not isinstance(value, dict):
        return None
    weight = _number(value.get("w"), 1.0)
    capacity = value.get("c")
    return Facts(
        version=_text(value.get("v")),
        cluster=_text(value.get("k")) or DEFAULT_CLUSTER,
        generation=_count(value.get("g")) or 0,
        cluster_digest=_hex(value.get("d")),
        node_digest=_hex(value.get("n")),
        config=_bits(_count(value.get("b")) or 0),
        reasons=tuple(_text(each) for each in _list(value.get("r"), MOST_REASONS)),
        weight=weight if 0.0 <= weight <= 100.0 else 1.0,  # noqa: PLR2004 - percent-like bound
        capacity=_count(capacity),
        labels=_labels(value.get("l")),
        macs=_macs(_list(value.get("m"), MOST_MACS)),
        networks=_networks(_list(value.get("s"), MOST_NETWORKS)),
        addresses=_addresses(_list(value.get("a"), MOST_ADDRESSES)),
        lease=min(max(_number(value.get("t"), 3.0), 1.0), 3600.0),
        restarting=min(max(_number(value.get("restarting"), 0.0), 0.0), 600.0),
        lacks=frozenset(_text(each) for each in _list(value.get("x"), MOST_LACKS)),
    )


def _text(value: object) -> str:
    return value[:LONGEST_TEXT] if isinstance(value, str) else ""


def _number(value: object, default: float) -> float:
    return float(value) if isinstance(value, int | float) and value == value else default  # noqa: PLR0124 - NaN


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 1 << 32 else None


def _bits(value: int) -> frozenset[str]:
    return frozenset(each for at, each in enumerate(CONFIG_STATES) if value >> at & 1)


def _hex(value: object) -> str:
    return value.hex() if isinstance(value, bytes) and len(value) <= 32 else ""  # noqa: PLR2004 - SHA-256


def _list(value: object, most: int) -> list[object]:
    return value[:most] if isinstance(value, list) else []


def _macs(values: list[object]) -> frozenset[str]:
    return frozenset(
        each.hex(":") for each in values if isinstance(each, bytes) and len(each) == MAC_BYTES
    )


def _labels(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        return ()
    pairs = [
        (key[:LONGEST_TEXT], text[:LONGEST_TEXT])
        for key, text in value.items()
        if isinstance(key, str) and isinstance(text, str)
    ]
    return tuple(sorted(pairs)[:MOST_LABELS])


def _networks(values: list[object]) -> tuple[Network, ...]:
    found: list[Network] = []
    for each in values:
        if isinstance(each, bytes) and len(each) in {5, 17}:
            try:
                found.append(ip_network((each[:-1], each[-1])))
            except ValueError:
                continue
    return tuple(found)


def _addresses(values: list[object]) -> tuple[IP, ...]:
    return tuple(
        ip_address(each) for each in values if isinstance(each, bytes) and len(each) in {4, 16}
    )
