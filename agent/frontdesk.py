"""The desk of a running daemon: what the admin socket and HTTP get to see and may wish for."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from agent import explain, picture, release, status
from agent.desk import DeskError
from agent.inputs import DrainWished, RestartPrepared

if TYPE_CHECKING:
    from agent.controller import Controller
    from agent.desk import Document
    from agent.historyfile import History
    from agent.keys.desk import KeyDesk
    from agent.mailbox import Mailbox
    from agent.reloading import Reloading
    from agent.snapshot import Snapshot
    from egress.model import IP

TURN_PATIENCE = 5.0
"""Seconds within which the controller takes in a wish."""
FOLLOW_PATIENCE = 20.0
"""Seconds after which a follower is told that nothing has moved; it asks again."""
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
        history: History,
        address: str,
    ) -> None:
        self._controller = controller
        self._mailbox = mailbox
        self._reloading = reloading
        self._keyring = keyring
        self._history = history
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

    def history(self, limit: int) -> list[Document]:
        """`history --json`."""
        return self._history.newest(limit)

    def remarks(self) -> Document:
        """The last failover, and when a drain ends."""
        until = self._shot().world.drain_until
        left = None if until is None else max(until - self._clock(), 0.0)
        return {"last_failover": self._history.last_failover(), "drain_seconds": left}

    async def history_after(self, count: int | None, limit: int) -> Document:
        """Moves since that many, waited for; the first call is told how many there were."""
        if count is None:
            return {"count": self._history.count, "moves": []}
        moves = await self._history.after(count, FOLLOW_PATIENCE, limit)
        return {"count": self._history.count, "moves": [*moves]}

    async def picture(self) -> list[Document]:
        """The inputs of the election, for `plan`; made in a thread, for there may be many."""
        shot = self._shot()
        return await asyncio.to_thread(picture.rows, shot, shot.claims.tops())

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
        had = self._shot().carried
        self._mailbox.put(DrainWished(draining=True, until=until))
        done = await self._handed_over(had) if wait else False
        left = sorted(str(ip) for ip in self._shot().carried)
        if wait and not done:
            raise DeskError(
                f"{len(left)} addresses are still here after {DRAIN_PATIENCE:.0f} s: no other node "
                "can take them; 'wayout egress explain NAME' says why"
            )
        orphaned = sorted(str(ip) for ip in self._shot().orphaned(had)) if wait else []
        return {
            "draining": True,
            "carried": [*left],
            "orphaned": [*orphaned],
            "seconds": seconds,
        }

    async def undrain(self) -> Document:
        """Be a candidate again."""
        self._mailbox.put(DrainWished(draining=False))
        return {"draining": False}

    async def restart_prepare(self, seconds: float) -> Document:
        """A stop within so many seconds keeps the addresses; answers when that is certain."""
        until = self._clock() + seconds
        self._mailbox.put(RestartPrepared(until))
        async with asyncio.timeout(TURN_PATIENCE):
            await self._controller.until(lambda shot: shot.world.restart_until >= until)
        kept = self._shot().world.settings.node.restart_timeout
        return {"seconds": seconds, "kept_seconds": kept}

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

    async def _handed_over(self, had: frozenset[IP]) -> bool:
        """Nothing is left here, and whoever is to have the addresses has them."""
        until = self._controller.until
        try:
            async with asyncio.timeout(DRAIN_PATIENCE):
                await until(lambda shot: shot.world.draining)
                # A drain that is over before it was done is not waited for.
                await until(
                    lambda shot: not shot.world.draining or (shot.empty and not shot.awaited(had))
                )
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
