"""Digests of what is in force: equal on two nodes exactly if they agree."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from config.leaves import canonical
from config.schema.option import Scope
from config.schema.table import entry_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from config.leaves import Leaves
    from config.tree import Plain

LENGTH = 16
"""Hexadecimal digits: 64 bits."""


@dataclass(frozen=True, slots=True)
class Digests:
    """`cluster` covers what must agree, `node` everything, `content` the bytes that were read."""

    cluster: str
    node: str
    content: str


def digests(leaves: Leaves, content: str) -> Digests:
    """Over values, not bytes: neither formatting nor the order of keys shows."""
    shared = [each for each in leaves.items() if _shared(each[0])]
    return Digests(_digest(shared), _digest(leaves.items()), content)


def _shared(path: tuple[str, ...]) -> bool:
    entry = entry_of(path)
    return entry is not None and entry.option.scope is Scope.CLUSTER


def _digest(leaves: Iterable[tuple[tuple[str, ...], Plain]]) -> str:
    rows = sorted([list(path), canonical(value)] for path, value in leaves)
    text = json.dumps(rows, separators=(",", ":"), sort_keys=True)
    return sha256(text.encode()).hexdigest()[:LENGTH]
