"""Built-in values, in the words of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.leaves import flat, plain
from config.schema.egress import EgressEntry
from config.schema.settings import VERSION, Settings
from config.schema.table import ANY, Entry

if TYPE_CHECKING:
    from config.tree import Plain

DEFAULTS = flat(plain(Settings(version=VERSION)))
_OF_AN_EGRESS = flat(EgressEntry.model_construct().model_dump(mode="json"))
_NAMED = 3
"""Steps down to the options of one egress: egress.egresses.NAME."""


def default_of(entry: Entry) -> Plain:
    """The default as the file would have it; an empty map for maps of names."""
    if ANY in entry.path:
        return _OF_AN_EGRESS.get(entry.path[_NAMED:], {})
    return DEFAULTS.get(entry.path, {})
