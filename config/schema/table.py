"""Every option there is, by path: what the schema knows, as one flat table.

A path has `*` where the user chooses the name, as in `egress.egresses.*.egress_ip`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from config.schema.option import Option, Section
from config.schema.settings import Settings
from config.types import Form

ANY = "*"


@dataclass(frozen=True, slots=True)
class Entry:
    """One option. `form` is None for lists and maps; `required` ones have no default."""

    path: tuple[str, ...]
    option: Option
    form: Form[object] | None
    required: bool

    @property
    def is_text(self) -> bool:
        """Whether values are text, so that `123` on a command line is text too."""
        if self.form is None:
            return False
        # For an optional form, the first kind is that of the value itself.
        kinds = self.form.schema.get("anyOf", [self.form.schema])
        assert isinstance(kinds, list)
        return bool(kinds[0].get("type") == "string")


def _section(annotation: object) -> type[Section] | None:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return None


def _below(path: tuple[str, ...], field: FieldInfo) -> Iterator[Entry]:
    section = _section(field.annotation)
    if section is None and get_origin(field.annotation) is dict:
        section = _section(get_args(field.annotation)[1])
        path_below = (*path, ANY)
    else:
        path_below = path
    if section is not None:
        yield from _entries(section, path_below)
        return
    option = next(each for each in field.metadata if isinstance(each, Option))
    form = next((each for each in field.metadata if isinstance(each, Form)), None)
    yield Entry(path, option, form, field.default is PydanticUndefined and field.is_required())


def _entries(section: type[Section], path: tuple[str, ...] = ()) -> Iterator[Entry]:
    for name, field in section.model_fields.items():
        yield from _below((*path, name), field)


OPTIONS: Mapping[tuple[str, ...], Entry] = {each.path: each for each in _entries(Settings)}

_CHILDREN: dict[tuple[str, ...], set[str]] = {}
for _path in OPTIONS:
    for _depth, _name in enumerate(_path):
        _CHILDREN.setdefault(_path[:_depth], set()).add(_name)


def _pattern(path: tuple[str, ...]) -> tuple[str, ...]:
    """`path` with `*` in the places where names are free."""
    found: tuple[str, ...] = ()
    for step in path:
        found = (*found, ANY if ANY in _CHILDREN.get(found, ()) else step)
    return found


def entry_of(path: tuple[str, ...]) -> Entry | None:
    """The option that `path` belongs to; `node.labels.rack` belongs to `node.labels`."""
    pattern = _pattern(path)
    for end in range(len(pattern), 0, -1):
        found = OPTIONS.get(pattern[:end])
        if found is not None:
            return found
    return None


def children(path: tuple[str, ...]) -> tuple[str, ...]:
    """Names that may stand below `path`; none for an option, `*` for free names."""
    return tuple(sorted(_CHILDREN.get(_pattern(path), ())))
