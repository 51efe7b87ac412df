"""What is on disk of a lab: its folder, and one JSON file that tells which processes are its own.

The file is written before anything else can go wrong, so that whatever was started is found
again: by `lab down`, by the next command, or by the next lab of the same name.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.lab.processes import LabError, Process

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,19}")
"""Short, because the path of a Unix socket may have 107 letters."""
FILE = "lab.json"
SHAPE = 1
PRIVATE = 0o700
LOCK_PATIENCE = 30.0
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(slots=True)
class Record:
    """One lab.

    `owner` is the command that removes it at its own end (a demo); None for one that stays.
    `daemons` are those that should run, `killed` the nodes whose host is dead. `sets` are
    options given to every daemon.
    """

    name: str
    folder: Path
    nodes: int
    ips: dict[str, str]
    sets: tuple[str, ...] = ()
    owner: Process | None = None
    user: Process | None = None
    keepers: dict[str, Process] = field(default_factory=dict)
    daemons: dict[str, Process] = field(default_factory=dict)
    killed: list[str] = field(default_factory=list)

    @property
    def abandoned(self) -> bool:
        """Whether the command that should have removed it is gone."""
        return self.owner is not None and not self.owner.alive

    def save(self) -> None:
        """Replace the file as a whole."""
        fresh = self.folder / f"{FILE}.new"
        fresh.write_text(json.dumps(_plain(self), indent=1))
        fresh.replace(self.folder / FILE)

    def remove(self) -> None:
        """Delete the folder and everything in it, and the folder of labs if it was the last."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.folder.parent.rmdir()


def base() -> Path:
    """The folder of this user's labs, if there are any; LabError if it is somebody else's."""
    uid = os.geteuid()
    wished = os.environ.get("XDG_RUNTIME_DIR")
    root = Path(wished) if wished else Path("/run")
    if _ours(root) and os.access(root, os.W_OK):
        folder = root / "wayout-lab"
    else:
        folder = Path(f"/tmp/wayout-lab-{uid}")  # noqa: S108 - made private and checked below
    if folder.exists() and not _ours(folder):
        raise LabError(f"{folder} belongs to somebody else, remove it or set XDG_RUNTIME_DIR")
    return folder


def create(record: Record) -> None:
    """Make the folder; LabError if there is a lab of that name."""
    try:
        base().mkdir(mode=PRIVATE, exist_ok=True)
        record.folder.mkdir(mode=PRIVATE)
    except FileExistsError:
        raise LabError(
            f"there is a lab named {record.name!r} already, "
            f"'wayout lab down --name {record.name}' removes it"
        ) from None
    record.save()


def folder_of(name: str) -> Path:
    """Where a lab of this name is, or would be."""
    if not NAME.fullmatch(name):
        raise LabError(f"{name!r} is no name for a lab, use up to 20 of a-z, 0-9 and -")
    return base() / name


def load(name: str) -> Record:
    """The lab of this name; LabError if there is none.

    One from before the last boot has no processes any more: it is removed.
    """
    folder = folder_of(name)
    try:
        plain = json.loads((folder / FILE).read_text())
    except FileNotFoundError:
        raise LabError(f"there is no lab named {name!r}, 'wayout lab up' starts one") from None
    except ValueError:
        raise LabError(f"{folder / FILE} cannot be read, remove {folder}") from None
    if plain.get("shape") != SHAPE or plain.get("boot") != _boot():
        shutil.rmtree(folder, ignore_errors=True)
        raise LabError(f"lab {name!r} is from before the last boot, 'wayout lab up' starts one")
    return _record(plain, folder)


def names() -> list[str]:
    """All labs of this user."""
    return sorted(each.parent.name for each in base().glob(f"*/{FILE}"))


def free(wish: str) -> str:
    """A name that no lab has: the one wished for, or one of this process's own."""
    return f"{wish}-{os.getpid()}" if folder_of(wish).exists() else wish


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """One command at a time changes labs; LabError if another is at it for too long."""
    limit = time.monotonic() + LOCK_PATIENCE
    while (descriptor := _taken()) is None:
        if time.monotonic() > limit:
            raise LabError("another command is busy with a lab, try again when it is done")
        time.sleep(0.05)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # Not empty: there are labs.
            base().rmdir()
        os.close(descriptor)


def _taken() -> int | None:
    """The folder itself carries the lock, so no file is left behind; None if another has it."""
    base().mkdir(mode=PRIVATE, exist_ok=True)
    folder = base()
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever had it before may have removed the folder together with the last lab.
        if os.path.samestat(os.fstat(descriptor), folder.stat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None


def _ours(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return False
    return status.st_uid == os.geteuid() and folder.is_dir() and not folder.is_symlink()


def _boot() -> str:
    return BOOT_ID.read_text().strip()


def _plain(record: Record) -> dict[str, Any]:
    return {
        "shape": SHAPE,
        "boot": _boot(),
        "name": record.name,
        "nodes": record.nodes,
        "ips": record.ips,
        "sets": list(record.sets),
        "owner": _pair(record.owner),
        "user": _pair(record.user),
        "keepers": {name: _pair(each) for name, each in record.keepers.items()},
        "daemons": {name: _pair(each) for name, each in record.daemons.items()},
        "killed": record.killed,
    }


def _record(plain: dict[str, Any], folder: Path) -> Record:
    return Record(
        name=plain["name"],
        folder=folder,
        nodes=plain["nodes"],
        ips=plain["ips"],
        sets=tuple(plain["sets"]),
        owner=_process(plain["owner"]),
        user=_process(plain["user"]),
        keepers={name: Process(*each) for name, each in plain["keepers"].items()},
        daemons={name: Process(*each) for name, each in plain["daemons"].items()},
        killed=plain["killed"],
    )


def _pair(process: Process | None) -> list[int] | None:
    return None if process is None else [process.pid, process.started]


def _process(pair: list[int] | None) -> Process | None:
    return None if pair is None else Process(*pair)
