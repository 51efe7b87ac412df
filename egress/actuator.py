"""Carries out a plan: releases first, then binds in small pieces, each announced at once.

A release comes first and is acknowledged before anything is bound, for a peer may be waiting for
it. A piece is small, and between two pieces the loop and other plans have their turn, so an
urgent address never stands behind a bulk. Failures are collected, never raised.
"""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import TYPE_CHECKING, assert_never

from egress.kernel import KernelError
from egress.model import Announce, Bind, Failure, Outcome, Unbind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from egress.kernel import Kernel, Lan
    from egress.model import Binding, Step

PIECE = 64
"""Addresses that are bound before the first of them is announced: some milliseconds of IPv4."""
NO_LIMITS: Mapping[Binding, float] = MappingProxyType({})
TIMED_OUT = 0
"""The errno of a step that there was no time for."""
TOO_LATE = "its turn came too late, it has to be looked at anew"


async def apply(
    steps: Sequence[Step],
    kernel: Kernel,
    lan: Lan,
    *,
    lease: float,
    patience: float,
    bind_by: Mapping[Binding, float] = NO_LIMITS,
) -> Outcome:
    """Do all steps, within `patience` seconds; what was not reached by then has failed.

    First announcements go out with the address that they belong to, and only if it was bound;
    repeats come last. `bind_by`: loop times after which the silence that allows a bind is too
    old; it is looked at before each piece, and what is late has failed.
    """
    work = _Work(steps, kernel, lan, lease, bind_by)
    try:
        async with asyncio.timeout(patience):
            await work.release()
            await work.announce(work.standing, first=True)
            await work.bind()
            await work.announce(work.repeats, first=False)
    except TimeoutError:
        work.give_up("no time was left for it")
    return work.outcome()


class _Work:
    """The steps of one plan, sorted, and what has become of them so far."""

    def __init__(
        self,
        steps: Sequence[Step],
        kernel: Kernel,
        lan: Lan,
        lease: float,
        bind_by: Mapping[Binding, float],
    ) -> None:
        self._steps = steps
        self._kernel = kernel
        self._lan = lan
        self._lease = lease
        self._bind_by = bind_by
        self._done: set[Step] = set()
        self._failed: dict[Step, Failure] = {}
        self._releases: list[Binding] = []
        self._arrivals: list[Binding] = []
        self.repeats: list[Binding] = []
        news: list[Binding] = []
        for step in steps:
            match step:
                case Unbind(binding):
                    self._releases.append(binding)
                case Bind(binding):
                    self._arrivals.append(binding)
                case Announce(binding, first=True):
                    news.append(binding)
                case Announce(binding, first=_):
                    self.repeats.append(binding)
                case _:
                    assert_never(step)
        arriving = set(self._arrivals)
        self.standing = [each for each in news if each not in arriving]
        self._heralded = arriving.intersection(news)

    async def release(self) -> None:
        """Take addresses away; returns when the kernel has said so."""
        for piece in _pieces(self._releases):
            failed = await self._kernel.unbind(piece)
            for binding in piece:
                self._note(Unbind(binding), failed.get(binding))

    async def bind(self) -> None:
        """Put addresses there, IPv4 first, since IPv6 costs the kernel ten times as much."""
        for whole in _pieces(sorted(self._arrivals, key=lambda each: each.ip.version)):
            piece = self._timely(whole)
            failed = await self._kernel.bind(piece, self._lease) if piece else {}
            for binding in piece:
                self._note(Bind(binding), failed.get(binding))
                if binding in failed and binding in self._heralded:
                    self._note(Announce(binding, first=True), failed[binding])
            news = [each for each in piece if each not in failed and each in self._heralded]
            await self.announce(news, first=True)

    def _timely(self, piece: Sequence[Binding]) -> Sequence[Binding]:
        """Those that may still be bound; a bulk takes longer than silence stays fresh."""
        now = asyncio.get_running_loop().time()
        timely = []
        for binding in piece:
            if now <= self._bind_by.get(binding, now):
                timely.append(binding)
            else:
                self._note(Bind(binding), KernelError("bind", TIMED_OUT, TOO_LATE))
                if binding in self._heralded:
                    late = KernelError("announce", TIMED_OUT, TOO_LATE)
                    self._note(Announce(binding, first=True), late)
        return timely

    async def announce(self, bindings: Sequence[Binding], *, first: bool) -> None:
        """Tell the LAN; a link that refuses does not keep the others from it."""
        links: dict[str, list[Binding]] = {}
        for binding in bindings:
            links.setdefault(binding.interface, []).append(binding)
        for group in links.values():
            refused: KernelError | None = None
            try:
                await self._lan.announce(group, first=first)
            except KernelError as error:
                refused = error
            for binding in group:
                self._note(Announce(binding, first=first), refused)

    def give_up(self, message: str) -> None:
        """Whatever has not been done has failed."""
        for step in self._steps:
            if step not in self._done and step not in self._failed:
                self._failed[step] = Failure(step, TIMED_OUT, message)

    def outcome(self) -> Outcome:
        """What became of each step, in the order of the plan."""
        return Outcome(
            done=tuple(each for each in self._steps if each in self._done),
            failed=tuple(self._failed[each] for each in self._steps if each in self._failed),
        )

    def _note(self, step: Step, error: KernelError | None) -> None:
        if error is None:
            self._done.add(step)
        else:
            self._failed[step] = Failure(step, error.errno, error.message)


def _pieces(bindings: Sequence[Binding]) -> Iterator[Sequence[Binding]]:
    for start in range(0, len(bindings), PIECE):
        yield bindings[start : start + PIECE]
