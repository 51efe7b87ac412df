"""The exported JSON Schema, used as an editor does: good files pass, mistakes are marked."""

import json

import jsonschema
import pytest

from config.json_schema import FILE_NAME, json_schema
from config.reference import template
from config.tree import Fields, Items, Leaf
from config.yaml import parse as parse_yaml
from support.settings import complaints, parsed

SCHEMA = json_schema()
EDITOR = jsonschema.Draft202012Validator(SCHEMA)
GOOD = {
    "the least": "version: 1\n",
    "the first file": template(),
    "an egress of two families": (
        "version: 1\negress:\n  egresses:\n    a: {egress_ips: [192.0.2.1, '2001:db8::1']}\n"
    ),
    "durations and shares": (
        "version: 1\ngossip: {probe_interval: 1s500ms, probe_timeout: 400ms}\n"
        "egress: {removal_guard: 'off', lease: 10s}\n"
    ),
    "a reset": "version: 1\ngossip: {fanout: null}\nnode: {labels: null}\n",
    "groups and nodes": (
        "version: 1\ngroups:\n  - name: r7\n    match: {names: ['r07-*'], labels: {rack: [a, b]}}\n"
        "    set: {interfaces: {default: bond0}, logging: {level: debug}}\n"
        "nodes: {r07-n1: {node: {weight: 2.0, labels: {rack: a}}, gossip: {seeds: [192.0.2.9]}}}\n"
    ),
    "listeners": "version: 1\napi: {http_listen: 'off'}\nmetrics: {listen: '[::]:9766'}\n",
}
BAD = {
    "an unknown option": ("version: 1\ngossip: {probe_timout: 200ms}\n", "gossip"),
    "an unknown section": ("version: 1\negres: {}\n", ""),
    "a number without a unit": ("version: 1\ngossip: {probe_interval: 500}\n", "probe_interval"),
    "a word for a switch": ("version: 1\nnode: {eligible: no}\n", "eligible"),
    "a port out of range": ("version: 1\ngossip: {bind_port: 79550}\n", "bind_port"),
    "a misspelt choice": ("version: 1\negress: {failback: imediate}\n", "failback"),
    "a text for a list": ("version: 1\ngossip: {seeds: 192.0.2.1}\n", "seeds"),
    "no version": ("gossip: {}\n", ""),
    "another version": ("version: 2\n", "version"),
    "a list of egresses": (
        "version: 1\negress: {egresses: [{egress_ip: 192.0.2.1}]}\n",
        "egresses",
    ),
    "what all share, in a node": ("version: 1\nnodes: {n1: {gossip: {fanout: 4}}}\n", "gossip"),
    "what a host owns, in a group": (
        "version: 1\ngroups: [{name: g, match: {}, set: {api: {socket: /x}}}]\n",
        "set",
    ),
    "a group without a match": ("version: 1\ngroups: [{name: g, set: {}}]\n", "groups"),
}


def written(text):
    """The document as an editor has it, with its nulls."""
    return plain(parse_yaml("x", text.encode()))


def plain(node):
    match node:
        case Leaf():
            return node.value
        case Items():
            return [plain(each) for each in node.values]
        case Fields():
            return {key: plain(each) for key, each in node.values.items()}


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    json.dumps(SCHEMA)


@pytest.mark.parametrize("name", GOOD)
def test_an_editor_takes_what_the_checker_takes(name):
    parsed(GOOD[name])

    assert [each.message for each in EDITOR.iter_errors(written(GOOD[name]))] == []


@pytest.mark.parametrize("name", BAD)
def test_an_editor_marks_what_the_checker_refuses(name):
    text, key = BAD[name]
    assert complaints(text)

    errors = [*EDITOR.iter_errors(written(text))]

    assert errors
    assert any(not key or key in map(str, each.absolute_path) for each in errors)


def test_the_schema_tells_what_the_table_does():
    probe = SCHEMA["$defs"]["GossipSection"]["properties"]["probe_interval"]

    assert probe["default"] == "500ms"
    assert probe["description"]
    assert probe["x-wayout-scope"] == "cluster"
    assert probe["x-wayout-modifiability"] == "dynamic"
    assert SCHEMA["additionalProperties"] is False
    assert SCHEMA["required"] == ["version"]
    assert SCHEMA["$defs"]["ApiSection"]["properties"]["http_listen"]["default"] == "127.0.0.1:9765"


def test_below_nodes_an_editor_offers_what_a_node_may_have():
    part = SCHEMA["$defs"]["GossipSectionOfSome"]["properties"]

    assert "seeds" in part
    assert "fanout" not in part
    assert "keyring_file" not in part
    assert "egress" not in SCHEMA["$defs"]["SettingsOfSome"]["properties"]


def test_the_first_line_of_a_first_file_names_the_schema_beside_it():
    assert template().splitlines()[0] == f"# yaml-language-server: $schema={FILE_NAME}"
