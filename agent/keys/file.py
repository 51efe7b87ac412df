"""The keyring file: one base64 key in a line, the first encrypts; written whole or not at all."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gossip.wire.seal import Keyring

FILE_MAX = 16384
LENGTHS = (16, 24, 32)
PREFIX = "sha256:"
FINGERPRINT = 8
"""Hexadecimal digits: enough to tell the keys of a ring apart, too little to find one."""
MODE = 0o600


def fingerprint(key: bytes) -> str:
    """What may be shown of a key."""
    return f"{PREFIX}{sha256(key).hexdigest()[:FINGERPRINT]}"


def decoded(text: str) -> bytes:
    """The key that this base64 text is; ValueError says what is wrong without repeating it."""
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("this is no base64 key: 'wayout keygen' makes one") from None
    if len(key) not in LENGTHS:
        raise ValueError(f"this key has {len(key)} bytes and not 16, 24 or 32")
    return key


def encoded(key: bytes) -> str:
    """The text of a key, for the file and for who made it."""
    return base64.b64encode(key).decode()


def read(path: Path) -> Keyring:
    """The keys of the file in their order. Never says what a key is. OSError, ValueError."""
    from gossip.wire.seal import Keyring

    if path.stat().st_mode & 0o007:
        raise ValueError(f"{path} may be read by everybody: chmod 0600 (defaultMode: 0400)")
    keys = []
    for number, line in enumerate(_lines(path), 1):
        if not line or line.startswith("#"):
            continue
        try:
            keys.append(decoded(line))
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from None
    try:
        return Keyring(tuple(dict.fromkeys(keys)))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def digest(path: Path) -> str:
    """What the file holds, to tell one content from another; empty if it cannot be read."""
    try:
        return sha256(path.read_bytes()[:FILE_MAX]).hexdigest()
    except OSError:
        return ""


def write(path: Path, before: Keyring, ring: Keyring) -> None:
    """Replace the keys of the file in one step, mode 0600; remarks at its top stay. OSError.

    ValueError unless it holds what runs, which is `before`: an edit of somebody else would be
    lost. A link is followed, so that what it points to is replaced and not the link.
    """
    target = Path(os.path.realpath(path))
    if read(target).keys != before.keys:
        raise ValueError(f"{path} was edited and is not in force: 'wayout config reload' first")
    head = []
    for line in _lines(target):
        if line and not line.startswith("#"):
            break
        head.append(line)
    text = "\n".join([*head, *map(encoded, ring.keys)]) + "\n"
    descriptor, beside = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(descriptor, MODE)
            _keep_owner(descriptor, target)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        Path(beside).replace(target)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    _sync(target.parent)


def _lines(path: Path) -> list[str]:
    text = path.read_bytes()[:FILE_MAX].decode("ascii", "replace")
    return [line.strip() for line in text.splitlines()]


def _keep_owner(descriptor: int, target: Path) -> None:
    found = target.stat()
    with contextlib.suppress(PermissionError):
        os.fchown(descriptor, found.st_uid, found.st_gid)


def _sync(folder: Path) -> None:
    """The new name must outlive a power cut as the bytes do."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
