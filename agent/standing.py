"""How the configuration stands, told to everybody who watches: peers, metrics, and the disk.

`tell` is cheap and called whenever the files were looked at; `turned` after every run.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from agent import drift, release
from agent.inputs import SettingsChanged
from agent.metrics import ConfigFacts

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.desk import Document
    from agent.drift import Row
    from agent.lastgood import LastGood
    from agent.mailbox import Mailbox
    from agent.metrics import Metrics
    from agent.peers import Peers
    from agent.snapshot import Snapshot
    from config.transaction import Reloader
    from egress.keeper import Keeper
    from gossip.node import Node


class Standing:
    """Reads the reloader; `shot` gives the controller's last picture.

    `mode` says how files are watched.
    """

    def __init__(
        self,
        reloader: Reloader,
        metrics: Metrics,
        shot: Callable[[], Snapshot | None],
        clock: Callable[[], float],
        figures: Figures,
    ) -> None:
        self._figures = figures
        self._reloader = reloader
        self._metrics = metrics
        self._shot = shot
        self._clock = clock
        self._drift = drift.Drift()
        self.mode: Callable[[], str] = lambda: "poll"

    def tell(self) -> None:
        """Metrics of this moment."""
        self._figures.tell()
        self._metrics.config(self._facts())
        rows = self._rows()
        if rows:
            states, differing = drift.counts(rows)
            self._metrics.config_members(states, differing=differing)

    def _facts(self) -> ConfigFacts:
        reloader, attempts = self._reloader, self._reloader.attempts
        return ConfigFacts(
            generation=reloader.generation,
            digest=reloader.digests.cluster,
            reloaded=reloader.last.good,
            reloaded_at=attempts.succeeded_at,
            stale_since=attempts.stale_since,
            pending_fields=len(reloader.pending_restart),
            file_differs=reloader.file_differs,
            inconsistent=attempts.inconsistent,
            warnings=len(reloader.warnings),
            watch_mode=self.mode(),
            layers=dict.fromkeys(reloader.ranks, attempts.succeeded_at),
            layer_errors=reloader.failed_layers,
        )

    def _rows(self) -> tuple[Row, ...]:
        shot = self._shot()
        return () if shot is None else self._drift.see(shot.world, shot.own, self._clock())

    def drift(self) -> Document | None:
        """`config drift --json`; None while the daemon starts."""
        shot = self._shot()
        if shot is None:
            return None
        now = self._clock()
        grace = self._reloader.settings.config.drift_grace
        wall = shot.wall + now - shot.now
        return drift.document(self._rows(), grace=grace, now=now, wall=wall)


class Figures:
    """What node and keeper gather and metrics are told now and then."""

    def __init__(self, node: Node, keeper: Keeper, metrics: Metrics) -> None:
        self._node = node
        self._keeper = keeper
        self._metrics = metrics
        self._restored = 0

    def tell(self) -> None:
        """What came about since the last time."""
        self._metrics.loop_lag(self._node.worst_lag)
        self._node.worst_lag = 0.0
        for _ in range(self._keeper.restored - self._restored):
            self._metrics.address_restored()
        self._restored = self._keeper.restored


class Herald:
    """Says the news of every run: to the controller (so to all members), to peers, to the disk."""

    def __init__(
        self, reloader: Reloader, mailbox: Mailbox, peers: Peers, last_good: LastGood
    ) -> None:
        self._reloader = reloader
        self._mailbox = mailbox
        self._peers = peers
        self._last_good = last_good
        self._said = (1, state_of(reloader))

    async def turned(self) -> None:
        """A run is over, or the daemon begins."""
        reloader = self._reloader
        said = (reloader.generation, state_of(reloader))
        if said != self._said:
            self._said = said
            self._mailbox.put(announcement(reloader))
        self._peers.tell(await asyncio.to_thread(_page, reloader))
        await self._last_good.save(reloader.settings)


def announcement(reloader: Reloader) -> SettingsChanged:
    """What the controller must know of the configuration."""
    sums = reloader.digests
    return SettingsChanged(
        reloader.settings, reloader.generation, sums.cluster, sums.node, state_of(reloader)
    )


def state_of(reloader: Reloader) -> frozenset[str]:
    """What is wrong with our configuration, as peers are told."""
    claims = {
        "inconsistent": reloader.attempts.inconsistent,
        "stale": reloader.stale,
        "pending": bool(reloader.pending_restart),
    }
    return frozenset(word for word, holds in claims.items() if holds)


def _page(reloader: Reloader) -> str:
    sums = reloader.digests
    return json.dumps(
        {
            "version": release.VERSION,
            "generation": reloader.generation,
            "digest": sums.cluster,
            "node_digest": sums.node,
            "settings": reloader.show()["settings"],
        },
        separators=(",", ":"),
    )
