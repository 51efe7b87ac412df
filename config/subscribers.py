"""All parts of the daemon change over together, or none does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config.changes import Change
    from config.schema.settings import Settings

FINALIZE_PATIENCE = 10.0


class RefusalError(Exception):
    """A part cannot take the new settings; `reason` says what, why, and what to do."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


EXPECTED = (RefusalError, OSError, ValueError)
"""What a part may raise to refuse; anything else is a bug and leaves through the reload."""


@dataclass(frozen=True, slots=True)
class Update:
    """From `old` to `new`, with the changes that are to take effect now."""

    old: Settings
    new: Settings
    changes: tuple[Change, ...]


class Subscriber(Protocol):
    """A part that runs on some sections of the settings.

    `rebinds` are the options (`api.socket`) whose sockets it can move while it runs.
    """

    name: str
    sections: frozenset[str]
    rebinds: frozenset[str]

    async def prepare(self, update: Update) -> object:
        """Get everything ready that can fail, with no effect yet; returns a token of its own.

        Raises RefusalError, OSError or ValueError, having cleaned up after itself.
        """
        ...

    def commit(self, token: object) -> None:
        """Change over at once: swap references, set timers. Should not fail."""
        ...

    def rollback(self, token: object) -> None:
        """Be as before `prepare`, whether or not `commit` was called or succeeded."""
        ...

    async def finalize(self, token: object) -> None:
        """Close and drain what the old settings needed; wake whoever must act on the new."""
        ...


@runtime_checkable
class Confirming(Protocol):
    """A part whose new settings can turn out wrong only once they are in force."""

    async def confirm(self, token: object) -> None:
        """Return as soon as they have proved right; RefusalError when they have not in time."""
        ...


@dataclass(frozen=True, slots=True)
class Fault:
    """A part that failed, and the step in which it did."""

    subscriber: str
    step: str
    reason: str

    def __str__(self) -> str:
        return f"{self.subscriber} could not {self.step}: {self.reason}"


def parts_of(
    subscribers: Sequence[Subscriber], changes: Sequence[Change]
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """By path, the names of those who act on a change, in the order in which they do."""
    return {
        change.path: tuple(each.name for each in subscribers if change.path[0] in each.sections)
        for change in changes
    }


class Changeover:
    """One transaction over the subscribers whom the update concerns."""

    def __init__(self, subscribers: Sequence[Subscriber], update: Update) -> None:
        touched = {each.path[0] for each in update.changes}
        self._concerned = [each for each in subscribers if touched & each.sections]
        self._update = update
        self._prepared: list[tuple[Subscriber, object]] = []
        self.failed_rollbacks: list[Fault] = []

    async def prepare(self) -> Fault | None:
        """Ask everybody; if one refuses, those who had agreed are told to forget it."""
        name, ready = "", False
        try:
            async with asyncio.timeout(self._update.old.config.prepare_timeout):
                for each in self._concerned:
                    name = each.name
                    self._prepared.append((each, await each.prepare(self._update)))
            ready = True
        except EXPECTED as error:
            return Fault(name, "prepare it", reason_of(error))
        finally:
            # Also when the daemon is stopped meanwhile.
            if not ready:
                self.rollback()
        return None

    def commit(self) -> Fault | None:
        """Everybody, in one turn of the loop; if one fails, all go back, it included."""
        name, done = "", False
        try:
            for each, token in self._prepared:
                name = each.name
                each.commit(token)
            done = True
        except EXPECTED as error:
            return Fault(name, "apply it", reason_of(error))
        finally:
            if not done:
                self.rollback()
        return None

    def rollback(self) -> None:
        """Everybody who had agreed, last first; a failure does not stop the others."""
        for each, token in reversed(self._prepared):
            try:
                each.rollback(token)
            except EXPECTED as error:
                self.failed_rollbacks.append(Fault(each.name, "roll it back", reason_of(error)))
        self._prepared = []

    async def confirm(self) -> Fault | None:
        """Wait for whoever can tell whether it was right; the first who says no ends it."""
        for each, token in self._prepared:
            if not isinstance(each, Confirming):
                continue
            try:
                await each.confirm(token)
            except EXPECTED as error:
                return Fault(each.name, "confirm it", reason_of(error))
        return None

    async def finalize(self) -> list[Fault]:
        """Best effort: the new settings are in force whatever happens here."""
        faults = []
        for each, token in self._prepared:
            try:
                async with asyncio.timeout(FINALIZE_PATIENCE):
                    await each.finalize(token)
            except EXPECTED as error:
                faults.append(Fault(each.name, "finish it", reason_of(error)))
        return faults


def reason_of(error: Exception) -> str:
    """Why, in words; a timeout has none of its own."""
    if isinstance(error, TimeoutError):
        return str(error) or "it took too long"
    return str(error) or type(error).__name__
