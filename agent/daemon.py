"""The composition root: builds every part, runs them in one TaskGroup, says farewell in order.

Readiness goes first, then the addresses are handed over, then gossip says goodbye, then all
tasks are cancelled and every door is closed. A part that fails takes the daemon with it: a daemon
that has lost a limb must be restarted, not limp.
"""

from __future__ import annotations

import asyncio
import gc
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import structlog

from agent import building, pages, sysctls, wiring
from agent.inputs import KernelChanged, StopWished
from agent.signals import Signals
from agent.subscribers import configure_logs
from agent.sysctls import Severity
from agent.systemd import Notifier
from egress import placement

if TYPE_CHECKING:
    from collections.abc import Awaitable, MutableMapping
    from pathlib import Path

    from agent.building import House
    from config.load import Attempt
    from config.parse import Loaded
    from config.remote import LayerSource

HANDOVER_SHARE = 0.6
"""Part of the stop timeout that handing over may take; the rest is for goodbye."""
INHERIT = 1.0
"""Seconds after the last release in which heirs are given time to claim, before we leave."""
HEADLINE_PERIOD = 2.0
SPREAD = 0.6
"""Seconds that the word "restarting" gets to spread before the process goes."""

log = structlog.get_logger("wayout.daemon")


class PartEndedError(Exception):
    """A part that runs until cancelled has returned: that is a bug, and the daemon ends."""


async def run(
    loaded: Loaded,
    path: Path,
    overrides: tuple[str, ...],
    environ: MutableMapping[str, str],
    refused: Attempt | None = None,
    layers: LayerSource | None = None,
) -> int:
    """Run until told to stop; the exit code. Raises StartError when it cannot start.

    `refused` is what came of the files when `loaded` stands in for them. `layers` is where the
    annotation of this node and what it names come from, if from anywhere.
    """
    configure_logs(loaded.settings)
    notifier = Notifier.of(environ)
    async with AsyncExitStack() as doors:
        start = building.Start(loaded, path, overrides, refused, layers)
        house = await building.build(start, doors, notifier)
        await _serve(house, notifier)
    log.info("daemon.ended")
    return 0


async def _serve(house: House, notifier: Notifier) -> None:
    stop: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def wish(keep: bool) -> None:  # noqa: FBT001 - the callback of Signals
        if not stop.done():
            stop.set_result(keep or house.restarts)

    signals = Signals(stop=wish, reload=lambda: house.reloading.poke("sighup"))
    signals.install(asyncio.get_running_loop())
    # What was imported and built stays for life; to look through it again would hold the loop for
    # some 40 ms, while others count our heartbeats.
    gc.freeze()
    log.debug("daemon.memory_collapsed", bytes=pages.collapse())
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(_endless(name, part), name=name)
            for name, part in _parts(house, notifier).items()
        ]
        keep = await stop
        await _farewell(house, notifier, keep=keep)
        await house.records.flush()
        await house.history.flush()
        for task in running:
            task.cancel()


def _parts(house: House, notifier: Notifier) -> dict[str, Awaitable[None]]:
    return {
        "gossip": house.node.run(),
        "keeper": house.keeper.run(),
        "controller": house.controller.run(),
        "kernel": _listen(house),
        "seeds": house.seeds.run(house.found),
        "announcements": house.lan.run(),
        "gateway": house.gateway.run(),
        "health": house.health.run(),
        "records": house.records.run(),
        "history": house.history.run(),
        "reloading": house.reloading.run(),
        "keyring": house.rotation.run(),
        "readiness": _readiness(house, notifier),
        "watchdog": notifier.run(),
    }


async def _endless(name: str, part: Awaitable[None]) -> None:
    await part
    raise PartEndedError(name)


async def _listen(house: House) -> None:
    """Kernel events become "look again"."""
    while True:
        await house.kernel.changed()
        house.mailbox.put(KernelChanged())


async def _readiness(house: House, notifier: Notifier) -> None:
    """READY once, when joined and reconciled; after that one status line, when it changes."""
    await house.controller.until(lambda shot: not shot.unready)
    log.info("daemon.ready", seconds=round(time.monotonic() - house.began, 3))
    notifier.ready(house.headline())
    _warn_of_sysctls(house)
    said = ""
    while True:
        await asyncio.sleep(HEADLINE_PERIOD)
        if (line := house.headline()) != said:
            said = line
            notifier.status(line)


def _warn_of_sysctls(house: House) -> None:
    """Kernel settings under which egress IPs are not answered, or answered by others as well."""
    world = house.controller.world
    links = placement.usable(world.observed, wiring.scope(world.settings))
    for finding in sysctls.judge(sysctls.read(each.name for each in links)):
        if finding.severity in {Severity.WARNING, Severity.ERROR}:
            log.warning("daemon.sysctl", what=finding.what, reason=finding.why, fix=finding.fix)


async def _farewell(house: House, notifier: Notifier, *, keep: bool) -> None:
    patience = house.settings.node.stop_timeout
    notifier.stopping("restarting" if keep else "handing over")
    house.mailbox.put(StopWished(keep=keep))
    if keep:
        await house.keeper.extend(house.settings.node.restart_timeout)
        await asyncio.sleep(SPREAD)
        return
    try:
        async with asyncio.timeout(patience * HANDOVER_SHARE):
            await house.controller.empty()
            await _inherited(house)
    except TimeoutError:
        log.warning("daemon.farewell_timed_out", part="egress")
    await house.node.farewell(patience * (1 - HANDOVER_SHARE))


async def _inherited(house: House) -> None:
    """Heirs claim within milliseconds; leaving before would make their claims look unfounded."""
    try:
        async with asyncio.timeout(INHERIT):
            await house.controller.until(lambda shot: shot.inherited)
    except TimeoutError:
        log.debug("daemon.heirs_unheard")
