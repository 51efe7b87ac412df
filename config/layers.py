"""Which layers make the settings of one node, what each may say, and how they stack.

From low to high: built-in, preset, main file, drop-ins, groups, node, the node's annotation,
environment, flags. The host name counts where nobody names the node. Maps merge, lists replace,
`null` resets.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from config.problems import Problem, dotted
from config.schema.option import Scope
from config.schema.table import ANY, children, entry_of
from config.tree import Fields, Leaf, Mark, Node, at, child, empty, merge, nearest, settled, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from config.schema.option import Option
    from config.schema.settings import Group
    from config.tree import Plain


class Rank(Enum):
    """Kinds of layers, low to high."""

    HOST = "host"
    PRESET = "preset"
    MAIN = "main file"
    DROPIN = "drop-in"
    GROUP = "group"
    NODE = "node"
    ANNOTATION = "annotation"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of values; `name` is for people."""

    rank: Rank
    name: str
    tree: Fields


@dataclass(frozen=True, slots=True)
class Origin:
    """Where one value of a leaf was written."""

    layer: str
    mark: Mark
    node: Node


def stacked(layers: Iterable[Layer]) -> Fields:
    """All layers merged, the last one on top; the whole is said to begin in the main file."""
    whole: Node | None = empty("built-in")
    mark = Mark("built-in")
    for each in layers:
        whole = merge(whole, each.tree)
        mark = each.tree.mark if each.rank is Rank.MAIN else mark
    assert isinstance(whole, Fields)
    return Fields(whole.values, whole.keys, mark)


def opened(tree: Fields, path: tuple[str, ...] = ()) -> Fields:
    """The tree without sections in which nothing stands.

    `gossip:` above nothing but comments is an empty section and not a reset of all that is
    below; `null` for an option or for a single name is a reset.
    """
    values: dict[str, Node] = {}
    for key, value in tree.values.items():
        below = (*path, key)
        section = bool(children(below)) and ANY not in children(path)
        if isinstance(value, Fields) and section:
            values[key] = opened(value, below)
        elif not (section and isinstance(value, Leaf) and value.value is None):
            values[key] = value
    return Fields(values, tree.keys, tree.mark, tree.fresh)


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who said what: the layers of one node, kept apart, and what they come to."""

    layers: tuple[Layer, ...]
    tree: Fields

    def origins(self, path: tuple[str, ...]) -> tuple[Origin, ...]:
        """Every layer that sets `path`, from low to high; empty means the built-in default."""
        found = []
        for layer in self.layers:
            node = at(layer.tree, path)
            if node is not None:
                found.append(Origin(layer.name, node.mark, node))
        return tuple(found)

    def winner(self, path: tuple[str, ...]) -> Origin | None:
        """The layer whose word counts; None means the built-in default."""
        found = self.origins(path)
        last = found[-1] if found else None
        if last is None or (isinstance(last.node, Leaf) and last.node.value is None):
            return None
        return last

    def for_all(self, path: tuple[str, ...]) -> Plain:
        """What the files say of `path` for every node alike, None if they do not."""
        node = at(stacked(x for x in self.layers if x.rank in (Rank.MAIN, Rank.DROPIN)), path)
        return None if node is None else settled(node)

    def mark(self, path: tuple[str, ...]) -> Mark:
        """Where to look for `path`, or for what is closest to it."""
        return nearest(self.tree, path)


def matches(group: Group, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a group has the node: one of its names, and all of its labels."""
    if group.match.names and not any(fnmatchcase(name, each) for each in group.match.names):
        return False
    return all(labels.get(key) in values for key, values in group.match.labels.items())


def group_layers(
    groups: Sequence[Group], tree: Node | None, name: str, labels: Mapping[str, str]
) -> tuple[Layer, ...]:
    """The layers of the groups that have the node, in the order of the file."""
    found = []
    for index, group in enumerate(groups):
        part = child(child(tree, index), "set")
        if isinstance(part, Fields) and matches(group, name, labels):
            found.append(Layer(Rank.GROUP, f"group {group.name}", opened(part)))
    return tuple(found)


def conflicts(layers: Sequence[Layer]) -> tuple[Problem, ...]:
    """A warning for each leaf that two groups set differently for the same node."""
    first: dict[tuple[str, ...], tuple[Layer, Node]] = {}
    found = []
    for layer in layers:
        for path, node in walk(layer.tree):
            before = first.get(path)
            if before is not None and _value(before[1]) != _value(node):
                message = f"{before[0].name} sets it too, at {before[1].mark}"
                hint = "the later one wins; let one of them set it"
                found.append(Problem(node.mark, dotted(path), message, hint, "group-conflict"))
            first[path] = (layer, node)
    return tuple(found)


def _value(node: Node) -> object:
    return node.value if isinstance(node, Leaf) else node


def trespasses(layer: Layer, prefix: tuple[str | int, ...] = ()) -> tuple[Problem, ...]:
    """A problem for each field that a layer of this rank may not set."""
    found = []
    for path, node in walk(layer.tree):
        entry = entry_of(path)
        if entry is None:
            continue
        message = _refusal(layer.rank, path, entry.option)
        if message:
            shown = dotted((*prefix, *path))
            found.append(Problem(node.mark, shown, *message, rule="scope"))
    return tuple(found)


def _refusal(rank: Rank, path: tuple[str, ...], option: Option) -> tuple[str, str] | None:
    local = rank in (Rank.ENVIRONMENT, Rank.FLAG)
    if option.scope is Scope.CLUSTER:
        message = "must be the same on every node, so one node cannot set it"
        return message, "set it in the file that all nodes share"
    if option.scope is Scope.PROCESS and not local:
        message = "belongs to the host, so groups, nodes and annotations cannot set it"
        return message, "set it in that host's own file, environment or flags"
    if rank is Rank.ANNOTATION and path[:2] == ("node", "labels"):
        message = "chooses the groups, so an annotation cannot set it"
        return message, "set it under nodes.NAME"
    if rank is Rank.GROUP and path[:2] == ("node", "labels"):
        return "chooses the groups, so a group cannot set it", "set it under nodes.NAME"
    return None
