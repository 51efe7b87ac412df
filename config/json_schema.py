"""The schema as JSON Schema (2020-12), for editors and for other programs."""

from __future__ import annotations

from typing import Any

from config.defaults import DEFAULTS
from config.schema.option import Scope
from config.schema.settings import Document, Settings

FILE_NAME = "wayout.schema.json"
"""What `config init` calls it, beside the file that it describes."""

_SHARED = "x-wayout-scope"
_SOME = frozenset({Scope.GROUP.value, Scope.NODE.value})
PART = "SettingsOfSome"
_WHOLE = frozenset({"Group", "Match", "Expression"})
"""Items of lists, which no `null` replaces."""


def json_schema() -> dict[str, Any]:
    """The schema of a file. What two options do to each other (rules) is not in it.

    `null` resets an option, so every option but the version may be null. Below `groups` and
    `nodes` there is nothing but what one node may have for itself.
    """
    schema = Document.model_json_schema()
    definitions: dict[str, Any] = schema["$defs"]
    sections = {
        name: getattr(field.annotation, "__name__", "")
        for name, field in Settings.model_fields.items()
    }
    for section, title in sections.items():
        for name, described in definitions.get(title, {}).get("properties", {}).items():
            if (section, name) in DEFAULTS:
                described["default"] = DEFAULTS[section, name]
    parts = _parts(definitions, sections)
    for described in definitions.values():
        required = described.get("required", ())
        for name, option in described.get("properties", {}).items():
            if name not in required:
                described["properties"][name] = _or_null(option)
    definitions |= parts
    _maps_or_null(definitions)
    part = {"$ref": f"#/$defs/{PART}"}
    schema["properties"]["nodes"]["additionalProperties"] = part
    definitions["Group"]["properties"]["set"] = part
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**head, **schema, "title": "wayout configuration"}


def _parts(definitions: dict[str, Any], sections: dict[str, str]) -> dict[str, Any]:
    """Sections as groups and nodes may have them, and the whole of those."""
    parts: dict[str, Any] = {}
    for section, title in sections.items():
        described = definitions.get(title, {})
        allowed = {
            name: _or_null(option)
            for name, option in described.get("properties", {}).items()
            if option.get(_SHARED) in _SOME
        }
        if allowed:
            named = {"title": f"{title}OfSome", "properties": allowed}
            parts[section] = {**described, **named}
    # An editor shows the sections in which something may be written, and a check the reasons.
    whole = {
        "type": "object",
        "title": PART,
        "additionalProperties": False,
        "properties": {
            name: _or_null({"$ref": f"#/$defs/{x['title']}"}) for name, x in parts.items()
        },
    }
    return {PART: whole, **{each["title"]: each for each in parts.values()}}


def _or_null(option: dict[str, Any]) -> dict[str, Any]:
    """The option, or null; as plain as can be, for what an editor says of a mistake."""
    kinds = option.get("anyOf")
    if isinstance(kinds, list):
        known = kinds if {"type": "null"} in kinds else [*kinds, {"type": "null"}]
        return {**option, "anyOf": known}
    kind = option.get("type")
    if kind is None:  # A reference: what it leads to may be null itself.
        return option
    wide = {**option, "type": [*([kind] if isinstance(kind, str) else kind), "null"]}
    words = option.get("enum")
    if words is None:
        return wide
    if {"on", "off"} <= {*words}:  # The checker takes a switch for them, too.
        wide["type"] = [*wide["type"], "boolean"]
        words = [*words, True, False]
    return {**wide, "enum": [*words, None]}


def _maps_or_null(definitions: dict[str, Any]) -> None:
    """A section with nothing in it, and `NAME: null`, which takes out what a lower layer has."""
    for title, described in definitions.items():
        if described.get("type") == "object" and title not in _WHOLE:
            described["type"] = ["object", "null"]
