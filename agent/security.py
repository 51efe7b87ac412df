"""Gossip keys and label, from settings and the keyring file to the envelope of all packets."""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path
from typing import TYPE_CHECKING

from config.schema.gossip import Encryption
from gossip.wire.packet import Envelope

if TYPE_CHECKING:
    from config.schema.settings import Settings
    from gossip.wire.seal import Keyring

FILE_MAX = 16384


def envelope(settings: Settings) -> Envelope:
    """The outer layers for these settings; ValueError or OSError when the keyring is no good."""
    gossip = settings.gossip
    ring = None
    if gossip.encryption is not Encryption.OFF and gossip.keyring_file is not None:
        ring = keyring(Path(gossip.keyring_file))
    return Envelope(
        label=gossip.label.encode(),
        keyring=ring,
        verify_incoming=gossip.encryption is Encryption.REQUIRED,
        nonces=os.urandom,
    )


def keyring(path: Path) -> Keyring:
    """One base64 key in a line; the first encrypts, all decrypt. Never says what a key is."""
    from gossip.wire.seal import Keyring

    if path.stat().st_mode & 0o007:
        raise ValueError(f"{path} may be read by everybody: chmod 0600 (defaultMode: 0400)")
    text = path.read_bytes()[:FILE_MAX].decode("ascii", "replace")
    lines = [line.strip() for line in text.splitlines()]
    keys = []
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        try:
            keys.append(base64.b64decode(line, validate=True))
        except binascii.Error:
            raise ValueError(f"{path}:{number}: this is no base64 key") from None
    try:
        return Keyring(tuple(dict.fromkeys(keys)))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
