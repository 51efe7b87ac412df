"""The kernel's word that something changed in the folders of the configuration (inotify).

Folders are watched and never files: editors save by renaming, and Kubernetes swaps the link
`..data`, after which a watch on the file itself is dead. Every event means "look again" and
nothing else, so lost, merged and odd ones are harmless. What the kernel cannot tell (NFS, an
exhausted limit) the poll finds.
"""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from inotify_simple import INotify

    from config.transaction import Reloader

AGAIN = 5.0
"""Seconds between two looks at which folders there are to be watched."""
RETRY = 300.0
"""Seconds after which a kernel that refused is asked again."""
FOLDERS_MAX = 64
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES)

log = structlog.get_logger("wayout.config")


class Watch:
    """Watches `folders()` for as long as `wanted()`, and calls `changed` on each event."""

    def __init__(
        self,
        folders: Callable[[], Iterable[Path]],
        changed: Callable[[], None],
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._folders = folders
        self._changed = changed
        self._wanted = wanted
        self._kernel: INotify | None = None
        self._watched: dict[Path, tuple[int, tuple[int, int]]] = {}
        self._lost = asyncio.Event()
        self._refused = ""

    @property
    def mode(self) -> str:
        """`inotify` or `poll`."""
        return "inotify" if self._watched else "poll"

    async def run(self) -> None:
        """A part: until cancelled; a kernel that refuses is told once and asked again later."""
        try:
            while True:
                pause = AGAIN if await self._renewed() else RETRY
                self._lost.clear()
                try:
                    async with asyncio.timeout(pause):
                        await self._lost.wait()
                except TimeoutError:
                    continue
                # A folder that is replaced is there again in a moment.
                await asyncio.sleep(AGAIN / 10)
        finally:
            self._close()

    async def _renewed(self) -> bool:
        """Watch what there is now; False when the kernel will not have it."""
        if not self._wanted():
            self._close()
            return True
        try:
            if self._kernel is None:
                opened: INotify = await asyncio.to_thread(_opened)
                asyncio.get_running_loop().add_reader(opened.fileno(), self._told)
                self._kernel = opened
            await asyncio.to_thread(self._follow, self._kernel)
        except (ImportError, OSError, ValueError) as error:
            self._degrade(str(error))
            return False
        self._refused = ""
        return True

    def _follow(self, kernel: INotify) -> None:
        """One watch on each folder that exists; a path that now is another folder, anew."""
        wanted = _identities(self._folders())
        for folder, (number, identity) in list(self._watched.items()):
            if wanted.get(folder) != identity:
                del self._watched[folder]
                _unwatch(kernel, number)
        for folder, identity in wanted.items():
            added = _watch(kernel, folder) if folder not in self._watched else None
            if added is not None:
                self._watched[folder] = (added, identity)

    def _told(self) -> None:
        from inotify_simple import flags

        assert self._kernel is not None
        try:
            events = self._kernel.read(timeout=0)
        except OSError as error:
            self._degrade(str(error))
            return
        lost = flags.Q_OVERFLOW | flags.IGNORED | flags.DELETE_SELF | flags.MOVE_SELF
        # A link that was swapped or a folder that was made may lead to another folder.
        if any(each.mask & (lost | flags.ISDIR | flags.CREATE | flags.MOVED_TO) for each in events):
            self._lost.set()
        if events:
            self._changed()

    def _degrade(self, reason: str) -> None:
        self._close()
        if reason != self._refused:
            self._refused = reason
            log.warning("config.watch_degraded", reason=reason, mode="poll")

    def _close(self) -> None:
        self._watched.clear()
        if self._kernel is not None:
            asyncio.get_running_loop().remove_reader(self._kernel.fileno())
            self._kernel.close()
            self._kernel = None


def folders_of(reloader: Reloader) -> list[Path]:
    """Where the files of a configuration lie, through links and not, and what may bring them back.

    Blocks.
    """
    settings = reloader.settings
    files = [reloader.path, *(Path(each.file) for each in reloader.secrets)]
    found = [reloader.path.parent / settings.config.dropin_dir, reloader.path.parent.parent]
    for file in files:
        found += [file.parent, file.resolve().parent]
    return [*found, *(each.resolve() for each in found)]


def _opened() -> INotify:
    """In a thread: finding the C library runs a program."""
    from inotify_simple import INotify

    return INotify(nonblocking=True)


def _identities(folders: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    found = {}
    for folder in list(dict.fromkeys(folders))[:FOLDERS_MAX]:
        try:
            status = folder.stat()
        except OSError:
            continue
        found[folder] = (status.st_dev, status.st_ino)
    return found


def _watch(kernel: INotify, folder: Path) -> int | None:
    from inotify_simple import flags

    mask = flags.CREATE | flags.MOVED_TO | flags.MOVED_FROM | flags.CLOSE_WRITE | flags.DELETE
    mask |= flags.DELETE_SELF | flags.MOVE_SELF | flags.ATTRIB | flags.ONLYDIR
    try:
        return int(kernel.add_watch(folder, mask))
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise


def _unwatch(kernel: INotify, number: int) -> None:
    try:
        kernel.rm_watch(number)
    except OSError:
        return  # The kernel has dropped it already, with its folder.
