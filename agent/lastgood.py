"""The settings that ran last, on disk: what a start may fall back to when the files are broken.

Written as JSON, which is YAML that the loader reads like any other file, after everything has
proved right. It holds what runs and not what waits for a restart: only that is known to work.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from config.load import Source, surroundings
from config.overrides import environment, flags
from config.parse import Loaded
from config.problems import ConfigError
from config.render import document
from config.schema.agent import StateSection
from config.tree import Leaf, Node, at, merge
from config.yaml import parse as parse_yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config.parse import Surroundings
    from config.schema.settings import Settings

NAME = "last-good.json"
MODE = 0o640
PATIENCE = 5.0
_STATE_DIR = ("state", "dir")

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


def recalled(path: str | Path, overrides: Sequence[str], *, wanted: bool) -> Loaded | None:
    """The settings that ran last, if a start may take them; None if not, or if there are none.

    Whether it may, these settings say themselves, or the flag. Where they lie, the broken files
    may still tell; else the environment, the flags, or the default.
    """
    around = surroundings(overrides=overrides)
    folder = Path(_folder(Path(path), around))
    outcome = Source(folder / NAME, around).attempt().outcome
    if not isinstance(outcome, Loaded):
        return None
    return outcome if wanted or outcome.settings.config.start_with_last_good else None


def _folder(path: Path, around: Surroundings) -> str:
    found: Node | None = None
    with contextlib.suppress(OSError, ConfigError):
        found = at(parse_yaml(str(path), path.read_bytes()), _STATE_DIR)
    with contextlib.suppress(ConfigError):
        found = merge(found, at(environment(around.environ).tree, _STATE_DIR))
        found = merge(found, at(flags(around.overrides).tree, _STATE_DIR))
    if isinstance(found, Leaf) and isinstance(found.value, str) and found.value:
        return found.value
    return str(StateSection.model_fields["dir"].default)


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
