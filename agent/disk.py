"""Files that are whole or not there, and what is done with those that make no sense.

Blocks: to be called in a thread, for a disk may hang.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from pathlib import Path

log = structlog.get_logger("wayout.state")


def write_whole(path: Path, text: bytes) -> None:
    """Replace a file in one step that outlives a power cut; its folder is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    temporary = path.with_name(path.name + ".new")
    with temporary.open("wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    # The rename itself must outlive a power cut too.
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def set_aside(path: Path, reason: str) -> None:
    """Keep a file that cannot be understood under another name, and say so once."""
    aside = path.with_name(path.name + ".broken")
    log.warning("state.broken", path=str(path), kept=str(aside), reason=reason)
    try:
        path.replace(aside)
    except OSError as error:
        log.warning("state.not_set_aside", path=str(path), reason=error.strerror)
