"""Settings as YAML that can be read again, with the origin of every value if wanted."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from config.leaves import flat, nested, plain, stated
from config.problems import dotted
from config.redact import shown
from config.yaml import resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from config.layers import Provenance
    from config.schema.settings import Settings
    from config.tree import Plain

_SAFE = re.compile(r"[A-Za-z0-9/][A-Za-z0-9_./*%-]*")
# Words that other YAML readers take for switches.
_LOADED = frozenset({"y", "n", "yes", "no", "on", "off", "null", "true", "false"})
_INDENT = "  "

Path = tuple[str, ...]


def document(settings: Settings, *, changed_only: bool = False) -> dict[str, Plain]:
    """Nested by section like the file; secrets redacted. `changed_only` leaves out defaults."""
    values = stated(settings) if changed_only else plain(settings)
    values = {"version": settings.version, **values}
    return {**nested({path: shown(path, each) for path, each in flat(values).items()})}


def text(
    settings: Settings,
    *,
    origins: Provenance | None = None,
    waiting: Collection[str] = (),
    changed_only: bool = False,
) -> str:
    """YAML that gives the same settings when it is read; with `origins`, each line says whence.

    `waiting` are dotted paths whose value in the files waits for a restart.
    """
    values = document(settings, changed_only=changed_only)
    note = _origin(origins, waiting) if origins is not None else lambda _path: ""
    return "\n".join(_lines(values, (), note)) + "\n"


def text_of(values: Mapping[str, Plain]) -> str:
    """YAML of a document that came from elsewhere, such as that of a peer."""
    return "\n".join(_lines(values, (), lambda _path: "")) + "\n"


def _origin(provenance: Provenance, waiting: Collection[str]) -> Callable[[Path], str]:
    def note(path: Path) -> str:
        if dotted(path) in waiting:
            return f"  # until the restart; {provenance.mark(path)} says otherwise"
        winner = provenance.winner(path)
        return "  # built-in" if winner is None else f"  # {_place(winner.layer, winner.mark)}"

    return note


def _place(layer: str, mark: object) -> str:
    return str(mark) if str(mark).startswith(layer) else f"{layer}, {mark}"


def _lines(values: Mapping[str, Plain], path: Path, note: Callable[[Path], str]) -> Iterator[str]:
    indent = _INDENT * len(path)
    for key, value in values.items():
        below = (*path, key)
        if isinstance(value, dict) and value:
            yield f"{indent}{scalar(key)}:"
            yield from _lines(value, below, note)
        else:
            yield f"{indent}{scalar(key)}: {flow(value)}{note(below)}"


def flow(value: Plain) -> str:
    """A value in one line."""
    match value:
        case list():
            return f"[{', '.join(flow(each) for each in value)}]"
        case dict():
            pairs = (f"{scalar(key)}: {flow(each)}" for key, each in value.items())
            return f"{{{', '.join(pairs)}}}"
        case _:
            return scalar(value)


def scalar(value: object) -> str:
    """A single value; text is quoted where any YAML reader could take it for something else."""
    if not isinstance(value, str):
        return json.dumps(value)
    plain_text = _SAFE.fullmatch(value) and value.lower() not in _LOADED
    if plain_text and isinstance(resolve(value), str) and not _numeric(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _numeric(value: str) -> bool:
    """Dates, versions and sexagesimal numbers are numbers to some readers."""
    return value[0].isdigit() and not value.endswith(("s", "m", "h", "d", "%")) and "." not in value
