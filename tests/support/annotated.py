"""The daemon with a source of annotations whose world is a file: what a cluster would say."""

import asyncio
import json
import os
import sys
from pathlib import Path

from agent import daemon
from config.load import load
from support.annotation_source import AnnotationSource

PROGRAM = (sys.executable, "-c", "from support.annotated import main; main()")


class Told(AnnotationSource):
    """`world` is a file with `nodes`, `objects` by namespace/name, and perhaps `down`."""

    def __init__(self, world):
        super().__init__()
        self._world = world

    async def changed(self):
        before = self._world.read_text()
        self._serve("watch")
        while self._world.read_text() == before:  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.05)
        self._take()
        self._serve("news")
        return True

    async def read(self):
        self._take()
        await super().read()

    def _take(self):
        said = json.loads(self._world.read_text())
        self.nodes, self.down = said["nodes"], said.get("down", "")
        self.objects = {tuple(name.split("/")): keys for name, keys in said["objects"].items()}


def main():
    """`--config PATH`; the world is beside it."""
    path = Path(sys.argv[sys.argv.index("--config") + 1])
    source = Told(path.with_name("world.json"))
    running = daemon.run(load(path), path, (), os.environ, layers=source)
    raise SystemExit(asyncio.run(running))
