"""A document as a tree in which every value and every key knows where it was written.

Merging is associative: `merge(merge(a, b), c) == merge(a, merge(b, c))`. That is why a `null`
stays in the tree until `settled`, and why a map that was written over a `null` or over a plain
value remembers it (`fresh`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Scalar = str | int | float | bool | None
Plain = Scalar | list["Plain"] | dict[str, "Plain"]
Path = tuple[str | int, ...]


class Mark(NamedTuple):
    """A place in a source, counted from 1; line 0 means the source has no lines.

    A tuple, since there is one for every value: it costs a third of a frozen dataclass.
    """

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


class Leaf(NamedTuple):
    """A single value; None stands for `null`. A tuple for the same reason."""

    value: Scalar
    mark: Mark


@dataclass(frozen=True, slots=True)
class Items:
    """A list. Layers replace it as a whole."""

    values: tuple[Node, ...]
    mark: Mark


@dataclass(frozen=True, slots=True)
class Fields:
    """A map. `keys` has the marks of the keys; `fresh` hides whatever lower layers say."""

    values: Mapping[str, Node]
    keys: Mapping[str, Mark]
    mark: Mark
    fresh: bool = False


Node = Leaf | Items | Fields


def empty(source: str) -> Fields:
    """A map with nothing in it."""
    return Fields({}, {}, Mark(source))


def merge(low: Node | None, high: Node | None) -> Node | None:
    """`high` over `low`: maps merge, everything else replaces, `null` hides what is below."""
    if high is None:
        return low
    if low is None or not isinstance(high, Fields) or high.fresh:
        return high
    if not isinstance(low, Fields):
        return Fields(high.values, high.keys, high.mark, fresh=True)
    values = dict(low.values)
    for key, value in high.values.items():
        merged = merge(values.get(key), value)
        assert merged is not None
        values[key] = merged
    return Fields(values, {**low.keys, **high.keys}, high.mark, fresh=low.fresh)


def settled(node: Node) -> Plain:
    """Plain values, without the keys that a `null` has reset."""
    if isinstance(node, Leaf):
        return node.value
    if isinstance(node, Items):
        return [settled(each) for each in node.values]
    return {
        key: settled(value)
        for key, value in node.values.items()
        if not (isinstance(value, Leaf) and value.value is None)
    }


def child(node: Node | None, step: str | int) -> Node | None:
    """What `node` has at one key or index, or None."""
    if isinstance(node, Fields) and isinstance(step, str):
        return node.values.get(step)
    if isinstance(node, Items) and isinstance(step, int) and step < len(node.values):
        return node.values[step]
    return None


def at(node: Node | None, path: Path) -> Node | None:
    """What `node` has at `path`, or None."""
    for step in path:
        node = child(node, step)
    return node


def nearest(node: Node, path: Path) -> Mark:
    """The mark of the value at `path`, or of the closest thing above it that was written."""
    mark = node.mark
    for step in path:
        below = child(node, step)
        if below is None:
            break
        node = below
        mark = below.mark
    return mark


def key_mark(node: Node, path: Path) -> Mark:
    """The mark of the key at the end of `path`, or of the closest thing above it."""
    holder = at(node, path[:-1]) if path else None
    if isinstance(holder, Fields) and path[-1] in holder.keys:
        return holder.keys[str(path[-1])]
    return nearest(node, path)


def without(node: Fields, *names: str) -> Fields:
    """The map without these keys."""
    values = {key: value for key, value in node.values.items() if key not in names}
    return Fields(values, node.keys, node.mark, node.fresh)


def walk(node: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Every leaf path with its value; a list is a leaf, an empty map is none."""
    if not isinstance(node, Fields):
        yield path, node
        return
    for key, value in node.values.items():
        yield from walk(value, (*path, key))


def grown(path: tuple[str, ...], node: Node) -> Fields:
    """A tree with `node` at `path` and nothing else."""
    for key in reversed(path):
        node = Fields({key: node}, {key: node.mark}, node.mark)
    assert isinstance(node, Fields)
    return node
