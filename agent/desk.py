"""The desk at which admin socket and HTTP ask: the one view of the daemon that has no way behind.

Documents are the JSON of the contract; what the daemon cannot do it refuses with `DeskError`.
"""

from __future__ import annotations

import asyncio
import json
from typing import Protocol

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]
Document = dict[str, JSON]

SLICE = 200
"""Rows that are turned into text in one go: about a millisecond."""

EXIT_FAILED = 1
EXIT_USAGE = 2


class DeskError(Exception):
    """The daemon will not or cannot do it; `code` is the exit code that the command ends with."""

    def __init__(self, message: str, code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class Desk(Protocol):
    """What may be asked of a running daemon. Reads are immediate; wishes may be waited for."""

    def status(self) -> Document:
        """The node in one document."""
        ...

    def members(self) -> list[Document]:
        """Every member that gossip knows."""
        ...

    def egress_list(self) -> list[Document]:
        """One row for each IP."""
        ...

    def egress_explain(self, name: str) -> Document:
        """Candidates, scores and the rule that decided; LookupError if there is no such egress."""
        ...

    def history(self, limit: int) -> list[Document]:
        """The newest moves, the oldest of them first."""
        ...

    def remarks(self) -> Document:
        """What `status` tells people beside the contract: `last_failover`, `drain_seconds`."""
        ...

    async def history_after(self, count: int | None, limit: int) -> Document:
        """`count` and `moves`: what came since `count`, waited for; None asks for the count."""
        ...

    async def picture(self) -> list[Document]:
        """What an election is made from, as rows (`agent.picture`)."""
        ...

    def ready(self) -> tuple[bool, list[str]]:
        """Whether the node has joined and reconciled, and if not, why."""
        ...

    async def drain(self, *, wait: bool, seconds: float | None) -> Document:
        """Hand everything over and stay a member, for `seconds` or until `undrain`."""
        ...

    async def undrain(self) -> Document:
        """Be a candidate again."""
        ...

    async def restart_prepare(self, seconds: float) -> Document:
        """A stop within so many seconds is a restart; `kept_seconds`: how long addresses stay."""
        ...

    async def reload(
        self,
        *,
        trigger: str,
        wait: bool,
        dry_run: bool,
        allow_removal: bool,
        timeout: float,  # noqa: ASYNC109 - part of the request
    ) -> Document:
        """Read the configuration again; the document tells the result, errors and differences."""
        ...

    def config_show(self, *, which: str, origin: bool, changed_only: bool) -> Document:
        """The effective configuration, redacted; `which` is running or configured."""
        ...

    def config_status(self) -> Document:
        """Generation, digests, pending restart and the last reload."""
        ...

    def config_drift(self) -> Document:
        """Members by the configuration that they run."""
        ...

    async def config_peer(self, name: str) -> Document:
        """What another member runs, redacted by it; DeskError if it does not answer."""
        ...

    async def keyring_list(self) -> Document:
        """Which member accepts which key, by fingerprint."""
        ...

    async def keyring_change(
        self, *, operation: str, key: str, node: str | None, force: bool
    ) -> Document:
        """Add, use or remove a key on every member, or on one; what came of it at each."""
        ...


def rows_named(rows: list[Document], name: str) -> list[Document]:
    """The rows of one egress, asked for by name or by one of its addresses."""
    return [row for row in rows if name in (row.get("name"), row.get("ip"))]


async def encode(value: JSON | list[Document]) -> bytes:
    """`value` as JSON text; a long list is written in slices so that the loop gets its turns."""
    if not isinstance(value, list) or len(value) <= SLICE:
        return _text(value)
    parts = []
    for start in range(0, len(value), SLICE):
        parts.append(_text(value[start : start + SLICE])[1:-1])
        await asyncio.sleep(0)
    return b"[" + b",".join(parts) + b"]"


def _text(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
