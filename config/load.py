"""The way in: `load` reads, merges and checks; nothing partial ever leaves it."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from config.digest import Digests
from config.documents import Text
from config.overrides import environment, flags
from config.parse import Judged, Loaded, Reader, Surroundings, parse
from config.problems import ConfigError
from config.schema.agent import ConfigSection
from config.secrets import secrets_of
from config.source import Snapshot, read
from config.tree import Leaf, Node, at, merge
from config.yaml import parse as parse_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

DEFAULT_PATH = Path("/etc/wayout/config.yaml")
_DROPINS = ("config", "dropin_dir")


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of reading the sources once; `content` is empty if they could not be read."""

    content: str
    outcome: Loaded | ConfigError


def nowhere() -> Text | None:
    """Without annotations there is no layer from elsewhere."""
    return None


@dataclass(frozen=True, slots=True)
class Source:
    """Where the settings come from, for as long as the process lives.

    `remote` gives the layer that an annotation names, as it is known just now.
    """

    path: Path
    around: Surroundings
    remote: Callable[[], Text | None] = nowhere

    def attempt(self, seen_as: str | None = None) -> Attempt:
        """Read, merge and check. `seen_as` selects groups and nodes by another name.

        Blocks on the file system.
        """
        content = ""
        try:
            snapshot = self.snapshot()
            text = self._remote()
            content = _content(snapshot, text)
            if isinstance(text, ConfigError):
                raise text
            around = replace(self.around, seen_as=seen_as, remote=text)
            return Attempt(content, _with_secrets(parse(snapshot.files, around, content)))
        except ConfigError as error:
            return Attempt(content, error)

    def snapshot(self) -> Snapshot:
        """All files of one moment; raises ConfigError if they cannot be read."""
        return read(self.path, lambda main: _dropin_dir(main, self.around))

    def content(self) -> str:
        """The digest of what is there now; empty if it cannot be read. Blocks."""
        try:
            return _content(self.snapshot(), self._remote())
        except ConfigError:
            return ""

    def _remote(self) -> Text | ConfigError | None:
        """The layer from elsewhere, or what is wrong with it."""
        try:
            return self.remote()
        except ConfigError as error:
            return error


def _content(snapshot: Snapshot, text: Text | ConfigError | None) -> str:
    """One digest of all that was read; a layer from elsewhere counts like a file.

    So does what is wrong with one: who mends it, or a file beside it, has changed something.
    """
    if text is None:
        return snapshot.content
    if isinstance(text, ConfigError):
        text = Text("annotation", str(text).encode())
    return sha256(f"{snapshot.content}\0{text.name}\0".encode() + text.data).hexdigest()


def _with_secrets(loaded: Loaded) -> Loaded:
    found = secrets_of(loaded.settings)
    if not found:
        return loaded
    sums = Digests(loaded.settings, loaded.digests.content, found)
    return replace(loaded, secrets=found, digests=sums)


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
    around = replace(
        surroundings(environ=environ, overrides=overrides), node=node, labels=dict(labels or {})
    )
    outcome = Source(Path(path), around).attempt().outcome
    if isinstance(outcome, ConfigError):
        raise outcome
    return outcome


def judged(
    path: Path | str,
    names: Sequence[str | None],
    labels: Mapping[str, str] | None = None,
    *,
    and_named: bool = False,
) -> Iterator[tuple[str | None, Judged | ConfigError]]:
    """The files at `path` as each of the nodes reads them; None is this host.

    `and_named`: and then as each node does that the files name. The files are read once.
    Raises ConfigError if they cannot be read.
    """
    source = Source(Path(path), replace(surroundings(), labels=dict(labels or {})))
    reader = Reader(source.snapshot().files)
    for name in dict.fromkeys([*names, *(reader.documents.names if and_named else ())]):
        try:
            yield name, reader.judge(replace(source.around, node=name))
        except ConfigError as error:
            yield name, error


def surroundings(
    *, environ: Mapping[str, str] | None = None, overrides: Sequence[str] = ()
) -> Surroundings:
    """What is not in the files, as this process finds it."""
    return Surroundings(
        hostname=socket.gethostname(),
        environ=dict(os.environ if environ is None else environ),
        overrides=tuple(overrides),
    )


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
