"""Files that settings refer to for what must not stand in them: read for what changed, never kept.

A key that was rotated is a change of the configuration although no line of it differs. Only
fingerprints leave this module.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from config.leaves import value_at
from config.schema.table import ANY, OPTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config.schema.settings import Settings

SIZE_MAX = 1 << 20
LENGTH = 8
"""Hexadecimal digits of a fingerprint: enough to tell keys apart, too little to find one."""

_SENSITIVE = tuple(sorted(path for path, each in OPTIONS.items() if each.option.sensitive))
# A free name would have to be looked up.
assert not any(ANY in path for path in _SENSITIVE)


@dataclass(frozen=True, slots=True)
class Secret:
    """What may be known of one file; `path` is the option that names it.

    `content` is empty while the file cannot be read; `keys` are fingerprints, in their order.
    """

    path: tuple[str, ...]
    file: str
    content: str
    keys: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file} ({', '.join(self.keys) or 'cannot be read'})"


def secrets_of(settings: Settings) -> tuple[Secret, ...]:
    """Every file that a sensitive option of these settings names. Blocks; never fails."""
    found = [(path, value_at(settings, path)) for path in _SENSITIVE]
    return tuple(_secret(path, value) for path, value in found if isinstance(value, str))


def content_of(secrets: Sequence[Secret]) -> str:
    """One digest of them all; empty if there is none."""
    if not secrets:
        return ""
    return sha256("\n".join(f"{each.file} {each.content}" for each in secrets).encode()).hexdigest()


def fingerprint(key: bytes) -> str:
    """How a key is called."""
    return sha256(key).hexdigest()[:LENGTH]


def _secret(path: tuple[str, ...], file: str) -> Secret:
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(SIZE_MAX)
    except OSError:
        return Secret(path, file, "", ())
    lines = [line.strip() for line in data.splitlines()]
    keys = [_key(line) for line in lines if line and not line.startswith(b"#")]
    return Secret(path, file, sha256(data).hexdigest(), tuple(dict.fromkeys(keys)))


def _key(line: bytes) -> str:
    """Of the key itself, so that the same key written otherwise has the same name."""
    try:
        return fingerprint(base64.b64decode(line, validate=True))
    except binascii.Error:
        return fingerprint(line)
