"""Reloads of the daemon, assembled: who is changed over, who watches the files, who is told."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent import derived
from agent.lastgood import LastGood
from agent.layerfile import LayerFile
from agent.peers import Peers
from agent.reloading import Reloading, Told, pace_of
from agent.standing import Figures, Herald, Standing
from agent.subscribers import Checks, Gossip, Logging, Worldly, shared_level
from config.elsewhere import Elsewhere
from config.polling import Poll
from config.remote import RemoteLayer
from config.triggers import Reloads
from config.watch import Watch, folders_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AsyncExitStack
    from random import Random

    from agent.controller import Controller
    from agent.desk import Document
    from agent.health.runner import Health
    from agent.mailbox import Mailbox
    from agent.membership import Membership
    from agent.metrics import Metrics
    from agent.seeds import Seeds
    from agent.systemd import Notifier
    from config.remote import LayerSource
    from config.schema.settings import Settings
    from config.transaction import Reloader
    from egress.keeper import Keeper
    from gossip.node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What of the daemon has to do with a reload; `layers` is where annotations come from."""

    mailbox: Mailbox
    controller: Controller
    keeper: Keeper
    node: Node
    seeds: Seeds
    membership: Membership
    health: Health
    metrics: Metrics
    notifier: Notifier
    rng: Random
    clock: Callable[[], float]
    host: str
    layers: LayerSource | None = None


def assembled(reloader: Reloader, parts: Parts, doors: AsyncExitStack) -> Reloading:
    """Everybody subscribed, everything watched; nothing runs yet."""
    _subscribe(reloader, parts, doors)
    peers = Peers(parts.node, parts.clock)
    folder = reloader.settings.state.dir
    herald = Herald(reloader, parts.mailbox, peers, LastGood(folder))
    figures = Figures(parts.node, parts.keeper, parts.metrics)
    standing = Standing(
        reloader, parts.metrics, lambda: parts.controller.snapshot, parts.clock, figures
    )
    told = Told(reloader, parts.notifier, parts.metrics, standing, herald)
    reloads = Reloads(told, pace=lambda: pace_of(reloader))
    in_cluster = "KUBERNETES_SERVICE_HOST" in os.environ
    poll = Poll(reloader, reloads, auto=in_cluster, rng=parts.rng, looked=standing.tell)
    watch = Watch(lambda: folders_of(reloader), poll.hint, lambda: reloader.settings.config.inotify)
    standing.mode = lambda: watch.mode
    elsewhere = _elsewhere(reloader, reloads, parts)

    def come_to(settings: Settings) -> list[Document]:
        sizes = derived.Sizes(*parts.node.machine.sizes(parts.clock()))
        return derived.rows(settings, parts.host, sizes)

    eyes = (poll, watch, elsewhere)
    return Reloading(reloader, reloads, eyes, standing, (herald, peers), come_to)


def _subscribe(reloader: Reloader, parts: Parts, doors: AsyncExitStack) -> None:
    logging = Logging(lambda: shared_level(reloader))
    logging.use(reloader.settings)
    doors.callback(logging.close)
    reloader.subscribe(Worldly(parts.mailbox, reloader, lambda: parts.controller.world))
    reloader.subscribe(logging)
    reloader.subscribe(Checks(parts.health))
    heard = parts.membership
    reloader.subscribe(Gossip(parts.node, parts.seeds, parts.clock, lambda: heard.answered_at))


def _elsewhere(reloader: Reloader, reloads: Reloads, parts: Parts) -> Elsewhere | None:
    """The follower of the annotation of this node, if annotations come from anywhere."""
    if parts.layers is None:
        return None
    file = LayerFile(reloader.settings.state.dir)
    follower = Elsewhere(
        parts.layers,
        reloader.settings.node.name,
        reloads.poke,
        layer=RemoteLayer(kept=file.kept()),
        rng=parts.rng,
        taken=file.keep,
    )
    reloader.listen(follower.text)
    return follower
