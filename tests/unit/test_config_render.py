"""What is shown can be read again; what is explained is all there."""

import json
import re

import pytest

from config.leaves import leaves_of
from config.reference import (
    UnknownOptionError,
    explain,
    find,
    json_schema,
    markdown,
    options,
    template,
)
from config.render import document, flow, scalar, text
from config.schema.option import Scope
from config.schema.table import ANY, OPTIONS
from support.settings import parsed

RICH = """\
version: 1
node: {name: n1, address: "iface:eth0", labels: {example.org/rack: "7", a: "yes"}, weight: 2.5}
gossip:
  seeds: ["[2001:db8::11]:7000", 192.0.2.12, seed.example]
  delegate_version: serf
  encryption: required
  keyring_file: /etc/wayout/keys/gossip.keys
  allowed_cidrs: ["0.0.0.0/0", "::/0"]
egress:
  removal_guard: off
  egresses:
    "a.b":
      egress_ips: [192.0.2.40, "2001:db8::40"]
      node_selector:
        match_labels: {rack: "on"}
        match_expressions: [{key: zone, operator: NotIn, values: [x, "1"]}]
api: {http_listen: off}
"""


@pytest.mark.parametrize("changed_only", [False, True])
@pytest.mark.parametrize("origin", [False, True])
def test_what_is_shown_is_valid_input_again(origin, changed_only):
    loaded = parsed(RICH)
    shown = text(
        loaded.settings,
        origins=loaded.provenance if origin else None,
        changed_only=changed_only,
    )

    assert leaves_of(parsed(shown, hostname="other").settings) == loaded.leaves


def test_every_line_says_where_its_value_comes_from():
    loaded = parsed(RICH)
    shown = text(loaded.settings, origins=loaded.provenance)

    assert "  weight: 2.5  # config.yaml:2:" in shown
    assert "  fanout: 3  # built-in" in shown


def test_a_value_that_waits_says_so():
    loaded = parsed(RICH)
    shown = text(loaded.settings, origins=loaded.provenance, waiting=["node.name"])

    assert "name: n1  # until the restart; config.yaml:2:14 says otherwise" in shown


def test_changed_only_leaves_defaults_out():
    shown = text(parsed("version: 1\nlogging: {level: debug}\n").settings, changed_only=True)

    assert shown == "version: 1\nnode:\n  name: n1\nlogging:\n  level: debug\n"


def test_the_json_form_nests_like_the_file():
    values = document(parsed(RICH).settings)

    assert values["egress"]["egresses"]["a.b"]["egress_ips"] == ["192.0.2.40", "2001:db8::40"]
    assert json.loads(json.dumps(values)) == values


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("plain", "plain"),
        ("off", '"off"'),
        ("Yes", '"Yes"'),
        ("3s", "3s"),
        ("007", '"007"'),
        ("2001-01-01", '"2001-01-01"'),
        ("a: b", '"a: b"'),
        ("", '""'),
        ("1.5", '"1.5"'),
        ("192.0.2.1", "192.0.2.1"),
        ("::1", '"::1"'),
        ("#x", '"#x"'),
        ("ümlaut", '"ümlaut"'),
        (None, "null"),
        (True, "true"),
        (1.0, "1.0"),
    ],
)
def test_text_is_quoted_where_a_reader_could_mistake_it(value, line):
    assert scalar(value) == line


def test_lists_and_maps_stand_in_one_line():
    assert flow([{"key": "a", "values": ["x", "1"]}, []]) == '[{key: a, values: [x, "1"]}, []]'


def test_the_first_file_is_valid_as_it_is():
    loaded = parsed(template())

    assert loaded.warnings == ()
    assert leaves_of(loaded.settings) == leaves_of(parsed("version: 1\n").settings)


def test_every_option_of_the_first_file_is_valid_when_its_comment_sign_is_taken_away():
    rows = [row for row in template().splitlines() if re.match(r"  #[a-z_]+: ", row)]
    free = [path for path in OPTIONS if ANY not in path and len(path) > 1]

    assert len(rows) == len(free) - 1  # gossip.seeds stands there without a sign
    for row in rows:
        parsed(template().replace(row, row.replace("#", "", 1)))


def test_the_examples_of_the_first_file_are_valid_when_their_comment_signs_are_taken_away():
    whole = template().replace("  egresses: {}\n", "  egresses:\n").replace("  #  ", "    ")
    whole = whole.replace("  checks: {}\n", "  checks:\n")
    head, foot = whole.split("#groups:")
    loaded = parsed(head + "groups:" + foot.replace("\n#", "\n"), hostname="r07-n1")

    assert set(loaded.settings.egress.egresses) == {"billing", "partner"}
    assert set(loaded.settings.health.checks) == {"uplink", "firewall", "proxy"}
    assert loaded.settings.node.weight == 2.0
    assert loaded.settings.interfaces.default == "bond0"


def test_an_option_is_explained_with_everybody_who_sets_it():
    told = explain("gossip.bind_port", parsed("version: 1\ngossip: {bind_port: 8000}\n").provenance)

    assert told["values"] == "integer from 1 to 65535"
    assert told["default"] == 7955
    assert told["class"] == "static"
    assert told["restart_reason"]
    assert told["set_by"] == [{"layer": "config.yaml", "at": "config.yaml:2:21"}]


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("gossip.bind_prt", "gossip.bind_port"),
        ("seeds", "gossip.seeds"),
        ("egress.egresses.a.pinn", None),
        ("nothing.at.all", None),
    ],
)
def test_an_unknown_option_is_guessed_at(key, near):
    with pytest.raises(UnknownOptionError) as caught:
        find(key)

    assert near is None or caught.value.near == near


def test_an_option_of_one_egress_is_found_by_its_name():
    path, entry = find("egress.egresses.billing.pin")

    assert path[2] == "billing"
    assert entry.option.scope is Scope.CLUSTER


def test_the_option_table_has_a_row_for_each():
    rows = markdown(options()).splitlines()

    assert len(rows) == len(OPTIONS) + 2
    assert all(row.replace("\\|", "").count("|") == 7 for row in rows)
    assert len(options(Scope.NODE)) < len(options())


def test_the_json_schema_knows_what_the_checker_knows():
    schema = json_schema()
    probe = schema["$defs"]["GossipSection"]["properties"]["probe_interval"]

    assert probe["default"] == "500ms"
    assert probe["x-wayout-scope"] == "cluster"
    assert probe["x-wayout-modifiability"] == "dynamic"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["version"]
    assert {"groups", "nodes"} <= schema["properties"].keys()
    assert schema["$defs"]["ApiSection"]["properties"]["http_listen"]["default"] == "127.0.0.1:9765"
    json.dumps(schema)
