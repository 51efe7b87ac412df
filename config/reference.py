"""The schema told to people and tools: one option, the table, JSON Schema, a first file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.defaults import DEFAULTS, default_of
from config.problems import dotted, suggest
from config.render import flow
from config.schema.option import Scope
from config.schema.settings import Document, Settings
from config.schema.table import ANY, OPTIONS, Entry, entry_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from config.layers import Provenance
    from config.tree import Plain


class UnknownOptionError(LookupError):
    """There is no option of that name; `near` is what it may have been."""

    def __init__(self, key: str, near: str | None) -> None:
        super().__init__(key)
        self.key = key
        self.near = near


def find(key: str) -> tuple[tuple[str, ...], Entry]:
    """The path and option that `key` means: a dotted path, names of egresses included."""
    path = tuple(key.split("."))
    entry = entry_of(path)
    if entry is not None:
        return path, entry
    known = [dotted(each) for each in OPTIONS]
    last = [each for each in known if each.split(".")[-1] == path[-1]]
    near = suggest(key, known) or (last[0] if last else None)
    raise UnknownOptionError(key, near)


def values_of(entry: Entry) -> str:
    """What may be written, in words."""
    schema = entry.form.schema if entry.form is not None else {}
    kinds = schema.get("anyOf")
    if isinstance(kinds, list):
        schema = kinds[0]
    words = schema.get("enum")
    if isinstance(words, list):
        return " | ".join(str(each) for each in words)
    for key in ("x-wayout-range", "x-wayout-format"):
        if key in schema:
            return str(schema[key])
    if "minimum" in schema:
        return f"{schema['type']} from {schema['minimum']:g} to {schema['maximum']:g}"
    return str(schema.get("type", "list or map"))


def explain(key: str, provenance: Provenance | None = None) -> dict[str, Plain]:
    """Everything about one option, and who sets it if a configuration is at hand."""
    path, entry = find(key)
    option = entry.option
    told: dict[str, Plain] = {
        "path": dotted(path),
        "description": option.description,
        "values": values_of(entry),
        "default": "required" if entry.required else default_of(entry),
        "scope": option.scope.value,
        "class": option.modifiability.value,
        "since": option.since,
    }
    if option.restart_reason:
        told["restart_reason"] = option.restart_reason
    if provenance is not None:
        told["set_by"] = [
            {"layer": each.layer, "at": str(each.mark)} for each in provenance.origins(path)
        ]
    return told


def options(scope: Scope | None = None) -> tuple[Entry, ...]:
    """All options, or those of one scope."""
    return tuple(each for each in OPTIONS.values() if scope in (None, each.option.scope))


def markdown(entries: Iterable[Entry]) -> str:
    """The option table of the documentation."""
    rows = ["| option | values | default | scope | class | meaning |", "|---|---|---|---|---|---|"]
    for each in entries:
        default = "required" if each.required else f"`{flow(default_of(each))}`"
        values = values_of(each).replace("|", "\\|")
        path, option = dotted(each.path).replace("*", "NAME"), each.option
        cells = (f"`{path}`", values, default, option.scope.value, option.modifiability.value)
        rows.append(f"| {' | '.join(cells)} | {option.description} |")
    return "\n".join(rows) + "\n"


def json_schema() -> dict[str, object]:
    """JSON Schema (2020-12) of a file, for editors; cross-field rules are not in it."""
    schema: dict[str, object] = Document.model_json_schema()
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    for section, field in Settings.model_fields.items():
        title = getattr(field.annotation, "__name__", "")
        properties = definitions.get(title, {}).get("properties", {})
        for name, described in properties.items():
            if (section, name) in DEFAULTS:
                described["default"] = DEFAULTS[section, name]
    described_schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**described_schema, **schema, "title": "wayout configuration"}


_HEAD = """\
# Configuration of wayout. Every line that begins with '#' shows a default.
# 'wayout config explain KEY' tells more about an option, 'wayout config check' checks this file.
version: 1
"""
_SECTIONS: Mapping[str, str] = {
    "node": "Who this node is. Facts of one node may also stand under nodes.NAME.",
    "gossip": "Membership. Name two or three members as seeds; they need not all be up.",
    "egress": "The addresses.",
    "interfaces": "Where addresses may be put.",
    "health": "What this node checks before it calls itself fit to carry addresses.",
    "api": "Where the daemon can be asked.",
    "metrics": "Metrics are served with the HTTP API unless they have a listener of their own.",
    "logging": "What is logged.",
    "state": "What is kept on disk.",
    "config": "How this file itself is read.",
}
_EXAMPLE = """\
  egresses: {}
  #  billing:
  #    egress_ip: 192.0.2.40
  #    applied_to: {ip_blocks: [10.9.0.0/24]}
  #  partner:
  #    egress_ips: [192.0.2.41, "2001:db8::41"]
"""
_CHECKS = """\
  checks: {}
  #  uplink: {type: gateway, interval: 1s, fall: 3}
  #  firewall: {type: tcp, target: "192.0.2.1:443"}
  #  proxy: {type: exec, command: [/usr/local/bin/proxy-works, --quick], timeout: 2s}
"""
_FOOT = """\

# Settings of some nodes alone: groups by name pattern or label, then single nodes.
#groups:
#  - name: rack7
#    match: {names: ["r07-*"]}
#    set: {interfaces: {default: bond0}}
#nodes:
#  r07-n1: {node: {weight: 2.0}}
"""


def template() -> str:
    """A first file: valid as it is, with every option in it."""
    parts = [_HEAD]
    for section, words in _SECTIONS.items():
        parts.append(f"\n# {words}\n{section}:\n")
        if section == "gossip":
            parts.append("  seeds: []  # [192.0.2.11, 192.0.2.12]\n")
        if section == "egress":
            parts.append(_EXAMPLE)
        if section == "health":
            parts.append(_CHECKS)
        parts += [_commented(each) for each in OPTIONS.values() if _templated(each, section)]
    return "".join([*parts, _FOOT])


def _templated(entry: Entry, section: str) -> bool:
    live = ("gossip", "seeds")
    return entry.path[0] == section and ANY not in entry.path and entry.path != live


def _commented(entry: Entry) -> str:
    value = entry.option.example or flow(default_of(entry))
    return f"  #{entry.path[-1]}: {value}  # {entry.option.description}\n"
