"""The renewal loop: keeps what is bound alive, and lets go of what may be another's by now.

There is no "renew only if it is still there": a renewal that comes late re-creates the address,
next to its new owner (K55). So the clock is read before each train and again after it, and the
law of `lease` says what may be sent and what must be taken back. A stop between the look at the
clock and the send cannot be excluded; what it brings back is deleted as soon as we run again.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import structlog

from egress.kernel import KernelError
from egress.lease import Renewals, Verdict, interval

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Callable,
        Collection,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from egress.kernel import Kernel
    from egress.model import Binding, Bound

TRAIN = 256
"""Renewals between two looks at the clock: 4 ms of IPv4, 80 ms of IPv6."""
LOOK = 0.05
"""A look at the clock is good for so long; a tenth of the margin that the law leaves."""
RETRY = 0.1
"""Seconds between two tries when the kernel refuses a renewal."""
LATE = 0.5
"""Seconds by which a renewal may be late without a look at what is there."""
LOOKING = 0.5
"""Seconds that such a look may take."""
EVERYTHING = float("inf")
GRAIN = 0.001
"""The loop's timers may fire so much early: the resolution of its clock."""

log = structlog.get_logger("wayout.egress")


class Holder(Protocol):
    """Somebody else who must know what we hold (the LAN, to hear rivals)."""

    def hold(self, bindings: Iterable[Binding]) -> None:
        """These are ours now."""
        ...

    def drop(self, bindings: Iterable[Binding]) -> None:
        """These are no longer ours."""
        ...


class Keeper:
    """Renews what it holds, every quarter of a lease, in one train.

    `lapsed` is called with those for which it was too late; they are off the host by then.
    """

    def __init__(
        self,
        kernel: Kernel,
        lease: float,
        lapsed: Callable[[tuple[Binding, ...]], None],
        others: Sequence[Holder] = (),
    ) -> None:
        self._kernel = kernel
        self._lapsed = lapsed
        self._others = others
        self._renewals = Renewals(lease)
        self._news = asyncio.Event()
        self._turn_taken = asyncio.Lock()
        self._extended = False
        self._not_before = 0.0
        self.lag = 0.0
        """Seconds by which the last renewal began late."""
        self.restored = 0
        """How often something was bound that was held: somebody else had removed it."""

    def __contains__(self, binding: Binding) -> bool:
        return binding in self._renewals

    def __len__(self) -> int:
        return len(self._renewals)

    @property
    def lease(self) -> float:
        """Seconds for which the kernel keeps an address without us; may be changed at any time."""
        return self._renewals.lease

    @lease.setter
    def lease(self, seconds: float) -> None:
        self._renewals.lease = seconds
        self._news.set()

    def hold(self, bindings: Iterable[Binding], *, since: float | None = None) -> None:
        """Keep these, whose lifetime began at `since` (loop seconds), or only now.

        Give the time before the bind was sent; a later one hides a stall in between. One that is
        held already keeps the older time.
        """
        found = list(bindings)
        new = [each for each in found if each not in self._renewals]
        self.restored += len(found) - len(new)
        now = _now()
        self._renewals.hold(new, now if since is None else min(since, now))
        for other in self._others:
            other.hold(new)
        self._news.set()

    def adopt(self, found: Iterable[Bound]) -> None:
        """Keep what an earlier process of ours left behind, counting what is left of each lease."""
        for bound in found:
            left = self.lease if bound.valid is None else bound.valid
            self.hold([bound.binding], since=_now() - max(0.0, self.lease - left))

    def drop(self, bindings: Iterable[Binding]) -> None:
        """Keep these no longer; to be called before they are unbound."""
        gone = list(bindings)
        self._renewals.drop(gone)
        for other in self._others:
            other.drop(gone)

    def retain(self, wanted: Collection[Binding]) -> None:
        """Keep these alone: what nobody wants must not be renewed, whether it can be seen or not.

        A link that was renamed or deleted takes its addresses out of sight; when it comes back,
        a renewal would put them beside their new owner.
        """
        if unwanted := [each for each in self._renewals if each not in wanted]:
            self.drop(unwanted)

    @asynccontextmanager
    async def still(self) -> AsyncIterator[None]:
        """No train is under way on entering: what is dropped first thing inside stays away.

        Renewals go on meanwhile for what is still held, or a long plan would cost its leases.
        """
        async with self._turn_taken:
            pass
        yield

    async def run(self) -> None:
        """Renew until cancelled."""
        while True:
            await self._until_due()
            async with self._turn_taken:
                await self._turn()

    async def extend(self, seconds: float) -> None:
        """Renew everything once for `seconds`, and nothing after that: we are being replaced."""
        self._extended = True
        async with self._turn_taken:
            await self._let_go(self._renewals.lapsed(_now()))
            for train in _trains(self._renewals.due(EVERYTHING)):
                await self._renew(train, seconds)

    async def _until_due(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._news.clear()
            due = max(self._renewals.next_due(), self._not_before)
            due = EVERYTHING if self._extended else due
            alarm = None if due == EVERYTHING else loop.call_at(due, self._news.set)
            try:
                await self._news.wait()
            finally:
                if alarm is not None:
                    alarm.cancel()
            if loop.time() >= due - GRAIN:
                return

    async def _turn(self) -> None:
        looked = _now()
        self.lag = max(0.0, looked - self._renewals.next_due())
        self._not_before = looked + RETRY
        await self._let_go(self._renewals.lapsed(looked))
        if self.lag > LATE:
            await self._let_go(await self._missing())
            looked = _now()
            await self._let_go(self._renewals.lapsed(looked))
        # Those that are half due go along, so that all soon travel in one train.
        for train in _trains(self._renewals.due(looked + interval(self.lease) / 2)):
            if self._extended:
                return
            if _now() - looked > LOOK:
                looked = _now()
                await self._let_go(self._renewals.lapsed(looked))
            await self._renew(train, self.lease)

    async def _missing(self) -> Sequence[Binding]:
        """What we believe to hold and the kernel does not have.

        While we did not run somebody may have taken it away, and somebody else have bound it: a
        renewal would bring it back beside the new owner (K55). If the kernel does not say, the
        law of leases alone decides, as it does for every renewal in time.
        """
        held = self._renewals.due(EVERYTHING)
        try:
            async with asyncio.timeout(LOOKING):
                observed = await self._kernel.observe()
        except (KernelError, TimeoutError) as error:
            log.warning("egress.look_failed", reason=str(error) or "timeout")
            return ()
        there = {each.binding for each in observed.bound}
        return [each for each in held if each not in there]

    async def _renew(self, train: Sequence[Binding], seconds: float) -> None:
        wanted = [each for each in train if each in self._renewals]
        before = _now()
        failed = await self._sent(wanted, seconds)
        after = _now()
        if failed:
            error = next(iter(failed.values()))
            log.warning(
                "egress.renewal_failed",
                addresses=len(failed),
                errno=error.errno,
                reason=error.message,
            )
        arrived = [each for each in wanted if each not in failed and each in self._renewals]
        verdicts = {each: self._renewals.renewed(each, before, after) for each in arrived}
        await self._let_go([each for each, was in verdicts.items() if was is not Verdict.KEPT])

    async def _sent(
        self, wanted: Sequence[Binding], seconds: float
    ) -> Mapping[Binding, KernelError]:
        try:
            async with asyncio.timeout(self.lease):
                return await self._kernel.renew(wanted, seconds)
        except TimeoutError:
            # Nothing is known about these; the law takes them back now or next time.
            log.warning("egress.renewal_timed_out", seconds=self.lease)
            return {}

    async def _let_go(self, late: Sequence[Binding]) -> None:
        """Too late, or perhaps so: what is left of these goes, and whoever decides is told."""
        if not late:
            return
        self.drop(late)
        log.warning("egress.lease_lapsed", addresses=len(late), seconds=self.lag)
        try:
            async with asyncio.timeout(self.lease):
                failed = await self._kernel.unbind(late)
        except TimeoutError:
            failed = {}
        if failed:
            error = next(iter(failed.values()))
            log.error("egress.release_failed", addresses=len(failed), reason=error.message)
        self._lapsed(tuple(late))


def _now() -> float:
    return asyncio.get_running_loop().time()


def _trains(bindings: Sequence[Binding]) -> Iterator[Sequence[Binding]]:
    for start in range(0, len(bindings), TRAIN):
        yield bindings[start : start + TRAIN]
