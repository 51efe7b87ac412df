"""From what the validator found to problems with a place, a reason and a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.problems import Problem, dotted, snake, suggest
from config.schema.table import ANY, OPTIONS, children, entry_of
from config.tree import Fields, Leaf, at, key_mark, nearest
from config.types import kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_core import ErrorDetails

    from config.tree import Node, Path

LATER = frozenset(
    {
        "announce", "bandwidth", "destination_cidrs", "drift_grace", "except_cidrs",
        "external_ip_pool", "families", "health", "kubernetes", "manifests",
        "namespace_selector", "no_owner", "pod_selector", "pools",
    }
)  # fmt: skip
"""Options that the documentation plans and this version does not have."""

_SECRETS = frozenset({"key", "keys", "keyring", "secret", "secret_key", "encrypt_key", "password"})
_KUBERNETES = frozenset({"apiVersion", "kind", "metadata", "spec"})
_ALIASES = {
    "ip": "egress_ip", "address": "egress_ip", "ips": "egress_ips", "join": "seeds",
    "retry_join": "seeds", "peers": "seeds", "members": "seeds", "port": "bind_port",
    "bind": "bind_address", "advertise": "advertise_address", "log": "logging",
    "log_level": "level", "iface": "interface", "cidrs": "ip_blocks", "cidr": "ip_blocks",
    "sources": "ip_blocks", "selector": "node_selector", "keyring": "keyring_file",
    "drain": "maintenance", "verbosity": "level", "hostname": "name",
}  # fmt: skip


def problems_of(
    errors: Sequence[ErrorDetails], tree: Node, *, prefix: Path = ()
) -> tuple[Problem, ...]:
    """One problem for each error; `prefix` is what a path begins with for the reader."""
    return tuple(_problem(each, tree, prefix) for each in errors)


def _problem(error: ErrorDetails, tree: Node, prefix: Path) -> Problem:
    path = tuple(step for step in error["loc"] if step != "[key]")
    shown = dotted((*prefix, *path))
    context: Mapping[str, object] = error.get("ctx", {})
    if error["type"] == "extra_forbidden":
        message, hint = _unknown(path)
        return Problem(key_mark(tree, path), shown, message, hint)
    if "[key]" in error["loc"]:
        hint = str(context.get("write", "write another name"))
        message = f"the name {context.get('wrong', 'is not valid')}"
        return Problem(key_mark(tree, path), shown, message, hint)
    if error["type"] == "missing":
        message, hint = "is missing", f"write {path[-1]}: {_example(path)}"
        return Problem(nearest(tree, path), shown, message, hint)
    if error["type"] == "wayout":
        return Problem(nearest(tree, path), shown, str(context["wrong"]), str(context["write"]))
    return Problem(nearest(tree, path), shown, *_misshapen(at(tree, path), path))


def strangers(tree: Fields, path: tuple[str, ...] = ()) -> list[Problem]:
    """Unknown keys with nothing below them, which would pass for resets of something."""
    found = []
    for key, node in tree.values.items():
        if isinstance(node, Fields):
            found += strangers(node, (*path, key))
        elif isinstance(node, Leaf) and node.value is None:
            below = (*path, key)
            if entry_of(below) is None and not children(below):
                found.append(Problem(tree.keys[key], dotted(below), *_unknown(below)))
    return found


def _example(path: Path) -> str:
    entry = OPTIONS.get(tuple(str(step) for step in path))
    if entry is not None and entry.form is not None and "const" in entry.form.schema:
        return str(entry.form.schema["const"])
    return "…"


def _misshapen(node: Node | None, path: Path) -> tuple[str, str]:
    value: object = node.value if isinstance(node, Leaf) else []
    wrong = f"is {kind(value)}"
    steps = tuple(str(step) for step in path)
    if ANY in children(steps):
        return wrong, "write a map by name: 'NAME:', and its options below it, indented"
    if ANY in children(steps[:-1]):
        address = value if isinstance(value, str) else "ADDRESS"
        return wrong, f"write {steps[-1]}: {{egress_ip: {address}}}"
    return wrong, "write a map: one 'key: value' in a line, indented"


def _neighbours(path: Path) -> list[str]:
    """Names that may stand where the last step of `path` does."""
    if path[0] == "groups":
        return ["labels", "names"] if "match" in path[:-1] else ["match", "name", "set"]
    overlays = ["groups", "nodes"] if len(path) == 1 else []
    known = children(tuple(str(step) for step in path[:-1]))
    return sorted([*overlays, *(name for name in known if name != ANY)])


def _unknown(path: Path) -> tuple[str, str]:
    key = str(path[-1])
    names = _neighbours(path)
    plain = snake(key)
    if key in _KUBERNETES and len(path) == 1:
        return "is of a Kubernetes object, not of this file", "write version: 1 and sections"
    if plain in LATER:
        return "is not supported by this version", "remove it"
    if plain in _SECRETS:
        return "unknown key", "put keys into a file and write gossip.keyring_file: PATH"
    near = suggest(key, names) or (_ALIASES.get(plain) if _ALIASES.get(plain) in names else None)
    if near is not None:
        return "unknown key", f"did you mean {near}?"
    elsewhere = sorted({dotted(each) for each in OPTIONS if each[-1] == plain})
    if elsewhere:
        return "unknown key here", f"did you mean {elsewhere[0]}?"
    if names:
        return "unknown key", f"known are {', '.join(names)}"
    return "unknown key", "remove it"
