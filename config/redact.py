"""What may be shown of a value: a secret never, a reference to one always."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from config.schema.table import entry_of

if TYPE_CHECKING:
    from config.tree import Plain

LENGTH = 8


def fingerprint(value: Plain) -> str:
    """Enough to tell two secrets apart, too little to find one."""
    return f"sha256:{sha256(json.dumps(value).encode()).hexdigest()[:LENGTH]}"


def shown(path: tuple[str, ...], value: Plain) -> Plain:
    """`value`, or its fingerprint if it may be a secret itself rather than the path of one."""
    entry = entry_of(path)
    if entry is None or not entry.option.sensitive or value is None:
        return value
    if isinstance(value, str) and value.startswith("/"):
        return value
    return fingerprint(value)
