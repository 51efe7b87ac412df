"""From the text of all sources to the settings of one node: whole, or refused whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import ValidationError

from config import rules
from config.digest import Digests
from config.documents import Documents, Text, documents, fields, partial
from config.layers import Layer, Provenance, Rank, conflicts, group_layers, stacked, trespasses
from config.leaves import Leaves, leaves_of
from config.overrides import environment, flags
from config.problems import ConfigError, Problem, dotted
from config.schema.gossip import Preset
from config.schema.presets import PRESETS
from config.schema.settings import VERSION, Settings
from config.tree import Fields, Leaf, Mark, Node, at, child, empty, grown, settled, without
from config.wording import problems_of
from config.yaml import parse as parse_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from config.secrets import Secret
    from config.tree import Plain

_NAME = ("node", "name")
_EGRESSES = ("egress", "egresses")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is not in the files.

    `node` reads the files as that node would (and calls it so); `seen_as` only selects groups
    and nodes by another name than the configured one. `labels` add to the configured ones.
    `remote` is the document that an annotation of this node names.
    """

    hostname: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)
    overrides: Sequence[str] = ()
    node: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    seen_as: str | None = None
    remote: Text | None = None


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


@dataclass(frozen=True, slots=True)
class Judged:
    """Valid settings of one node, where they come from, and what is doubtful about them."""

    settings: Settings
    provenance: Provenance
    warnings: tuple[Problem, ...]


class Reader:
    """One state of the files, to be read as any number of nodes would."""

    def __init__(self, files: Sequence[Text]) -> None:
        """Main file first, then drop-ins in their order. Raises ConfigError if one is no YAML."""
        self.documents = documents(files)
        # Sections as they were last checked, and of what: most nodes share most of them.
        self._known: dict[str, tuple[Node, object]] = {}

    def judge(self, around: Surroundings) -> Judged:
        """The settings of one node; raises ConfigError with all problems at once."""
        problems = [*self.documents.problems]
        remote = _remote(around.remote, problems)
        outside = [*remote, *_outside(around, problems)]
        layers, whole, warnings = _layers(self.documents, outside, around)
        provenance = Provenance(layers, whole)
        problems += [x for each in outside[len(remote) :] for x in trespasses(each)]
        settings = self._validated(provenance, problems, warnings)
        if problems or settings is None:
            raise ConfigError(_once(problems))
        return Judged(settings, provenance, tuple(warnings))

    def _validated(
        self, provenance: Provenance, problems: list[Problem], warnings: list[Problem]
    ) -> Settings | None:
        """The settings; with mistakes, the rules are still asked what they say of the rest."""
        try:
            settings = Settings.model_validate(self._values(provenance.tree))
        except ValidationError:
            problems += _mistakes(provenance)
            return None
        self._known = {
            key: (node, getattr(settings, key))
            for key, node in provenance.tree.values.items()
            if key in Settings.model_fields
        }
        wrong, doubtful = rules.check(settings, provenance)
        problems += wrong
        warnings += [*doubtful, *_idle_resets(provenance)]
        return settings

    def _values(self, tree: Fields) -> dict[str, object]:
        values: dict[str, object] = {}
        for key, node in tree.values.items():
            before = self._known.get(key)
            if before is not None and before[0] is node:
                values[key] = before[1]
            elif not (isinstance(node, Leaf) and node.value is None):
                values[key] = settled(node)
        return values


def parse(files: Sequence[Text], around: Surroundings, content: str = "") -> Loaded:
    """Main file first, then drop-ins in their order. Raises ConfigError with all problems."""
    judged = Reader(files).judge(around)
    sums = Digests(judged.settings, content)
    return Loaded(judged.settings, judged.provenance, sums, judged.warnings)


def _once(problems: Sequence[Problem]) -> list[Problem]:
    """What is wrong in a layer is wrong in the whole as well: told once, with the longer path."""
    kept: dict[tuple[Mark, str], Problem] = {}
    for each in problems:
        before = kept.setdefault((each.mark, each.message), each)
        if len(each.path) > len(before.path):
            kept[each.mark, each.message] = each
    return list(kept.values())


def _remote(text: Text | None, problems: list[Problem]) -> list[Layer]:
    """The layer of the annotation; it may repeat the version, so that it can be a file as well."""
    if text is None:
        return []
    try:
        tree = parse_yaml(text.name, text.data)
    except ConfigError as error:
        problems += error.problems
        return []
    if tree is not None and not isinstance(tree, Fields):
        hint = "write sections, as in the main file"
        problems.append(Problem(tree.mark, "", "is not a map", hint))
    part = fields(tree)
    said = part.values.get("version")
    if isinstance(said, Leaf) and said.value == VERSION:
        part = without(part, "version")
    layer = Layer(Rank.ANNOTATION, text.name, part)
    problems += partial(layer, ())
    return [layer]


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


def _layers(
    read: Documents, outside: Sequence[Layer], around: Surroundings
) -> tuple[tuple[Layer, ...], Fields, list[Problem]]:
    """All layers of this node from low to high, merged, and what is doubtful about them."""
    hostname = around.hostname.lower()
    files = Layer(Rank.MAIN, "files", read.shared)
    name = around.seen_as or _text(stacked([files, *outside]), _NAME) or hostname
    own = [Layer(Rank.NODE, f"nodes.{name}", fields(child(read.nodes, name)))]
    labels = {**_labels(stacked([files, *own, *outside])), **around.labels}
    groups = group_layers(read.models.groups, read.groups, name, labels)
    above = [*groups, *own, *outside]
    whole = stacked([files, *above])
    preset, host = _preset(whole), _host(whole, hostname)
    layers = (preset, *read.common, *above, host)
    said = tuple(each for each in layers if each.tree.values or each.rank is Rank.MAIN)
    # The files as one: their merge is the same for all nodes, and known by that.
    return said, stacked([preset, files, *above, host]), list(conflicts(groups))


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


def _mistakes(provenance: Provenance) -> list[Problem]:
    values = settled(provenance.tree)
    assert isinstance(values, dict)
    try:
        Settings.model_validate(values)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        problems = [*problems_of(found, provenance.tree)]
        _rules_of_the_rest(values, [each["loc"] for each in found], provenance, problems)
        return problems
    return []


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
