"""The desk of a running daemon: what the admin socket and HTTP get to see and may wish for."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from agent import explain, release, status
from agent.desk import DeskError
from agent.inputs import DrainWished

if TYPE_CHECKING:
    from agent.controller import Controller
    from agent.desk import Document
    from agent.keys.desk import KeyDesk
    from agent.mailbox import Mailbox
    from agent.reloading import Reloading
    from agent.snapshot import Snapshot

DRAIN_PATIENCE = 60.0
"""Longest time that `drain --wait` waits; what is not handed over by then is said."""


class FrontDesk:
    """Reads come from the controller's last snapshot; wishes go through its mailbox."""

    def __init__(
        self,
        controller: Controller,
        mailbox: Mailbox,
        reloading: Reloading,
        keyring: KeyDesk,
        address: str,
    ) -> None:
        self._controller = controller
        self._mailbox = mailbox
        self._reloading = reloading
        self._keyring = keyring
        self._address = address
        self._clock = asyncio.get_running_loop().time

    def status(self) -> Document:
        """`status --json`."""
        shot = self._shot()
        return {
            "node": status.node_document(
                shot, version=release.VERSION, pid=os.getpid(), address=self._address
            ),
            "members": status.member_counts(shot),
            "egress": status.egress_counts(shot),
            "config": self._reloading.summary(),
        }

    def members(self) -> list[Document]:
        """`members --json`."""
        return status.members(self._shot())

    def egress_list(self) -> list[Document]:
        """`egress list --json`."""
        return status.egress_list(self._shot())

    def egress_explain(self, name: str) -> Document:
        """Candidates, scores, and the rule that decided; LookupError if there is none such."""
        return explain.egress(self._shot(), name)

    def ready(self) -> tuple[bool, list[str]]:
        """Joined and reconciled, with reasons if not."""
        shot = self._controller.snapshot
        if shot is None:
            return False, ["starting"]
        reasons = [*shot.unready, *self._reloading.trouble]
        if shot.world.stopping:
            reasons.append("stopping")
        return not reasons, reasons

    async def drain(self, *, wait: bool, seconds: float | None) -> Document:
        """Hand everything over and stay a member."""
        until = None if seconds is None else self._clock() + seconds
        self._mailbox.put(DrainWished(draining=True, until=until))
        done = await self._emptied() if wait else False
        left = sorted(str(ip) for ip in self._shot().carried)
        if wait and not done:
            raise DeskError(
                f"{len(left)} addresses are still here after {DRAIN_PATIENCE:.0f} s: no other node "
                "can take them; 'wayout egress explain NAME' says why"
            )
        return {"draining": True, "carried": [*left], "seconds": seconds}

    async def undrain(self) -> Document:
        """Be a candidate again."""
        self._mailbox.put(DrainWished(draining=False))
        return {"draining": False}

    async def reload(
        self,
        *,
        trigger: str,
        wait: bool,
        dry_run: bool,
        allow_removal: bool,
        timeout: float,  # noqa: ASYNC109 - part of the request
    ) -> Document:
        """Read the configuration again."""
        return await self._reloading.reload(
            trigger=trigger,
            wait=wait,
            dry_run=dry_run,
            allow_removal=allow_removal,
            patience=timeout,
        )

    def config_show(self, *, which: str, origin: bool, changed_only: bool) -> Document:
        """The effective configuration, redacted."""
        return self._reloading.show(which=which, origin=origin, changed_only=changed_only)

    def config_status(self) -> Document:
        """Generation, digests, pending restart, last reload."""
        return self._reloading.status()

    def config_drift(self) -> Document:
        """Members by the configuration that they run."""
        return self._reloading.drift()

    async def config_peer(self, name: str) -> Document:
        """What another member runs."""
        return await self._reloading.peer(name)

    async def keyring_list(self) -> Document:
        """Which member accepts which key."""
        return await self._keyring.listed()

    async def keyring_change(
        self, *, operation: str, key: str, node: str | None, force: bool
    ) -> Document:
        """Add, use or remove a key."""
        return await self._keyring.change(operation, key, only=node, force=force)

    async def _emptied(self) -> bool:
        try:
            async with asyncio.timeout(DRAIN_PATIENCE):
                await self._controller.empty()
        except TimeoutError:
            return False
        return True

    def _shot(self) -> Snapshot:
        shot = self._controller.snapshot
        if shot is None:
            raise DeskError("the daemon is still starting: ask again in a moment")
        # An idle controller makes no new snapshot, but ages go on.
        now = self._clock()
        return replace(shot, now=now, wall=shot.wall + now - shot.now)
