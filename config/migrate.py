"""From the format of yesterday to that of today, token by token, so that comments stay.

A migration is a list of renames from one version to the next. Version 0 has the
names of the drafts before the first release: a file without `version`, or with `version: 0`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from config.documents import Text
from config.problems import ConfigError, Problem, dotted
from config.schema.settings import VERSION
from config.schema.table import ANY
from config.tree import Fields, Items, Leaf, Mark, Node, child
from config.yaml import parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Steps = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rename:
    """The last step of `path` is called `name` now, and some of its `words` changed as well."""

    path: Steps
    name: str
    words: Mapping[str, str] = field(default_factory=dict)


MIGRATIONS: Mapping[int, tuple[Rename, ...]] = {
    0: (
        Rename(("egress", "ips"), "egresses"),
        Rename(("egress", "ips", ANY, "address"), "egress_ip"),
        Rename(("egress", "ips", ANY, "addresses"), "egress_ips"),
        Rename(("egress", "ips", ANY, "pool"), "external_ip_pool"),
        Rename(("egress", "rebalance_delay"), "failback_delay"),
        Rename(("egress", "isolation_action"), "partition", {"hold": "keep"}),
        Rename(("gossip", "join"), "seeds"),
        Rename(("gossip", "indirect_probes"), "indirect_checks"),
        Rename(("api", "listen"), "http_listen"),
        Rename(("logging", "verbosity"), "level"),
    ),
}
"""The renames from each version to the next; every step between two versions is here."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """What became of the files; `remarks` has a line for each change."""

    since: int
    files: tuple[Text, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Edit:
    mark: Mark
    old: str
    new: str
    remark: str


def migrate(files: Sequence[Text]) -> Migrated:
    """All files at the present version, the main file first.

    Raises ConfigError if one cannot be read, or is of a version that nobody knows.
    """
    since = version_of(files[0])
    texts, remarks = list(files), list[str]()
    for version in range(since, VERSION):
        for index, text in enumerate(texts):
            edits = _edits(text, MIGRATIONS[version])
            if index == 0:
                edits += _versioned(text, version + 1)
            texts[index] = Text(text.name, _edited(text.data, edits))
            remarks += [f"{each.mark}: {each.remark}" for each in edits]
    return Migrated(since, tuple(texts), tuple(remarks))


def version_of(main: Text) -> int:
    """The version of a main file; one without the key is of version 0."""
    found = child(parse(main.name, main.data), "version")
    if found is None:
        return 0
    value = found.value if isinstance(found, Leaf) else None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= VERSION:
        return value
    message = f"is no version that this program knows ({value!r})"
    raise ConfigError((Problem(found.mark, "version", message, f"write version: {VERSION}"),))


def _versioned(text: Text, version: int) -> list[_Edit]:
    tree = parse(text.name, text.data)
    found = child(tree, "version")
    if isinstance(found, Leaf):
        remark = f"version: {found.value} becomes {version}"
        return [_Edit(found.mark, str(found.value), str(version), remark)]
    flow = isinstance(tree, Fields) and text.data.decode("utf-8-sig")[_offset(text, tree.mark)]
    if flow == "{":
        return [_Edit(_first(tree), "{", f"{{version: {version}, ", f"version: {version} is new")]
    mark = _first(tree)
    return [_Edit(mark, "", f"version: {version}\n", f"version: {version} is new")]


def _first(tree: Node | None) -> Mark:
    """Where the document begins, below the comments of its head."""
    return tree.mark if tree is not None else Mark("", 1, 1)


def _edits(text: Text, renames: Sequence[Rename]) -> list[_Edit]:
    edits: list[_Edit] = []
    for section in _sections(parse(text.name, text.data)):
        for each in renames:
            edits += _renamed(section, each)
    return edits


def _sections(tree: Node | None) -> Iterator[Fields]:
    """The whole, and each part that is for some nodes alone."""
    if not isinstance(tree, Fields):
        return
    yield tree
    groups, nodes = child(tree, "groups"), child(tree, "nodes")
    parts = [child(each, "set") for each in groups.values] if isinstance(groups, Items) else []
    parts += list(nodes.values.values()) if isinstance(nodes, Fields) else []
    yield from (each for each in parts if isinstance(each, Fields))


def _renamed(tree: Fields, rename: Rename) -> Iterator[_Edit]:
    old = rename.path[-1]
    for path, holder in _holders(tree, rename.path[:-1], ()):
        if old not in holder.keys:
            continue
        if rename.name in holder.keys:
            mark, where = holder.keys[old], dotted((*path, old))
            message = f"and {rename.name}, its present name, are both here"
            raise ConfigError((Problem(mark, where, message, "keep one of the two"),))
        shown = dotted((*path, old))
        yield _Edit(holder.keys[old], old, rename.name, f"{shown} is {rename.name} now")
        value = holder.values.get(old)
        word = value.value if isinstance(value, Leaf) else None
        if value is not None and isinstance(word, str) and word in rename.words:
            new = rename.words[word]
            yield _Edit(value.mark, word, new, f"{shown}: {word} is {new} now")


def _holders(node: Node, pattern: Steps, path: Steps) -> Iterator[tuple[Steps, Fields]]:
    if not isinstance(node, Fields):
        return
    if not pattern:
        yield path, node
        return
    names = list(node.values) if pattern[0] == ANY else [pattern[0]]
    for name in names:
        below = node.values.get(name)
        if below is not None:
            yield from _holders(below, pattern[1:], (*path, name))


def _offset(text: Text, mark: Mark) -> int:
    """Where a mark is in the text; YAML counts lines as `splitlines` does, bar form feeds."""
    rows = re.split(r"(?<=\n)", text.data.decode("utf-8-sig"))
    return sum(len(each) for each in rows[: mark.line - 1]) + mark.column - 1


def _edited(data: bytes, edits: Sequence[_Edit]) -> bytes:
    text = Text("", data)
    whole = data.decode("utf-8-sig")
    for each in sorted(edits, key=lambda edit: (edit.mark.line, edit.mark.column), reverse=True):
        start = _offset(text, each.mark)
        if each.old and whole[start] in "'\"":
            start += 1
        assert whole.startswith(each.old, start)
        whole = whole[:start] + each.new + whole[start + len(each.old) :]
    return whole.encode()
