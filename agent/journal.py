"""What the controller decided and did, said aloud: log lines, counters, and history.

It remembers what it said last, so that nothing is said twice.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from agent import history, status
from egress.decision import Kind, Stage
from egress.model import Bind, Unbind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from agent.desk import Document
    from agent.historyfile import History
    from agent.metrics import Metrics
    from egress.decision import Condition, Decision, Move, Phase
    from egress.model import IP, Binding, Outcome

    Tell = Callable[[Sequence[Document], float], None]

SLICE = 64
"""Moves that are told in one go: some milliseconds."""

log = structlog.get_logger("wayout.egress")


class Journal:
    """Owned by the controller; `remover` names the program that took an address away."""

    def __init__(
        self,
        me: str,
        metrics: Metrics,
        kept: History,
        tell: Tell,
        remover: Callable[[Binding], str | None] = lambda _: None,
    ) -> None:
        self._me = me
        self._tell = tell
        self._heard: list[Document] = []
        self._metrics = metrics
        self._kept = kept
        self._remover = remover
        self._removed: set[Binding] = set()
        self._conditions: Mapping[IP, Condition] = {}
        self._phases: Mapping[IP, Phase] = {}

    async def decided(self, decision: Decision, now: float, wall: float) -> None:
        """What changed in what an operator should know."""
        heard, self._heard = self._heard, []
        await self._kept.add(heard)
        await self._moved(decision.moves, now, wall)
        for ip, condition in decision.conditions.items():
            if self._conditions.get(ip) != condition:
                log.warning("egress.condition", ip=str(ip), reason=status.told(ip, condition))
                if condition.kind is Kind.ADDRESS_CONFLICT:
                    self._metrics.conflict_found()
        for ip in self._conditions.keys() - decision.conditions.keys():
            log.info("egress.condition_over", ip=str(ip))
        self._conditions = dict(decision.conditions)
        self._staged(decision.phases)

    def removed(self, restores: Sequence[Binding]) -> None:
        """Another hand took these away; they are about to be put back."""
        self._removed.update(restores)
        for binding in restores:
            log.warning(
                "egress.address_removed",
                ip=str(binding.ip),
                interface=binding.interface,
                by=self._remover(binding) or "unknown",
            )

    def heard(self, entries: Iterable[Document]) -> None:
        """Moves that ended elsewhere; they are kept with the next decision."""
        self._heard += entries

    async def _keep(self, ours: list[Document], now: float) -> None:
        if ours:
            self._tell(ours, now)
            await self._kept.add(ours)

    async def _moved(self, moves: tuple[Move, ...], now: float, wall: float) -> None:
        ours: list[Document] = []
        for number, move in enumerate(moves, 1):
            if number % SLICE == 0:
                await self._keep(ours, now)
                ours = []
                await asyncio.sleep(0)
            if move.to not in {None, self._me}:
                # The heir counts the move and knows how long it took.
                log.info(
                    "egress.handed_over",
                    ip=str(move.ip),
                    egress=move.name,
                    peer=move.to,
                    cause=move.cause.value,
                )
                continue
            log.info("egress.moved", **history.fields(move))
            took = history.phases(move)
            times = {**took, "total": sum(took.values())} if move.to is not None else {}
            self._metrics.move_finished(move.cause.value, times)
            ours.append(history.entry(move, now, wall))
        await self._keep(ours, now)

    def _staged(self, phases: Mapping[IP, Phase]) -> None:
        if phases is self._phases:
            return
        for ip, phase in phases.items():
            before = self._phases.get(ip)
            if before is None or (before.stage, before.detail) != (phase.stage, phase.detail):
                log.debug(
                    "egress.phase_changed",
                    ip=str(ip),
                    stage=phase.stage.value,
                    reason=phase.detail,
                )
        self._phases = phases
        held = {ip for ip, phase in phases.items() if phase.stage is Stage.BOUND}
        self._removed = {each for each in self._removed if each.ip in held}

    def done(self, outcome: Outcome) -> None:
        """What the kernel and the LAN made of a plan."""
        for step in outcome.done:
            binding = step.binding
            if isinstance(step, Bind) and binding in self._removed:
                self._removed.discard(binding)
                self._metrics.address_restored()
                log.info("egress.restored", ip=str(binding.ip), interface=binding.interface)
            elif isinstance(step, Bind):
                log.info("egress.bound", ip=str(binding.ip), interface=binding.interface)
            elif isinstance(step, Unbind):
                log.info("egress.released", ip=str(binding.ip), interface=binding.interface)
            else:
                kind = "first" if step.first else "repeat"
                self._metrics.announced(1, family=binding.ip.version, kind=kind)
        for failure in outcome.failed:
            self._metrics.step_failed(type(failure.step).__name__.lower())
            binding = failure.step.binding
            log.error(
                "egress.step_failed",
                step=type(failure.step).__name__.lower(),
                ip=str(binding.ip),
                interface=binding.interface,
                errno=failure.errno,
                reason=failure.message,
            )
