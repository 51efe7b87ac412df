"""Built-in values, in the words of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.leaves import flat, plain
from config.schema.egress import EgressEntry
from config.schema.health import CheckEntry
from config.schema.option import Section
from config.schema.settings import VERSION, Settings
from config.schema.table import ANY, Entry

if TYPE_CHECKING:
    from config.tree import Plain

DEFAULTS = flat(plain(Settings(version=VERSION)))
_ENTRIES: dict[tuple[str, ...], type[Section]] = {
    ("egress", "egresses"): EgressEntry,
    ("health", "checks"): CheckEntry,
}
_NAMED = {
    prefix: flat(kind.model_construct().model_dump(mode="json"))
    for prefix, kind in _ENTRIES.items()
}
"""By the path of a map of names, the defaults of one entry."""


def default_of(entry: Entry) -> Plain:
    """The default as the file would have it; an empty map for maps of names."""
    if ANY in entry.path:
        named = entry.path.index(ANY)
        return _NAMED.get(entry.path[:named], {}).get(entry.path[named + 1 :], {})
    return DEFAULTS.get(entry.path, {})
