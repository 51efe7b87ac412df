"""The layer that an annotation named last, on disk: a node that boots without its source has it."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from config.documents import Text
from config.yaml import SIZE_MAX

if TYPE_CHECKING:
    from config.remote import Reading

NAME = "node-layer.json"
MODE = 0o640
PATIENCE = 5.0
_BYTES_MAX = 6 * SIZE_MAX + 4096
"""JSON may need six bytes for one."""

log = structlog.get_logger("wayout.config")


class LayerFile:
    """The one reader and writer of that file; small, and written when the layer changes alone."""

    def __init__(self, folder: str | Path) -> None:
        self._path = Path(folder) / NAME

    def kept(self) -> Text | None:
        """What was taken last, None if nothing was or the file makes no sense."""
        try:
            with self._path.open("rb") as file:
                read = json.loads(file.read(_BYTES_MAX))
            return Text(str(read["name"]), str(read["text"]).encode())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("config.layer_unreadable", path=str(self._path), reason=str(error))
            return None

    async def keep(self, reading: Reading) -> None:
        """Without a layer there is no file; a disk that will not is told, and nothing suffers."""
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.to_thread(self._keep, reading)
        except OSError as error:  # a TimeoutError is one too
            reason = error.strerror or "no answer"
            log.warning("config.layer_unwritable", path=str(self._path), reason=reason)

    def _keep(self, reading: Reading) -> None:
        if reading.text is None:
            self._path.unlink(missing_ok=True)
        else:
            self._write(reading.text)

    def _write(self, text: Text) -> None:
        whole = json.dumps({"name": text.name, "text": text.data.decode()}).encode()
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        temporary = self._path.with_name(f"{NAME}.new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(whole)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
