"""One slot for each kind of input: the newest wins, or adds up, so nothing can pile up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent.inputs import ClaimsHeard, LeaseLapsed, NoticesHeard, RivalsHeard, WireAnswered

if TYPE_CHECKING:
    from agent.inputs import Input


class Mailbox:
    """Many writers on the loop, one reader."""

    def __init__(self) -> None:
        self._slots: dict[type[Input], Input] = {}
        self._filled = asyncio.Event()

    def put(self, item: Input) -> None:
        """Never blocks; an unread item of the same kind is replaced or added to."""
        kind = type(item)
        older = self._slots.get(kind)
        self._slots[kind] = item if older is None else _sum(older, item)
        self._filled.set()

    async def take(self, deadline: float | None) -> tuple[Input, ...]:
        """Everything unread, or nothing once the loop clock passes `deadline`."""
        # Not asyncio.timeout: it ends a wait by cancelling the task, which takes the loop two
        # turns more, several times a second for as long as the daemon lives.
        alarm = None
        if deadline is not None:
            alarm = asyncio.get_running_loop().call_at(deadline, self._filled.set)
        try:
            await self._filled.wait()
        finally:
            if alarm is not None:
                alarm.cancel()
        items = tuple(self._slots.values())
        self._slots.clear()
        self._filled.clear()
        return items


def _sum(older: Input, newer: Input) -> Input:
    match older, newer:
        case (ClaimsHeard(), ClaimsHeard()):
            return newer.after(older)
        case (WireAnswered(), WireAnswered()):
            return newer.after(older)
        case (LeaseLapsed(), LeaseLapsed()):
            return newer.after(older)
        case (RivalsHeard(), RivalsHeard()):
            return newer.after(older)
        case (NoticesHeard(), NoticesHeard()):
            return newer.after(older)
        case _:
            return newer
