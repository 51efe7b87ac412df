"""The keyring of this daemon while it runs: what it holds, and one change at a time.

A change is written to the file before it is used, so that a restart knows no less than its peers.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

import structlog

from agent.keys import file
from agent.keys.words import Operation
from config.schema.gossip import Encryption

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from config.schema.settings import Settings
    from gossip.node import Node
    from gossip.wire.seal import Keyring

WRITE_PATIENCE = 5.0
OPTION = ("gossip", "keyring_file")

log = structlog.get_logger("wayout.gossip")


class KeysError(Exception):
    """It was not done; the message says why and what to do, and names no key."""


class Keys:
    """Owner of the ring in force, beside the reload that takes a whole file over."""

    def __init__(self, node: Node, settings: Callable[[], Settings]) -> None:
        self._node = node
        self._settings = settings
        self._lock = asyncio.Lock()

    def ring(self) -> Keyring:
        """What is in force; KeysError when nothing is encrypted."""
        ring = self._node.machine.envelope.keyring
        if ring is None:
            raise KeysError(
                "this cluster is not encrypted: write gossip.keyring_file and "
                "gossip.encryption: permissive on every node, reload, then required"
            )
        return ring

    def require_sealed(self) -> None:
        """KeysError unless nothing that is not encrypted could have come in or will go out."""
        self.ring()
        envelope = self._node.machine.envelope
        if not (envelope.verify_incoming and envelope.verify_outgoing):
            raise KeysError(
                "keys are changed over the network only where everything is encrypted: "
                "write gossip.encryption: required on every node and reload"
            )

    def find(self, print_: str) -> bytes:
        """The key of the ring with this fingerprint; KeysError if there is none."""
        for key in self.ring().keys:
            if file.fingerprint(key) == print_:
                return key
        raise KeysError(f"this node has no key {print_}: 'wayout keyring list' shows all")

    async def change(self, operation: Operation, key: bytes) -> None:
        """Change the file, then the ring; KeysError if either cannot be."""
        async with self._lock:
            before = self.ring()
            after = _changed(before, operation, key)
            if after is before:
                return
            path = self._path()
            try:
                async with asyncio.timeout(WRITE_PATIENCE):
                    await asyncio.to_thread(file.write, path, before, after)
            except (OSError, TimeoutError) as error:
                raise KeysError(_unwritable(path, error)) from None
            except ValueError as error:
                raise KeysError(str(error)) from None
            machine = self._node.machine
            machine.envelope = replace(machine.envelope, keyring=after)
        log.info(
            "gossip.keyring_changed",
            operation=operation.value,
            fingerprint=file.fingerprint(key),
            count=len(after.keys),
        )

    def outside(self, settings: Settings) -> Mapping[tuple[str, ...], str]:
        """For a reload: the option whose file says something else than what runs. Blocks."""
        path = settings.gossip.keyring_file
        if settings.gossip.encryption is Encryption.OFF or path is None:
            return {}
        running = self._node.machine.envelope.keyring
        try:
            found = file.read(Path(path))
        except (OSError, ValueError):
            return {OPTION: file.digest(Path(path))}
        if running is not None and found.keys == running.keys:
            return {}
        return {OPTION: file.digest(Path(path))}

    def _path(self) -> Path:
        path = self._settings().gossip.keyring_file
        assert path is not None, "who has a ring has a file"
        return Path(path)


def _changed(ring: Keyring, operation: Operation, key: bytes) -> Keyring:
    try:
        match operation:
            case Operation.ADD:
                return ring.add(key)
            case Operation.USE:
                return ring if ring.keys[0] == key else ring.use(key)
            case Operation.REMOVE:
                return ring.remove(key) if key in ring.keys else ring
            case _:
                assert_never(operation)
    except ValueError as error:
        raise KeysError(str(error)) from None


def _unwritable(path: Path, error: Exception) -> str:
    why = getattr(error, "strerror", None) or "it took too long"
    return (
        f"{path} cannot be written, {why}: let the daemon write it, or where it is a mounted "
        "secret change that and reload"
    )
