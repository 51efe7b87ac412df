"""The settings that ran last, on disk: what a start may fall back to when the files are broken.

Written as JSON, which is YAML that the loader reads like any other file, after everything has
proved right. It holds what runs and not what waits for a restart: only that is known to work.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from config.load import Source, surroundings
from config.parse import Loaded
from config.render import document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.schema.settings import Settings

NAME = "last-good.json"
MODE = 0o640
PATIENCE = 5.0

log = structlog.get_logger("wayout.config")


class LastGood:
    """The one writer of that file."""

    def __init__(self, folder: str | Path) -> None:
        self._path = Path(folder) / NAME
        self._saved: Settings | None = None
        self._failing = False

    async def save(self, settings: Settings) -> None:
        """Keep these; a disk that will not is told once, and nothing else suffers."""
        if settings is self._saved:
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.to_thread(_write, self._path, settings)
        except OSError as error:  # a TimeoutError is one too
            if not self._failing:
                reason = error.strerror or "no answer"
                log.warning("config.last_good_unwritable", path=str(self._path), reason=reason)
            self._failing = True
            return
        self._saved, self._failing = settings, False


def recall(
    folder: str | Path,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Sequence[str] = (),
) -> Loaded | None:
    """What was kept in `folder`, under the environment and flags of now; None if nothing valid."""
    around = surroundings(environ=environ, overrides=overrides)
    outcome = Source(Path(folder) / NAME, around).attempt().outcome
    return outcome if isinstance(outcome, Loaded) else None


def _write(path: Path, settings: Settings) -> None:
    text = json.dumps(document(settings), indent=1).encode() + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    temporary = path.with_name(f"{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
