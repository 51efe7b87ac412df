"""Processes that a lab starts and later ends: known by pid and start time, never by name.

A pid alone may belong to somebody else by the time it is used; pid and start time together
belong to one process for as long as the machine is up.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

SEARCH_PATH: Final = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
)
"""Searched after PATH: `ip` and `nft` live where an ordinary user's PATH does not look."""
FOREIGN: Final = ("WAYOUT_", "NOTIFY_SOCKET", "WATCHDOG_")
"""Variables that would set options of our daemons, or talk to somebody's service manager."""
LINE_LIMIT = 4096
END_PATIENCE = 5.0
"""Seconds that a killed process may take to vanish."""
POLL = 0.005

INTERRUPTS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})

_Action = tuple[int, int] | tuple[int, int, int] | tuple[int, int, str, int, int]
# What Python ignores or handles, a program that we start must meet in its default.
_DEFAULTED = (signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGHUP, signal.SIGTERM)


class LabError(Exception):
    """A lab cannot do what was asked: what, why, what to do."""


@dataclass(frozen=True, slots=True)
class Process:
    """One life of a pid; `started` counts clock ticks since the machine booted."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        """Whether it runs still; a zombie does not."""
        return _look(self.pid) == (self.started, True)

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self.started / os.sysconf("SC_CLK_TCK")

    @property
    def stopped(self) -> bool:
        """Whether a signal has stopped it."""
        return self.alive and _fields(self.pid)[0] in "tT"


def of(pid: int) -> Process:
    """The process that has this pid now; LabError if there is none."""
    started, _ = _look(pid)
    if started is None:
        raise LabError(f"process {pid} is gone, it ended as soon as it was started")
    return Process(pid, started)


def spawn(argv: Sequence[str], *, output: Path | None = None) -> Process:
    """Start a program in a session of its own; what it prints is appended to `output`."""
    sink = str(output or os.devnull)
    actions = (
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, sink, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    )
    return of(_start(argv, actions))


def spawn_ready(argv: Sequence[str], *, patience: float) -> Process:
    """Start a program that prints a line once it is ready; LabError with its words if not."""
    reader, writer = os.pipe()
    try:
        actions = (
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, writer, 1),
            (os.POSIX_SPAWN_DUP2, writer, 2),
        )
        try:
            pid = _start(argv, actions)
        finally:
            os.close(writer)
        said = _line(reader, patience)
        if said != "ready":
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            _reap(pid, block=True)
            raise LabError(said or f"{argv[0]} did not get ready within {patience:g} s")
        return of(pid)
    finally:
        os.close(reader)


def send(process: Process, number: signal.Signals) -> bool:
    """Signal it; False if it is gone. Whoever has its pid now is left alone."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if not process.alive:
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def end(processes: Iterable[Process], patience: float = END_PATIENCE) -> list[Process]:
    """Kill them all and wait until they are gone; those that are not after `patience` seconds."""
    doomed = [each for each in processes if send(each, signal.SIGKILL) or not _reap(each.pid)]
    return [each for each in doomed if not wait(each, patience)]


def wait(process: Process, patience: float) -> bool:
    """Wait for its end; False if it still runs after `patience` seconds."""
    limit = time.monotonic() + patience
    while process.alive:
        if time.monotonic() > limit:
            return False
        time.sleep(POLL)
    _reap(process.pid)
    return True


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Interrupts wait until the block has ended: what is started in it is also written down."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """TERM and HUP interrupt the block as INT does, so that it can clean up behind itself.

    Only the first one does: impatience must not interrupt the cleaning.
    """

    def interrupt(_number: int, _frame: object) -> None:
        for number in INTERRUPTS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in INTERRUPTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def path() -> str:
    """PATH with the folders of system programs at its end."""
    return os.pathsep.join([os.environ.get("PATH", ""), *SEARCH_PATH])


def environment() -> Mapping[str, str]:
    """Ours, with a PATH that finds `ip`, and without what is meant for another daemon."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, "PATH": path()}


def _start(argv: Sequence[str], actions: Sequence[_Action]) -> int:
    try:
        return os.posix_spawnp(
            argv[0],
            list(argv),
            environment(),
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=_DEFAULTED,
        )
    except FileNotFoundError:
        raise LabError(f"{argv[0]} is missing, install it") from None


def _line(reader: int, patience: float) -> str:
    """What comes until the end of the line, or of the writer; empty if nothing does in time."""
    limit = time.monotonic() + patience
    said = b""
    while b"\n" not in said and len(said) < LINE_LIMIT:
        ready, _, _ = select.select([reader], [], [], max(limit - time.monotonic(), 0))
        chunk = os.read(reader, LINE_LIMIT) if ready else b""
        if not chunk:
            break
        said += chunk
    return said.decode(errors="replace").strip().partition("\n")[0]


def _look(pid: int) -> tuple[int | None, bool]:
    """When it was started (None: there is no such process), and whether it lives."""
    try:
        state, *rest = _fields(pid)
    except (FileNotFoundError, ProcessLookupError):
        return None, False
    return int(rest[18]), state not in "ZX"


def _fields(pid: int) -> list[str]:
    # The second field is the program's name in brackets and may contain anything.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _reap(pid: int, *, block: bool = False) -> bool:
    """Take the exit code of a child of ours; False if it is none, or runs still."""
    try:
        return os.waitpid(pid, 0 if block else os.WNOHANG)[0] == pid
    except ChildProcessError:
        return False
