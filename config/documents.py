"""The text of all files as layers: what they say is the same for whichever node reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from config.layers import Layer, Rank, opened, stacked, trespasses
from config.problems import ConfigError, Problem, dotted
from config.schema.settings import VERSION, Overlays, Settings
from config.tree import Fields, Leaf, Mark, Node, at, child, empty, key_mark, settled, without
from config.types import kind
from config.wording import problems_of, strangers
from config.yaml import parse as parse_yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

_OVERLAYS = ("groups", "nodes")


@dataclass(frozen=True, slots=True)
class Text:
    """One file as it was read; `name` is what problems call it."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Documents:
    """All files, read once: what is for every node, what is for some, and what is wrong.

    `common` has a layer for each file, `shared` them all merged. `models`, `groups` and `nodes`
    are the overlays: checked, and as they were written.
    """

    common: tuple[Layer, ...]
    shared: Fields
    models: Overlays
    groups: Node | None
    nodes: Node | None
    problems: tuple[Problem, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Every node that the files name."""
        return tuple(self.models.nodes)


def documents(files: Sequence[Text]) -> Documents:
    """Main file first, then drop-ins in their order.

    Raises ConfigError if one is no YAML: the rest would only mislead. Everything else that is
    wrong stays in `problems`, to be told together with what is wrong for a node.
    """
    written = _file_layers(files)
    whole = stacked(written)
    common = tuple(Layer(x.rank, x.name, without(x.tree, *_OVERLAYS)) for x in written)
    parts = {key: node for key in _OVERLAYS if (node := child(whole, key)) is not None}
    tree = Fields(parts, whole.keys, whole.mark)
    models, problems = Overlays(), list[Problem]()
    try:
        models = Overlays.model_validate(settled(tree))
    except ValidationError as error:
        problems += problems_of(error.errors(include_url=False, include_input=False), tree)
    groups, nodes = child(tree, "groups"), child(tree, "nodes")
    for each in common:
        problems += strangers(each.tree)
    problems += _overlaid(models, groups, nodes)
    return Documents(common, stacked(common), models, groups, nodes, tuple(problems))


def _file_layers(files: Sequence[Text]) -> tuple[Layer, ...]:
    layers, problems = [], list[Problem]()
    for number, each in enumerate(files):
        rank = Rank.DROPIN if number else Rank.MAIN
        try:
            tree = parse_yaml(each.name, each.data)
        except ConfigError as error:
            problems += error.problems
            continue
        if isinstance(tree, Fields):
            layers.append(Layer(rank, each.name, opened(tree)))
        elif tree is not None:
            value: object = tree.value if isinstance(tree, Leaf) else []
            hint = "write sections: 'gossip:', and below it indented 'key: value' lines"
            problems.append(Problem(tree.mark, "", f"is {kind(value)}, not a map", hint))
        elif rank is Rank.MAIN:
            hint = f"write at least 'version: {VERSION}'"
            problems.append(Problem(Mark(each.name, 1, 1), "", "is empty", hint))
    if problems:
        raise ConfigError(problems)
    return tuple(layers)


def _overlaid(models: Overlays, groups: Node | None, nodes: Node | None) -> list[Problem]:
    problems: list[Problem] = []
    for index, group in enumerate(models.groups):
        part = child(child(groups, index), "set")
        layer = Layer(Rank.GROUP, f"group {group.name}", fields(part))
        problems += partial(layer, ("groups", index, "set"))
    for name in models.nodes:
        layer = Layer(Rank.NODE, f"nodes.{name}", fields(child(nodes, name)))
        problems += partial(layer, ("nodes", name))
    return [*problems, *_same_names(models, groups)]


def fields(node: Node | None) -> Fields:
    """A map to be laid over others, or one with nothing in it."""
    return opened(node) if isinstance(node, Fields) else empty("built-in")


def partial(layer: Layer, prefix: tuple[str | int, ...]) -> list[Problem]:
    """Problems of a layer that need not be complete."""
    problems = list(trespasses(layer, prefix))
    refused = {each.mark for each in problems}
    if "version" not in layer.tree.values:
        values = settled(layer.tree)
        assert isinstance(values, dict)
        try:
            Settings.model_validate({"version": VERSION, **values})
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)
            known = problems_of(found, layer.tree, prefix=prefix)
            problems += [each for each in known if each.mark not in refused]
    return problems


def _same_names(models: Overlays, tree: Node | None) -> list[Problem]:
    seen: dict[str, int] = {}
    problems = []
    for index, group in enumerate(models.groups):
        first = seen.setdefault(group.name, index)
        if first != index:
            before = key_mark(tree, (first, "name")) if tree else None
            mark = at(tree, (index, "name"))
            assert mark is not None
            message = f"the name {group.name} is taken, at {before}"
            path = dotted(("groups", index, "name"))
            problems.append(Problem(mark.mark, path, message, "write another name"))
    return problems
