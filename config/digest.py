"""Digests of what is in force: equal on two nodes exactly if they agree."""

from __future__ import annotations

import json
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


class Digests:
    """`cluster` covers what must agree, `node` everything, `content` the bytes that were read.

    The first two cost as much as half the reading of a large file, and not everybody asks: they
    are computed when first asked for, or by `settle`, where nothing waits.
    """

    __slots__ = ("_known", "_secrets", "_settings", "content")

    def __init__(self, settings: Settings, content: str, secrets: Sequence[Secret] = ()) -> None:
        self.content = content
        self._settings = settings
        self._secrets = secrets
        self._known: tuple[str, str] | None = None

    @property
    def cluster(self) -> str:
        """Equal on two nodes exactly if they agree about what must be the same."""
        return self.settle()[0]

    @property
    def node(self) -> str:
        """Equal exactly if all settings are."""
        return self.settle()[1]

    def settle(self) -> tuple[str, str]:
        """Both, computed once."""
        if self._known is None:
            self._known = _sums(self._settings, self._secrets)
        return self._known

    def __eq__(self, other: object) -> bool:
        """The same sums of the same content."""
        if not isinstance(other, Digests):
            return NotImplemented
        return (*self.settle(), self.content) == (*other.settle(), other.content)

    def __hash__(self) -> int:
        """As they compare."""
        return hash((*self.settle(), self.content))


def _sums(settings: Settings, secrets: Sequence[Secret]) -> tuple[str, str]:
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
    return _digest(shared), _digest(whole)


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
