"""Encryption with AES-GCM: version byte, nonce, ciphertext and tag; only door to cryptography.

Version 1 seals the plaintext as it is; version 0 (protocol 1) pads it to 16 bytes first. There is
no replay protection; incarnations make most replays harmless.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gossip.wire.messages import WireError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_LENGTHS = (16, 24, 32)
NONCE = 12
TAG = 16
BLOCK = 16
OVERHEAD = 1 + NONCE + TAG
VERSION = 1
KEYS_MAX = 16


@dataclass(frozen=True, slots=True)
class Keyring:
    """Keys of 16, 24 or 32 bytes; the first encrypts, all decrypt. A changed ring is another."""

    keys: tuple[bytes, ...]
    _ciphers: tuple[AESGCM, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if not 0 < len(self.keys) <= KEYS_MAX:
            raise ValueError(f"a keyring has 1 to {KEYS_MAX} keys")
        if any(len(key) not in KEY_LENGTHS for key in self.keys):
            raise ValueError("a key has 16, 24 or 32 bytes")
        object.__setattr__(self, "_ciphers", tuple(AESGCM(key) for key in self.keys))

    def __repr__(self) -> str:
        return f"Keyring({len(self.keys)} keys)"

    def add(self, key: bytes) -> Keyring:
        """With `key` at the end; the same ring when it is there already."""
        return self if key in self.keys else Keyring((*self.keys, key))

    def use(self, key: bytes) -> Keyring:
        """With `key` first; ValueError when it is not in the ring."""
        if key not in self.keys:
            raise ValueError("this key is not in the keyring: add it first")
        return Keyring((key, *(other for other in self.keys if other != key)))

    def remove(self, key: bytes) -> Keyring:
        """Without `key`; ValueError when it is the one that encrypts."""
        if key == self.keys[0]:
            raise ValueError("this key encrypts: use another one first")
        return Keyring(tuple(other for other in self.keys if other != key))

    def seal(self, plain: bytes, extra: bytes, nonce: bytes, version: int = VERSION) -> bytes:
        """`plain` under the first key; `extra` is authenticated with it."""
        if version == 0:
            pad = BLOCK - len(plain) % BLOCK
            plain += bytes([pad]) * pad
        return bytes([version]) + nonce + self._ciphers[0].encrypt(nonce, plain, extra)

    def open(self, sealed: bytes, extra: bytes) -> bytes:
        """What some key of the ring sealed; WireError when none did."""
        from cryptography.exceptions import InvalidTag

        if len(sealed) < OVERHEAD or sealed[0] > VERSION:
            raise WireError("not_sealed")
        nonce, body = sealed[1 : 1 + NONCE], sealed[1 + NONCE :]
        for cipher in self._ciphers:
            try:
                plain = cipher.decrypt(nonce, body, extra)
            except InvalidTag:
                continue
            return plain if sealed[0] == VERSION else _unpadded(plain)
        raise WireError("no_key_fits")


def _unpadded(plain: bytes) -> bytes:
    pad = plain[-1] if plain else 0
    if not 0 < pad <= BLOCK or plain[-pad:] != bytes([pad]) * pad:
        raise WireError("bad_padding")
    return plain[:-pad]
