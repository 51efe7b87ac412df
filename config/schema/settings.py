"""The whole: `Settings` is what the daemon runs on, `Document` what a file may hold."""

from __future__ import annotations

from typing import Annotated, Any

from config.schema.agent import (
    ApiSection,
    ConfigSection,
    InterfacesSection,
    LoggingSection,
    MetricsSection,
    StateSection,
)
from config.schema.egress import EgressSection
from config.schema.gossip import GossipSection
from config.schema.health import HealthSection
from config.schema.node import NodeSection
from config.schema.option import STATIC, C, Listed, Named, Option, Section, nothing
from config.types import ANY_TEXT, LABEL_KEY, LABEL_VALUE, NODE_NAME, Form, kind, listed, refuse

VERSION = 1


def _version(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        refuse(f"is {kind(value)}", f"write version: {VERSION}")
    if value != VERSION:
        refuse(f"is {value}, which this program does not know", f"write version: {VERSION}")
    return VERSION


class Settings(Section):
    """The effective settings of one node."""

    version: Annotated[
        int,
        Form(_version, int, {"type": "integer", "const": VERSION}),
        Option(C, STATIC, "Version of this format.", "a new format takes a new program"),
    ]
    node: NodeSection = NodeSection()
    gossip: GossipSection = GossipSection()
    egress: EgressSection = EgressSection()
    interfaces: InterfacesSection = InterfacesSection()
    health: HealthSection = HealthSection()
    api: ApiSection = ApiSection()
    metrics: MetricsSection = MetricsSection()
    logging: LoggingSection = LoggingSection()
    state: StateSection = StateSection()
    config: ConfigSection = ConfigSection()


def _one_or_many(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (LABEL_VALUE.parse(value),)
    found = listed(value)
    assert isinstance(found, tuple)
    return tuple(LABEL_VALUE.parse(each) for each in found)


_VALUES = Form(_one_or_many, list, {"type": ["string", "array"], "items": {"type": "string"}})


def _layer(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        refuse(f"is {kind(value)}", "write the settings of these nodes: section, then key: value")
    return value


LAYER = Form(_layer, dict, {"type": "object"})


class Match(Section):
    """Which nodes a group has: any of the names, and all of the labels."""

    names: Listed[Annotated[str, ANY_TEXT]] = ()
    labels: Named[Annotated[str, LABEL_KEY], Annotated[tuple[str, ...], _VALUES]] = nothing()


class Group(Section):
    """Settings for the nodes that match; later groups win."""

    name: Annotated[str, ANY_TEXT]
    match: Match
    set: Annotated[dict[str, Any], LAYER]


class Overlays(Section):
    """The parts of a file that are for some nodes alone."""

    groups: Listed[Group] = ()
    nodes: Named[Annotated[str, NODE_NAME], Annotated[dict[str, Any], LAYER]] = nothing()


class Document(Settings, Overlays):
    """What a file may hold."""
