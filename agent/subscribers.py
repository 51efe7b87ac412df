"""The parts of the daemon that a reload changes over: logs, gossip, listeners, and the world."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import structlog

from agent import facts, logs, security, wiring
from agent.health import board
from agent.standing import announcement
from config.schema.agent import Level
from config.subscribers import RefusalError
from gossip.admission import Admission

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.health.runner import Health
    from agent.mailbox import Mailbox
    from agent.seeds import Seeds
    from agent.world import World
    from config.schema.settings import Settings
    from config.subscribers import Update
    from config.transaction import Reloader
    from gossip.node import Node
    from gossip.wire.packet import Envelope

log = structlog.get_logger("wayout.config")

LOOK = 0.1
"""Seconds between two looks for an answer."""
ECHO = 0.25
"""Seconds after a change in which an answer may still be one to a question from before."""

EVERYTHING = frozenset(
    {
        *{"node", "gossip", "egress", "interfaces", "health"},
        *{"api", "metrics", "logging", "state", "config"},
    }
)


class Logging:
    """`logging.*`; `shared` is the level that the files name for all nodes, if they name one."""

    name = "logging"
    sections = frozenset({"logging"})
    rebinds: frozenset[str] = frozenset()

    def __init__(self, shared: Callable[[], Level | None] = lambda: None) -> None:
        self._shared = shared
        self._timed: tuple[Level, float] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._over = False

    async def prepare(self, update: Update) -> object:
        """Nothing that could fail."""
        return update

    def commit(self, token: object) -> None:
        """Level and form at once, for loggers that are bound already too."""
        self.use(cast("Update", token).new)

    def rollback(self, token: object) -> None:
        """As before."""
        self.use(cast("Update", token).old)

    async def finalize(self, token: object) -> None:  # noqa: ARG002 - the same for all
        """The files may name another level for all nodes now."""
        if self._over:
            self._fall_back()

    def use(self, settings: Settings) -> None:
        """Log like that, and for as long as `logging.level_ttl` says; in a loop."""
        configure_logs(settings)
        section = settings.logging
        timed = (section.level, section.level_ttl)
        if timed == self._timed:
            if self._over:
                self._fall_back()
            return
        self.close()
        self._timed, self._over = timed, False
        if section.level_ttl:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(section.level_ttl, self._expired)

    def close(self) -> None:
        """The level stays as it is; idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expired(self) -> None:
        self._over = True
        level = self._fall_back()
        log.warning("logging.level_expired", level=level.value)

    def _fall_back(self) -> Level:
        level = self._shared() or Level.INFO
        logs.set_levels(level.value)
        return level


def shared_level(reloader: Reloader) -> Level | None:
    """The level that the files name for all nodes alike."""
    said = reloader.provenance.for_all(("logging", "level"))
    return next((each for each in Level if each.value == said), None)


def configure_logs(settings: Settings) -> None:
    """The logs as the settings want them."""
    section = settings.logging
    logs.configure(level=section.level.value, shape=section.format.value, node=settings.node.name)


@dataclass(frozen=True, slots=True)
class _Turn:
    """From one set of keys to another; `company` tells whether there was a peer before."""

    update: Update
    envelope: Envelope
    before: Envelope
    company: bool


class Gossip:
    """`gossip.*`: timing, seeds and keys."""

    name = "gossip"
    sections = frozenset({"gossip"})
    rebinds: frozenset[str] = frozenset()

    def __init__(
        self,
        node: Node,
        seeds: Seeds,
        clock: Callable[[], float],
        answered: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self._node = node
        self._seeds = seeds
        self._clock = clock
        self._answered = answered
        self._former: _Turn | None = None

    async def prepare(self, update: Update) -> object:
        """Read the keys; OSError or ValueError when the keyring is no good."""
        former, machine = self._former, self._node.machine
        if former is not None and update.new is former.update.old:
            # On the way back: the file may hold the very keys that turned out wrong.
            new = former.before
        else:
            new = await asyncio.to_thread(security.envelope, update.new)
        mine = update.new.node.name
        company = any(each.health.present and each.name != mine for each in machine.members())
        return _Turn(update, new, machine.envelope, company)

    def commit(self, token: object) -> None:
        """Timers are armed anew; membership and incarnation stay."""
        turn = cast("_Turn", token)
        self._former = turn
        self._use(turn.update.new, turn.envelope)

    def rollback(self, token: object) -> None:
        """As before."""
        turn = cast("_Turn", token)
        self._former = None
        self._use(turn.update.old, turn.before)

    async def finalize(self, token: object) -> None:
        """Nothing is left over."""

    async def confirm(self, token: object) -> None:
        """Return when any peer has answered under the new settings, if there was one before.

        Both directions are proved by that: our ping was read there, and its answer here.
        """
        turn = cast("_Turn", token)
        patience = turn.update.new.config.confirm_timeout
        if not turn.company or not patience:
            return
        began = self._clock()
        while self._clock() < began + patience:
            self._node.perform(self._node.machine.burst(self._clock()))
            await asyncio.sleep(LOOK)
            if self._answered() > began + ECHO:
                return
        raise RefusalError(
            f"no peer has answered for {patience:g} s since gossip was changed, and there was one "
            "before: everything is as it was; look at gossip.encryption, gossip.keyring_file and "
            "gossip.allowed_cidrs on all nodes"
        )

    def _use(self, settings: Settings, envelope: Envelope) -> None:
        now = self._clock()
        self._node.machine.envelope = envelope
        self._node.admission = Admission(settings.gossip.allowed_cidrs)
        self._node.perform(self._node.machine.set_tuning(wiring.tuning(settings), now))
        self._seeds.change(settings.gossip.seeds, settings.gossip.bind_port)


class Checks:
    """`health.*`."""

    name = "health"
    sections = frozenset({"health"})
    rebinds: frozenset[str] = frozenset()

    def __init__(self, health: Health) -> None:
        self._health = health

    async def prepare(self, update: Update) -> object:
        """Nothing that could fail."""
        return update

    def commit(self, token: object) -> None:
        """Checks that did not change go on as they were."""
        self._health.configure(cast("Update", token).new.health)

    def rollback(self, token: object) -> None:
        """As before."""
        self._health.configure(cast("Update", token).old.health)

    async def finalize(self, token: object) -> None:
        """Nothing is left over."""


class Worldly:
    """Everything: the controller gets the settings as one value, once they are in force."""

    name = "controller"
    sections = EVERYTHING
    rebinds: frozenset[str] = frozenset()

    def __init__(self, mailbox: Mailbox, reloader: Reloader, world: Callable[[], World]) -> None:
        self._mailbox = mailbox
        self._reloader = reloader
        self._world = world

    async def prepare(self, update: Update) -> object:
        """Refuse what would not fit into the metadata that peers get."""
        reasons = (*MOST_REASONS, *board.largest(update.new.health))
        own = wiring.own_facts(self._world().with_settings(update.new), reasons)
        own = replace(own, lacks=wiring.wishes(update.new))
        size = len(facts.packed(own))
        if size > facts.LIMIT:
            raise RefusalError(
                f"node.labels and the other facts of this node need {size} bytes of gossip "
                f"metadata and there are {facts.LIMIT}: use fewer or shorter labels, or "
                "shorter names of health checks"
            )
        return update

    def commit(self, token: object) -> None:
        """The picture changes with the next turn of the controller."""

    def rollback(self, token: object) -> None:
        """Nothing was changed."""

    async def finalize(self, token: object) -> None:  # noqa: ARG002 - the same for all
        """Tell the controller."""
        self._mailbox.put(announcement(self._reloader))


MOST_REASONS = ("not_eligible", "draining", "isolated")
"""Room for the reasons that a node may have to give later."""
