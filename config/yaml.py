"""Strict YAML: the 1.2 core schema and nothing clever, with a mark for every key and value.

No anchors, tags, directives or second documents; keys are strings; a duplicate is an error.
Only `true`, `false`, `null`, `~`, numbers and text exist, so `no`, `on` and `1:30` stay text.
Reads libyaml's events, so neither depth nor aliases can make it recurse or expand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from config.problems import ConfigError, Problem, dotted, quoted
from config.tree import Fields, Items, Leaf, Mark, Node, Scalar
from config.yaml_words import explain_syntax

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE_MAX = 1024 * 1024
DEPTH_MAX = 16

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
# What no YAML text may contain (YAML 1.2, 5.1), and a byte order mark that is not the first.
_STRANGE = re.compile(
    r"[^\x09\x0a\x0d\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_START = frozenset("+-.0123456789")
_DIGITS_MAX = 32
_made = tuple.__new__
"""Thrice as fast as the constructor of a named tuple, and there is a mark for every word."""


def resolve(text: str) -> Scalar:
    """What a plain scalar means by the core schema; infinities and NaN stay text."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _START or len(text) > _DIGITS_MAX:
        return text
    if text.isascii() and text.isdigit():
        return int(text)
    if _WHOLE.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _REAL.fullmatch(text):
        return float(text)
    return text


def parse(name: str, data: bytes) -> Node | None:
    """The tree of one document; None when there is nothing but comments. Raises ConfigError."""
    text = _decoded(name, data)
    try:
        return _Builder(name).build(text)
    except yaml.MarkedYAMLError as error:
        raise ConfigError((explain_syntax(name, text, error),)) from None


def parse_value(name: str, text: str) -> Node:
    """The tree of one value given on the command line or in the environment."""
    node = parse(name, text.encode())
    return Leaf(None, Mark(name)) if node is None else _unlined(node, Mark(name))


def _unlined(node: Node, mark: Mark) -> Node:
    match node:
        case Leaf():
            return Leaf(node.value, mark)
        case Items():
            return Items(tuple(_unlined(each, mark) for each in node.values), mark)
        case Fields():
            values = {key: _unlined(value, mark) for key, value in node.values.items()}
            return Fields(values, dict.fromkeys(values, mark), mark)


def _decoded(name: str, data: bytes) -> str:
    mark = Mark(name, 1, 1)
    if len(data) > SIZE_MAX:
        message = f"is {len(data)} bytes long"
        raise ConfigError((Problem(mark, "", message, f"keep it below {SIZE_MAX} bytes"),))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = _place(name, data[: error.start].decode(errors="replace"))
        problem = Problem(where, "", "is not text in UTF-8", "save it as UTF-8 YAML")
        raise ConfigError((problem,)) from None
    strange = _STRANGE.search(text)
    if strange:
        message = f"has the control character U+{ord(strange[0]):04X}"
        where = _place(name, text[: strange.start()])
        raise ConfigError((Problem(where, "", message, "remove it"),))
    return text


def _place(name: str, before: str) -> Mark:
    return Mark(name, before.count("\n") + 1, len(before) - before.rfind("\n"))


@dataclass(slots=True)
class _Open:
    """A list or map that is being read."""

    mark: Mark
    items: list[Node] | None = None
    values: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, Mark] = field(default_factory=dict)
    key: str | None = None

    def closed(self) -> Node:
        if self.items is not None:
            return Items(tuple(self.items), self.mark)
        return Fields(self.values, self.keys, self.mark)


@dataclass(slots=True)
class _Builder:
    """Events in, one tree out, all structural problems collected."""

    name: str
    stack: list[_Open] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    root: Node | None = None
    documents: int = 0

    def build(self, text: str) -> Node | None:
        handlers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._mapping,
            yaml.SequenceStartEvent: self._sequence,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }
        for event in yaml.parse(text, Loader=_LOADER):
            handler = handlers.get(type(event))
            if handler is not None:
                handler(event)
            if self.documents > 1:
                break
        if self.problems:
            raise ConfigError(self.problems)
        return self.root

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        # The one that is called for every word: what it does, it does once.
        mark = self._mark(event)
        top = self.stack[-1] if self.stack else None
        if top is not None and top.items is None and top.key is None:
            self._key(event, mark)
            return
        if event.anchor or event.tag:
            self._refuse_extras(event.anchor, event.tag, mark)
        text = event.value
        leaf = Leaf(resolve(text) if event.implicit[0] else text, mark)
        if top is None:
            self.root = leaf
        elif top.items is not None:
            top.items.append(leaf)
        elif top.key is not None:
            top.values[top.key] = leaf
            top.key = None

    def _key(self, event: yaml.ScalarEvent, mark: Mark) -> None:
        if event.anchor or event.tag:
            self._refuse_extras(event.anchor, event.tag, mark)
        top = self.stack[-1]
        key = event.value
        plain = event.implicit[0] and (key in _WORDS or key[0] in _START)
        if plain and not isinstance(resolve(key), str):
            self._problem(mark, f"the key {key or 'null'} is not text", f'write "{key}"')
        elif key == "<<":
            self._problem(mark, "merge keys are not supported", "write the keys out")
        elif key in top.keys:
            first = top.keys[key]
            message = f"the key is here a second time, first in line {first.line}"
            self._problem(mark, message, "remove one of the two", key)
        top.key = key
        top.keys[key] = mark

    def _mapping(self, event: yaml.MappingStartEvent) -> None:
        self._open(event, _Open(self._mark(event)))

    def _sequence(self, event: yaml.SequenceStartEvent) -> None:
        self._open(event, _Open(self._mark(event), items=[]))

    def _open(self, event: yaml.CollectionStartEvent, opened: _Open) -> None:
        if event.anchor or event.tag:
            self._refuse_extras(event.anchor, event.tag, opened.mark)
        if self.stack and self.stack[-1].items is None and self.stack[-1].key is None:
            self._problem(opened.mark, "a list or map cannot be a key", "write text")
            self.stack[-1].key = ""
        self.stack.append(opened)
        if len(self.stack) > DEPTH_MAX:
            message = f"is nested more than {DEPTH_MAX} deep"
            raise ConfigError((Problem(opened.mark, "", message, "close some brackets"),))

    def _end(self, _event: object) -> None:
        self._add(self.stack.pop().closed())

    def _alias(self, event: yaml.AliasEvent) -> None:
        mark = self._mark(event)
        word = quoted(f"*{event.anchor}")
        hint = f'write the value out, or in quotes if it is text: "*{event.anchor}"'
        self._problem(mark, f"aliases such as {word} are not supported", hint)
        if self.stack and self.stack[-1].items is None and self.stack[-1].key is None:
            self.stack[-1].key = ""
            return
        self._add(Leaf(None, mark))

    def _document(self, event: yaml.DocumentStartEvent) -> None:
        self.documents += 1
        mark = self._mark(event)
        if self.documents > 1:
            self._problem(mark, "a second document begins here", "keep one document in a file")
        if event.version or event.tags:
            self._problem(mark, "directives (%YAML, %TAG) are not supported", "remove them")

    def _add(self, node: Node) -> None:
        if not self.stack:
            self.root = node
            return
        top = self.stack[-1]
        if top.items is not None:
            top.items.append(node)
        elif top.key is not None:
            top.values[top.key] = node
            top.key = None

    def _refuse_extras(self, anchor: str | None, tag: str | None, mark: Mark) -> None:
        for what, found in (("anchor", anchor and f"&{anchor}"), ("tag", tag)):
            if found:
                message = f"{what}s such as {quoted(found)} are not supported"
                self._problem(mark, message, "remove it")

    def _problem(self, mark: Mark, message: str, hint: str, *tail: str) -> None:
        path = [*self._path(), *tail]
        self.problems.append(Problem(mark, dotted(path), message, hint))

    def _path(self) -> list[str | int]:
        steps: list[str | int] = []
        for each in self.stack:
            if each.items is not None:
                steps.append(len(each.items))
            elif each.key:
                steps.append(each.key)
        return steps

    def _mark(self, event: yaml.Event) -> Mark:
        start: Any = event.start_mark
        return _made(Mark, (self.name, start.line + 1, start.column + 1))
