"""Layers from outside the files: `WAYOUT__SECTION__KEY` and `--set section.key=value`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.layers import Layer, Rank
from config.problems import ConfigError, Problem, dotted, quoted, suggest
from config.schema.table import ANY, OPTIONS, children, entry_of
from config.tree import Fields, Leaf, Mark, empty, grown, merge
from config.yaml import parse_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.tree import Node

PREFIX = "WAYOUT__"
"""Two underscores: Kubernetes gives a service `wayout` the variable WAYOUT_PORT."""


def environment(environ: Mapping[str, str]) -> Layer:
    """The layer of all `WAYOUT__…` variables; raises ConfigError."""
    items = []
    for name in sorted(environ):
        if name.startswith(PREFIX):
            path = tuple(name.removeprefix(PREFIX).lower().split("__"))
            items.append((Mark(f"environment {name}"), path, environ[name]))
    return Layer(Rank.ENVIRONMENT, "environment", _grown("environment", items))


def flags(overrides: Sequence[str]) -> Layer:
    """The layer of `--set` arguments; raises ConfigError."""
    items = []
    for each in overrides:
        key, equals, value = each.partition("=")
        mark = Mark(f"--set {key}")
        if not equals:
            problem = Problem(mark, "", "has no value", f"write --set {key}=VALUE")
            raise ConfigError((problem,))
        items.append((mark, _steps(key), value))
    return Layer(Rank.FLAG, "--set", _grown("--set", items))


def _steps(key: str) -> tuple[str, ...]:
    """`node.labels."a.b"` and `node.labels.a.b` alike: below a map of names, dots are text."""
    parts = key.replace('"', "").split(".")
    for end in range(len(parts), 0, -1):
        entry = OPTIONS.get(tuple(parts[:end]))
        if entry is not None and end < len(parts):
            return (*parts[:end], ".".join(parts[end:]))
    return tuple(parts)


def _grown(name: str, items: Sequence[tuple[Mark, tuple[str, ...], str]]) -> Fields:
    tree: Node | None = empty(name)
    problems: list[Problem] = []
    for mark, path, text in items:
        wrong = _unknown(mark, path, text)
        if wrong is not None:
            problems.append(wrong)
            continue
        try:
            tree = merge(tree, grown(path, _value(mark, path, text)))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    assert isinstance(tree, Fields)
    return tree


def _value(mark: Mark, path: tuple[str, ...], text: str) -> Node:
    entry = entry_of(path)
    labels = entry is not None and entry.form is None and len(path) > len(entry.path)
    if text not in ("null", "") and entry is not None and (entry.is_text or labels):
        return Leaf(text, mark)
    return parse_value(str(mark), text)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unknown(mark: Mark, path: tuple[str, ...], text: str) -> Problem | None:
    # Arguments and variables may hold bytes that are no text; Python keeps them as surrogates.
    if not _is_text("".join(path) + text):
        name = Mark(mark.source.encode(errors="replace").decode())
        return Problem(name, "", "is not text in UTF-8", "write text")
    if entry_of(path) is not None:
        return None
    if "://" in text:
        hint = "it looks like a Kubernetes service link: set enableServiceLinks: false"
        return Problem(mark, "", "unknown setting", hint)
    good: tuple[str, ...] = ()
    for step in path:
        names = [each for each in children(good) if each != ANY]
        if step not in names and ANY not in children(good):
            near = suggest(step, names)
            hint = f"did you mean {dotted((*good, near))}?" if near else "remove it"
            return Problem(mark, "", f"unknown setting {quoted(dotted(path))}", hint)
        good = (*good, step)
    return Problem(mark, "", f"{quoted(dotted(path))} is a section", "set one of its keys")
