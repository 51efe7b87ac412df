"""Gossip keys and label, from settings and the keyring file to the envelope of all packets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from agent.keys import file
from config.schema.gossip import Encryption
from gossip.wire.packet import Envelope

if TYPE_CHECKING:
    from config.schema.settings import Settings


def envelope(settings: Settings) -> Envelope:
    """The outer layers for these settings; ValueError or OSError when the keyring is no good."""
    gossip = settings.gossip
    ring = None
    if gossip.encryption is not Encryption.OFF and gossip.keyring_file is not None:
        ring = file.read(Path(gossip.keyring_file))
    return Envelope(
        label=gossip.label.encode(),
        keyring=ring,
        verify_incoming=gossip.encryption is Encryption.REQUIRED,
        nonces=os.urandom,
    )
