"""The way in: `load` reads, merges and checks; nothing partial ever leaves it."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from config.overrides import environment, flags
from config.parse import Loaded, Surroundings, parse
from config.problems import ConfigError
from config.schema.agent import ConfigSection
from config.source import Snapshot, read
from config.tree import Leaf, Node, at, merge
from config.yaml import parse as parse_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_PATH = Path("/etc/wayout/config.yaml")
_DROPINS = ("config", "dropin_dir")


def load(
    path: Path | str,
    *,
    node: str | None = None,
    labels: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Sequence[str] = (),
) -> Loaded:
    """The settings of this node, or of `node`, from the files at `path` and what is outside.

    `environ` is the process environment unless given; `overrides` are `section.key=value`.
    Raises ConfigError with every problem at once. Blocks on the file system.
    """
    around = surroundings(node=node, labels=labels, environ=environ, overrides=overrides)
    snapshot = snap(Path(path), around)
    return parse(snapshot.files, around, snapshot.content)


def surroundings(
    *,
    node: str | None = None,
    labels: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Sequence[str] = (),
) -> Surroundings:
    """What is not in the files, as this process finds it."""
    return Surroundings(
        hostname=socket.gethostname(),
        environ=dict(os.environ if environ is None else environ),
        overrides=tuple(overrides),
        node=node,
        labels=dict(labels or {}),
    )


def snap(path: Path, around: Surroundings) -> Snapshot:
    """All files of one moment; raises ConfigError if they cannot be read."""
    return read(path, lambda main: _dropin_dir(main, around))


def _dropin_dir(main: bytes, around: Surroundings) -> str:
    """Where the drop-ins are; the default if the main file cannot tell, which `parse` reports."""
    found: Node | None = None
    try:
        if _DROPINS[-1].encode() in main:  # Reading a large file twice is not free.
            found = at(parse_yaml("", main), _DROPINS)
        found = merge(found, at(environment(around.environ).tree, _DROPINS))
        found = merge(found, at(flags(around.overrides).tree, _DROPINS))
    except ConfigError:
        found = None
    if isinstance(found, Leaf) and isinstance(found.value, str) and found.value:
        return found.value
    return str(ConfigSection.model_fields["dropin_dir"].default)
