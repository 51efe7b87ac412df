"""Digests of what is in force: equal on two nodes exactly if they agree."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from config.leaves import ordered, stated
from config.schema.option import Scope
from config.schema.table import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.schema.settings import Settings
    from config.secrets import Secret
    from config.tree import Plain

LENGTH = 16
"""Hexadecimal digits: 64 bits."""

KEYRING = ("gossip", "keyring_file")

_LOCAL = frozenset(
    path[:2] for path, each in OPTIONS.items() if each.option.scope is not Scope.CLUSTER
)
"""Sections and options of one node, group or host; all options below a free name are of a kind."""


@dataclass(frozen=True, slots=True)
class Digests:
    """`cluster` covers what must agree, `node` everything, `content` the bytes that were read."""

    cluster: str
    node: str
    content: str


def digests(settings: Settings, content: str, secrets: Sequence[Secret] = ()) -> Digests:
    """Over values, not bytes: neither formatting nor the order of keys shows.

    Defaults do not count, so that a version with one more option still agrees with the last. Which
    gossip keys there are counts, wherever they lie, so that a rotation that stopped half-way shows.
    """
    whole = {key: ordered(value) for key, value in stated(settings).items()}
    keys: dict[str, Plain] = {
        "keys": [*sorted(key for each in secrets if each.path == KEYRING for key in each.keys)]
    }
    shared = _shared(whole)
    if keys["keys"]:
        shared, whole = {**shared, **keys}, {**whole, **keys}
    return Digests(_digest(shared), _digest(whole), content)


def _shared(values: Mapping[str, Plain]) -> dict[str, Plain]:
    """The values without the options of one node, group or host."""
    kept: dict[str, Plain] = {}
    for section, value in values.items():
        if isinstance(value, dict):
            shared = {key: v for key, v in value.items() if (section, key) not in _LOCAL}
            kept.update({section: shared} if shared else {})
        else:
            kept[section] = value
    return kept


def _digest(values: Mapping[str, Plain]) -> str:
    text = json.dumps(values, separators=(",", ":"), sort_keys=True)
    return sha256(text.encode()).hexdigest()[:LENGTH]
