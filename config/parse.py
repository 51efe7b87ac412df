"""From the text of all sources to the settings of one node: whole, or refused whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import ValidationError

from config import rules
from config.digest import Digests, digests
from config.layers import (
    Layer,
    Provenance,
    Rank,
    conflicts,
    group_layers,
    opened,
    stacked,
    trespasses,
)
from config.leaves import Leaves, leaves_of
from config.overrides import environment, flags
from config.problems import ConfigError, Problem, dotted
from config.schema.gossip import Preset
from config.schema.presets import PRESETS
from config.schema.settings import VERSION, Overlays, Settings
from config.tree import (
    Fields,
    Leaf,
    Mark,
    Node,
    at,
    child,
    empty,
    grown,
    key_mark,
    settled,
    without,
)
from config.types import kind
from config.wording import problems_of
from config.yaml import parse as parse_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from config.secrets import Secret
    from config.tree import Plain

_OVERLAYS = ("groups", "nodes")
_NAME = ("node", "name")
_EGRESSES = ("egress", "egresses")


@dataclass(frozen=True, slots=True)
class Text:
    """One file as it was read; `name` is what problems call it."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is not in the files.

    `node` reads the files as that node would (and calls it so); `seen_as` only selects groups
    and nodes by another name than the configured one. `labels` add to the configured ones.
    """

    hostname: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)
    overrides: Sequence[str] = ()
    node: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    seen_as: str | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """Valid settings of one node, where they come from, and the secret files that they name."""

    settings: Settings
    provenance: Provenance
    digests: Digests
    warnings: tuple[Problem, ...]
    secrets: tuple[Secret, ...] = ()

    @property
    def leaves(self) -> Leaves:
        """All leaves of the settings, defaults included, in the words of the file."""
        return leaves_of(self.settings)


def parse(files: Sequence[Text], around: Surroundings, content: str = "") -> Loaded:
    """Main file first, then drop-ins in their order. Raises ConfigError with all problems."""
    problems: list[Problem] = []
    written = _file_layers(files, problems)
    outside = _outside(around, problems)
    overlays = _overlays(written, problems)
    layers, warnings = _layers(written, outside, overlays, around)
    provenance = Provenance(layers, stacked(layers))
    problems += [each for layer in outside for each in trespasses(layer)]
    settings = _validated(provenance, problems, warnings)
    if problems or settings is None:
        raise ConfigError(_once(problems))
    return Loaded(settings, provenance, digests(settings, content), tuple(warnings))


def _once(problems: Sequence[Problem]) -> list[Problem]:
    """What is wrong in a layer is wrong in the whole as well: told once, with the longer path."""
    kept: dict[tuple[Mark, str], Problem] = {}
    for each in problems:
        before = kept.setdefault((each.mark, each.message), each)
        if len(each.path) > len(before.path):
            kept[each.mark, each.message] = each
    return list(kept.values())


def _file_layers(files: Sequence[Text], problems: list[Problem]) -> tuple[Layer, ...]:
    """Files that cannot be read as YAML end the matter: the rest would only mislead."""
    layers = []
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


def _outside(around: Surroundings, problems: list[Problem]) -> tuple[Layer, ...]:
    found = []
    readers: list[Callable[[], Layer]] = [
        lambda: environment(around.environ),
        lambda: flags(around.overrides),
    ]
    for read in readers:
        try:
            found.append(read())
        except ConfigError as error:
            problems += error.problems
    if around.node is not None:
        named = grown(_NAME, Leaf(around.node, Mark("--node")))
        found.append(Layer(Rank.FLAG, "--node", named))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _ForSome:
    """The parts of the files that are for some nodes alone."""

    models: Overlays
    groups: Node | None
    nodes: Node | None


def _overlays(written: Sequence[Layer], problems: list[Problem]) -> _ForSome:
    whole = stacked(written)
    parts = {key: node for key in _OVERLAYS if (node := child(whole, key)) is not None}
    tree = Fields(parts, whole.keys, whole.mark)
    models = Overlays()
    try:
        models = Overlays.model_validate(settled(tree))
    except ValidationError as error:
        problems += problems_of(error.errors(include_url=False, include_input=False), tree)
    groups, nodes = child(tree, "groups"), child(tree, "nodes")
    for index, group in enumerate(models.groups):
        part = child(child(groups, index), "set")
        layer = Layer(Rank.GROUP, f"group {group.name}", _fields(part))
        problems += _partial(layer, ("groups", index, "set"))
    for name in models.nodes:
        layer = Layer(Rank.NODE, f"nodes.{name}", _fields(child(nodes, name)))
        problems += _partial(layer, ("nodes", name))
    problems += _same_names(models, groups)
    return _ForSome(models, groups, nodes)


def _fields(node: Node | None) -> Fields:
    return opened(node) if isinstance(node, Fields) else empty("built-in")


def _partial(layer: Layer, prefix: tuple[str | int, ...]) -> list[Problem]:
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


def _layers(
    written: Sequence[Layer], outside: Sequence[Layer], some: _ForSome, around: Surroundings
) -> tuple[tuple[Layer, ...], list[Problem]]:
    """All layers of this node from low to high, and what is doubtful about them."""
    common = [Layer(each.rank, each.name, without(each.tree, *_OVERLAYS)) for each in written]
    hostname = around.hostname.lower()
    name = around.seen_as or _text(stacked([*common, *outside]), _NAME) or hostname
    own = [Layer(Rank.NODE, f"nodes.{name}", _fields(child(some.nodes, name)))]
    labels = {**_labels(stacked([*common, *own, *outside])), **around.labels}
    groups = group_layers(some.models.groups, some.groups, name, labels)
    upper = [*common, *groups, *own, *outside]
    whole = stacked(upper)
    layers = [_preset(whole), *upper, _host(whole, hostname)]
    said = (each for each in layers if each.tree.values or each.rank is Rank.MAIN)
    return tuple(said), list(conflicts(groups))


def _host(whole: Fields, name: str) -> Layer:
    """The host name, if nobody names the node; a `null` does not."""
    named = at(whole, _NAME)
    if named is None or (isinstance(named, Leaf) and named.value is None):
        return Layer(Rank.HOST, "host name", grown(_NAME, Leaf(name, Mark("host name"))))
    return Layer(Rank.HOST, "host name", empty("host name"))


def _text(tree: Fields, path: tuple[str, ...]) -> str:
    found = at(tree, path)
    return found.value if isinstance(found, Leaf) and isinstance(found.value, str) else ""


def _labels(tree: Fields) -> dict[str, str]:
    node = at(tree, ("node", "labels"))
    if not isinstance(node, Fields):
        return {}
    return {key: _text(node, (key,)) for key in node.values}


def _preset(tree: Fields) -> Layer:
    word = _text(tree, ("gossip", "preset"))
    chosen = next((each for each in Preset if each.value == word), Preset.DEFAULT)
    mark = Mark(f"preset {chosen.value}")
    values: dict[str, Node] = {key: Leaf(value, mark) for key, value in PRESETS[chosen].items()}
    part = Fields(values, dict.fromkeys(values, mark), mark)
    return Layer(Rank.PRESET, str(mark), grown(("gossip",), part) if values else empty(str(mark)))


def _validated(
    provenance: Provenance, problems: list[Problem], warnings: list[Problem]
) -> Settings | None:
    """The settings; with mistakes, the rules are still asked about what is left without them."""
    values = settled(provenance.tree)
    assert isinstance(values, dict)
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        problems += problems_of(found, provenance.tree)
        _rules_of_the_rest(values, [each["loc"] for each in found], provenance, problems)
        return None
    wrong, doubtful = rules.check(settings, provenance)
    problems += wrong
    warnings += [*doubtful, *_idle_resets(provenance)]
    return settings


def _idle_resets(provenance: Provenance) -> Iterator[Problem]:
    """Names with nothing below them, of which no lower layer has said anything."""
    egresses = at(provenance.tree, _EGRESSES)
    for name, node in egresses.values.items() if isinstance(egresses, Fields) else ():
        path = (*_EGRESSES, name)
        reset = isinstance(node, Leaf) and node.value is None
        if reset and len(provenance.origins(path)) == 1:
            message = "is empty and means no egress"
            yield Problem(node.mark, dotted(path), message, "write egress_ip: ADDRESS below it")


def _rules_of_the_rest(
    values: dict[str, Plain],
    faults: Sequence[tuple[str | int, ...]],
    provenance: Provenance,
    problems: list[Problem],
) -> None:
    rest = {"version": VERSION, **values}
    dropped = [_drop(rest, fault) for fault in faults]
    try:
        settings = Settings.model_validate(rest)
    except ValidationError:
        return
    wrong, _ = rules.check(settings, provenance, dropped)
    problems += wrong


def _drop(values: dict[str, Plain], fault: tuple[str | int, ...]) -> tuple[str, ...]:
    """Remove what is at fault: an option, or all of an egress, or what stands in its place."""
    steps = tuple(str(step) for step in fault)
    whole = steps[:3] if steps[:2] == ("egress", "egresses") else steps
    holder = values
    for depth, step in enumerate(whole[:-1], start=1):
        below = holder.get(step)
        if not isinstance(below, dict):
            holder.pop(step, None)
            return whole[:depth]
        holder = below
    holder.pop(whole[-1], None)
    return whole
