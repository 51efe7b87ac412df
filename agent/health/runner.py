"""Runs the checks: each in its own rhythm, a few at a time, none able to hurt the daemon.

What they come to goes to the controller whenever it changes, and only then.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from agent.health.board import Board, quiet
from agent.health.probes import prober
from agent.health.verdict import failed
from agent.inputs import HealthSeen

if TYPE_CHECKING:
    from random import Random

    from agent.health.board import Fitness
    from agent.health.probes import Prober, Senses
    from agent.health.verdict import Result
    from agent.mailbox import Mailbox
    from agent.metrics import Metrics
    from config.schema.health import CheckEntry, HealthSection

AT_ONCE = 16
"""Checks that may be asking at one moment; the others wait for their turn."""
FIRST = 1.0
"""Seconds over which the first rounds are spread: a start waits for them."""
JITTER = 0.1
"""Share of an interval by which rounds differ, or all checks would ask together for ever."""
GRACE = 2.0
"""Seconds beyond its timeout after which a round is given up, whatever it is doing."""
LEAST_PAUSE = 0.05

log = structlog.get_logger("wayout.health")


class Health:
    """Part of the daemon; `fitness` is where the node stands by the last results."""

    def __init__(self, senses: Senses, mailbox: Mailbox, metrics: Metrics, rng: Random) -> None:
        self._senses = senses
        self._mailbox = mailbox
        self._metrics = metrics
        self._rng = rng
        self._board = Board()
        self._wanted: dict[str, CheckEntry] = {}
        self._running: dict[str, tuple[CheckEntry, asyncio.Task[None]]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._news = asyncio.Event()
        self._damped: frozenset[str] = frozenset()
        self.fitness: Fitness = self._board.fitness(0.0)
        self._told = self.fitness

    def configure(self, section: HealthSection) -> None:
        """Follow the settings from now on; what did not change is left alone."""
        self._board.configure(section)
        self._wanted = dict(section.checks)
        self.fitness = self._board.fitness(_now())
        self._news.set()

    async def run(self) -> None:
        """Check until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._news.clear()
                self._follow(tasks)
                self._tell()
                changes_at = self._board.changes_at(_now())
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(
                        changes_at if changes_at < float("inf") else None
                    ):
                        await self._news.wait()

    def _follow(self, tasks: asyncio.TaskGroup) -> None:
        for name, (check, task) in list(self._running.items()):
            if self._wanted.get(name) != check:
                task.cancel()
                del self._running[name]
        for name, check in self._wanted.items():
            if name not in self._running:
                task = tasks.create_task(self._watch(name, check), name=f"check-{name}")
                self._running[name] = (check, task)

    async def _watch(self, name: str, check: CheckEntry) -> None:
        ask = prober(name, check, self._senses)
        await asyncio.sleep(self._rng.uniform(0.0, min(check.interval, FIRST)))
        while True:
            async with self._slots:
                began = _now()
                result = await _guarded(ask, check.timeout)
                took = _now() - began
            self._hear(name, result, took)
            pause = check.interval * self._rng.uniform(1 - JITTER, 1 + JITTER)
            await asyncio.sleep(max(pause - took, LEAST_PAUSE))

    def _hear(self, name: str, result: Result, took: float) -> None:
        self._metrics.check_asked(name, passed=result.passed, seconds=took)
        verdict = self._board.hear(name, result, _now())
        if verdict is None:
            return
        say = log.info if verdict.passing else log.warning
        state = "passing" if verdict.passing else "failing"
        say("health.check_changed", check=name, now=state, reason=verdict.detail)
        self._news.set()

    def _tell(self) -> None:
        now = _now()
        fitness = self._board.fitness(now)
        damped = frozenset(each.name for each in fitness.checks if each.state == "damped")
        for name in sorted(damped - self._damped):
            log.warning("health.check_damped", check=name)
        for name in sorted(self._damped - damped):
            log.info("health.check_believed", check=name)
        self._damped = damped
        self._metrics.checks({each.name: each.state for each in fitness.checks})
        self.fitness = fitness
        if quiet(fitness) != quiet(self._told):
            self._told = fitness
            self._mailbox.put(HealthSeen(fitness))


async def _guarded(ask: Prober, patience: float) -> Result:
    """A round that does not keep to its own timeout is ended from outside."""
    try:
        async with asyncio.timeout(patience + GRACE):
            return await ask()
    except TimeoutError:
        return failed("did not end in time")


def _now() -> float:
    return asyncio.get_running_loop().time()
