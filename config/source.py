"""Read the main file and its drop-ins as they were at one moment.

Kubernetes swaps a whole folder through the link `..data`, editors rename, copies are written in
pieces. So everything is read through one descriptor of the folder, and read again if anything
in it changed meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from config.documents import Text
from config.problems import ConfigError, Problem
from config.tree import Mark
from config.yaml import SIZE_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ATTEMPTS = 5
PAUSE = 0.05
FILES_MAX = 256
_DATA = "..data"
_SUFFIX = ".yaml"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All files of one moment; `content` is a digest of names and bytes."""

    files: tuple[Text, ...]
    content: str


class _MovedError(Exception):
    """The files changed while they were read."""


def read(path: Path, dropins: Callable[[bytes], str]) -> Snapshot:
    """The main file at `path` and its drop-ins; `dropins` tells their folder from its bytes.

    Blocks, for a quarter of a second at most when files keep changing. Raises ConfigError.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return _read(path, dropins)
        except _MovedError:
            time.sleep(PAUSE)
    try:
        return _read(path, dropins)
    except _MovedError:
        problem = Problem(Mark(str(path)), "", "keeps changing while it is read", "try again")
        raise ConfigError((problem,)) from None


def _read(path: Path, dropins: Callable[[bytes], str]) -> Snapshot:
    with _folder(path.parent, path) as folder:
        before = _state(folder, path.name, path)
        main = _bytes(folder, path.name, path)
        files = [Text(str(path), main)]
        listing: tuple[object, ...] = ()
        name = dropins(main)
        if name:
            found, listing = _dropins(folder, path.parent, name)
            files += found
            if listing != _dropins(folder, path.parent, name)[1]:
                raise _MovedError
        if before != _state(folder, path.name, path) or _swapped(folder, path.parent):
            raise _MovedError
    return Snapshot(tuple(files), _digest(files))


def _digest(files: list[Text]) -> str:
    whole = sha256()
    for each in files:
        name = each.name.encode()
        whole.update(len(name).to_bytes(4) + name + len(each.data).to_bytes(4) + each.data)
    return whole.hexdigest()


@contextmanager
def _folder(parent: Path, path: Path) -> Iterator[int]:
    """A descriptor of the folder that really has the file: the one behind `..data` if it does."""
    behind = parent / _DATA
    real = behind if (behind / path.name).exists() else parent
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _refusal(path, error) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _swapped(folder: int, parent: Path) -> bool:
    """Whether `..data` points elsewhere than when the folder was opened."""
    behind = parent / _DATA
    if not behind.exists():
        return False
    now, then = behind.stat(), os.fstat(folder)
    mine = parent.stat()
    here = (then.st_dev, then.st_ino)
    return here not in ((now.st_dev, now.st_ino), (mine.st_dev, mine.st_ino))


def _state(folder: int, name: str, path: Path) -> tuple[int, ...]:
    try:
        found = os.stat(name, dir_fd=folder)
    except OSError as error:
        raise _refusal(path, error) from None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _bytes(folder: int, name: str, path: Path) -> bytes:
    """The bytes of a plain file; a pipe or device would block or never end."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as file:
            _regular(descriptor)
            return file.read(SIZE_MAX + 1)
    except OSError as error:
        raise _refusal(path, error) from None


def _regular(descriptor: int) -> None:
    """A pipe reads as an empty file, and a device never ends."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))


def _refusal(path: Path, error: OSError) -> ConfigError:
    words = {
        errno.ENOENT: ("does not exist", "write it, or name another with --config"),
        errno.EISDIR: ("is a folder", "name the file in it"),
        errno.ENOTDIR: ("does not exist", "write it, or name another with --config"),
        errno.EACCES: ("cannot be read: permission denied", "make it readable for this user"),
        errno.ENXIO: ("is no plain file", "name a file"),
        errno.ELOOP: ("is a link that leads to itself", "mend the link"),
    }
    code = error.errno or 0
    message, hint = words.get(code, (f"cannot be read: {os.strerror(code)}", "mend that"))
    return ConfigError((Problem(Mark(str(path)), "", message, hint),))


def _dropins(folder: int, parent: Path, name: str) -> tuple[list[Text], tuple[object, ...]]:
    """Drop-ins in byte order of their names, and a listing that changes when they do."""
    shown = parent / name
    inner = _inner(folder, name, shown)
    if inner is None:
        return [], ()
    try:
        listing = os.listdir(inner)  # noqa: PTH208 (through a descriptor)
        names = sorted(filter(is_dropin, listing), key=os.fsencode)
        if len(names) > FILES_MAX:
            hint = f"keep at most {FILES_MAX}"
            problem = Problem(Mark(str(shown)), "", f"holds {len(names)} files", hint)
            raise ConfigError((problem,))
        states = tuple(_state(inner, each, shown / each) for each in names)
        texts = [Text(str(shown / each), _bytes(inner, each, shown / each)) for each in names]
    finally:
        os.close(inner)
    return texts, (tuple(names), states)


def _inner(folder: int, name: str, shown: Path) -> int | None:
    """A descriptor of the folder of drop-ins; None if there is none.

    It may be a volume of its own, beside `..data` rather than in it.
    """
    try:
        return _open_folder(name, folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _refusal(shown, error) from None
    try:
        return _open_folder(shown, None)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refusal(shown, error) from None


def _open_folder(name: str | Path, within: int | None) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=within)


def is_dropin(name: str) -> bool:
    """Whether a file of this name counts; editors' and package managers' leftovers do not."""
    return name.endswith(_SUFFIX) and not name.startswith(".")
