"""What outlives the process: bound addresses, the members there ought to be, and a wished drain.

Written whole or not at all (temporary file, fsync, rename), in a thread, for a disk may hang. What
cannot be read is set aside and forgotten: the kernel and the peers know better than a broken file.
"""

from __future__ import annotations

import asyncio
import errno
import json
import threading
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from agent.disk import set_aside, write_whole
from egress.model import Binding

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 1
SIZE_LIMIT = 8 * 1024 * 1024
BOUND_LIMIT = 20_000
MEMBERS_LIMIT = 10_000
NAME_LIMIT = 253
INTERFACE_LIMIT = 15
PATIENCE = 5.0
"""Seconds after which a disk that does not answer is left alone."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

log = structlog.get_logger("wayout.state")


@dataclass(frozen=True, slots=True)
class State:
    """`drain_until` is Unix time (None: until told); loop times mean nothing to a successor.

    `bound`: what we bound since the host booted, so that an address whose mark was stripped is
    known as ours again. `members`: names of members seen and neither left nor reaped.
    """

    bound: frozenset[Binding] = frozenset()
    members: frozenset[str] = frozenset()
    draining: bool = False
    drain_until: float | None = None


class StateFile:
    """One file with one writer; a newer state that comes while one is written replaces it."""

    def __init__(
        self, folder: str | Path, name: str = "state.json", boot: str | None = None
    ) -> None:
        self._path = Path(folder) / name
        self._boot = _this_boot() if boot is None else boot
        self._saved: State | None = None
        self._writing = asyncio.Lock()
        self._disk = threading.Lock()
        self._newest = State()
        self._failing = False

    async def load(self) -> State:
        """What the predecessor left, or an empty state."""
        try:
            async with asyncio.timeout(PATIENCE):
                self._newest = await asyncio.to_thread(self._read)
        except TimeoutError:
            log.warning("state.unreadable", path=str(self._path), reason="the disk does not answer")
        return self._newest

    async def save(self, state: State) -> bool:
        """Whether `state`, or a newer one, is on disk; an unchanged one is not written again."""
        self._newest = state
        try:
            async with asyncio.timeout(PATIENCE), self._writing:
                if self._newest != self._saved:
                    writing = self._newest
                    await asyncio.to_thread(self._write, _to_text(writing, self._boot))
                    self._saved = writing
        except OSError as error:  # a TimeoutError is one too
            self._fail(error)
            return False
        if self._failing:
            log.info("state.written_again", path=str(self._path))
        self._failing = False
        return True

    def _write(self, text: bytes) -> None:
        # A thread that was given up may still be at it; two would spoil each other's file.
        if not self._disk.acquire(blocking=False):
            raise OSError(errno.EBUSY, "the last write has not come back")
        try:
            write_whole(self._path, text)
        finally:
            self._disk.release()

    def _fail(self, error: OSError) -> None:
        # A full disk is told once, not with every change.
        if not self._failing:
            log.error(
                "state.unwritable", path=str(self._path), reason=error.strerror or "no answer"
            )
        self._failing = True

    def _read(self) -> State:
        try:
            with self._path.open("rb") as file:
                raw = file.read(SIZE_LIMIT + 1)
            state = _from_text(raw, self._boot)
        except FileNotFoundError:
            return State()
        except OSError as error:
            log.warning("state.unreadable", path=str(self._path), reason=error.strerror)
            return State()
        except ValueError as error:
            set_aside(self._path, str(error))
            return State()
        self._saved = state
        return state


def _this_boot() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _to_text(state: State, boot: str) -> bytes:
    document = {
        "version": VERSION,
        "boot": boot,
        "bound": [[str(each.ip), each.interface] for each in sorted(state.bound)[:BOUND_LIMIT]],
        "members": sorted(state.members)[:MEMBERS_LIMIT],
        "drain": {"draining": state.draining, "until": state.drain_until},
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def _from_text(raw: bytes, boot: str) -> State:
    """The state in a file; ValueError if any part of it makes no sense."""
    if len(raw) > SIZE_LIMIT:
        raise ValueError("too large")
    try:
        document = json.loads(raw)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise ValueError(f"no state of version {VERSION}")
    drain = _table(document, "drain")
    bound = frozenset(_binding(each) for each in _list(document, "bound", BOUND_LIMIT))
    return State(
        # A boot clears every address of ours; one that is there now was put there by somebody else.
        bound=bound if document.get("boot") == boot else frozenset(),
        members=frozenset(_name(each) for each in _list(document, "members", MEMBERS_LIMIT)),
        draining=drain.get("draining") is True,
        drain_until=_moment(drain.get("until")),
    )


def _table(document: Mapping[str, object], key: str) -> Mapping[str, object]:
    match document.get(key):
        case dict() as found:
            return found
        case _:
            raise ValueError(f"{key} is no table")


def _list(document: Mapping[str, object], key: str, limit: int) -> list[object]:
    found = document.get(key)
    if not isinstance(found, list) or len(found) > limit:
        raise ValueError(f"{key} is no list of at most {limit}")
    return found


def _binding(value: object) -> Binding:
    match value:
        case [str(ip), str(interface)] if 0 < len(interface) <= INTERFACE_LIMIT:
            return Binding(ip_address(ip), interface)
        case _:
            raise ValueError("bound has something that is no [ip, interface]")


def _name(value: object) -> str:
    if isinstance(value, str) and 0 < len(value) <= NAME_LIMIT:
        return value
    raise ValueError("members has something that is no name")


def _moment(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:  # noqa: PLR2004 - any year
        raise ValueError("until is no time")
    return float(value)
