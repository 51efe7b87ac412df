"""Settings as a flat table of leaf paths and plain values, in the words of the file.

A list is a leaf, a map is not. Lists of text are sets to us (seeds, networks, patterns): their
order means nothing, so it is neither a change nor part of a digest. A command is the exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from config.schema.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from config.tree import Plain

Leaves = Mapping[tuple[str, ...], "Plain"]

SEQUENCES = frozenset({"command"})
"""Options whose lists are sequences and not sets."""


def plain(settings: Settings) -> dict[str, Plain]:
    """Nested plain values; reading them again gives the same settings."""
    dumped: dict[str, Plain] = settings.model_dump(mode="json")
    return dumped


def stated(settings: Settings) -> dict[str, Plain]:
    """Nested plain values without those that equal their default, however they came about."""
    dumped: dict[str, Plain] = settings.model_dump(mode="json", exclude_defaults=True)
    return dumped


def flat(values: Mapping[str, Plain]) -> Leaves:
    """Leaf paths and their values; an empty map leaves no trace."""
    return dict(_walk(values, ()))


def _walk(
    values: Mapping[str, Plain], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Plain]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _walk(value, (*path, key))
        else:
            yield (*path, key), value


def nested(leaves: Leaves) -> dict[str, Plain]:
    """The maps that `flat` took apart."""
    whole: dict[str, Plain] = {}
    for path, value in leaves.items():
        holder = whole
        for step in path[:-1]:
            below = holder.setdefault(step, {})
            assert isinstance(below, dict)
            holder = below
        holder[path[-1]] = value
    return whole


def leaves_of(settings: Settings) -> Leaves:
    """All leaves of the settings, defaults included."""
    return flat(plain(settings))


def built(leaves: Leaves) -> Settings:
    """The settings that have these leaves; raises pydantic's ValidationError."""
    return Settings.model_validate(nested(leaves))


def ordered(value: Plain) -> Plain:
    """The same for values that mean the same, however deep the lists are."""
    if isinstance(value, dict):
        return {key: below if key in SEQUENCES else ordered(below) for key, below in value.items()}
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return [*sorted(set(map(str, value)))]
    return value
