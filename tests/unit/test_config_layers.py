"""Layers: what wins, what each may say, and where a value came from."""

import pytest

from config.problems import ConfigError
from support.settings import complaints, parsed

BASE = """\
version: 1
gossip: {seeds: [192.0.2.11]}
logging: {level: warning}
groups:
  - name: racks
    match: {names: ["r07-*"]}
    set: {logging: {level: info}, interfaces: {default: bond0}}
  - name: edge
    match: {labels: {role: [edge, border]}}
    set: {node: {max_addresses: 3}}
nodes:
  r07-n1: {logging: {level: debug}}
  x: {node: {labels: {role: border}}}
"""


def level(**around):
    return parsed(BASE, **around).settings.logging.level.value


def test_each_layer_wins_over_those_below():
    assert level(hostname="a") == "warning"
    assert level(hostname="r07-n2") == "info"
    assert level(hostname="r07-n1") == "debug"
    assert level(hostname="r07-n1", environ={"WAYOUT__LOGGING__LEVEL": "error"}) == "error"
    assert (
        level(
            hostname="r07-n1",
            environ={"WAYOUT__LOGGING__LEVEL": "error"},
            overrides=["logging.level=info"],
        )
        == "info"
    )


def test_a_group_is_found_by_labels_that_a_node_or_the_environment_sets():
    assert parsed(BASE, hostname="x").settings.node.max_addresses == 3
    assert parsed(BASE, hostname="y").settings.node.max_addresses == 0
    labelled = parsed(BASE, hostname="y", overrides=["node.labels.role=edge"])
    assert labelled.settings.node.max_addresses == 3
    asked = parsed(BASE, node="z", labels={"role": "edge"})
    assert asked.settings.node.max_addresses == 3


def test_later_groups_win_and_a_conflict_is_told():
    text = """\
        version: 1
        groups:
          - {name: a, match: {}, set: {logging: {level: info}}}
          - {name: b, match: {names: [n*]}, set: {logging: {level: debug}}}
        """
    loaded = parsed(text)

    assert loaded.settings.logging.level.value == "debug"
    assert [str(each) for each in loaded.warnings] == [
        "config.yaml:4:60: logging.level: group a sets it too, at config.yaml:3:49, "
        "the later one wins; let one of them set it"
    ]


def test_a_dropin_extends_maps_and_replaces_lists():
    settings = parsed(
        "version: 1\ngossip: {seeds: [192.0.2.11, 192.0.2.12]}\n"
        "egress: {egresses: {a: {egress_ip: 192.0.2.1}, b: {egress_ip: 192.0.2.2}}}\n",
        dropins=[
            ("10.yaml", "gossip: {seeds: [192.0.2.13]}\n"),
            ("20.yaml", "egress: {egresses: {b: null, c: {egress_ip: 192.0.2.3}}}\n"),
        ],
    ).settings

    assert [seed.host for seed in settings.gossip.seeds] == ["192.0.2.13"]
    assert set(settings.egress.egresses) == {"a", "c"}


def test_null_resets_an_option_to_its_default():
    settings = parsed(
        "version: 1\nlogging: {level: debug}\n", dropins=[("10.yaml", "logging: {level: null}\n")]
    ).settings

    assert settings.logging.level.value == "info"


@pytest.mark.parametrize("text", ["logging:\n", "logging:\n  #level: info\n", "egress:\n"])
def test_a_section_with_nothing_but_comments_resets_nothing(text):
    settings = parsed(
        "version: 1\nlogging: {level: debug}\negress: {egresses: {a: {egress_ip: 192.0.2.1}}}\n",
        dropins=[("10.yaml", text)],
    ).settings

    assert settings.logging.level.value == "debug"
    assert set(settings.egress.egresses) == {"a"}


def test_a_mistake_in_a_dropin_points_to_the_dropin():
    with pytest.raises(ConfigError) as caught:
        parsed("version: 1\n", dropins=[("conf.d/10.yaml", "\ngossip: {bind_port: x}\n")])

    assert str(caught.value).startswith("conf.d/10.yaml:2:21: gossip.bind_port: ")


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        ("nodes: {n2: {egress: {lease: 4s}}}", "must be the same on every node"),
        ("nodes: {n2: {state: {dir: /x}}}", "belongs to the host"),
        ("nodes: {n2: {node: {name: n3}}}", "belongs to the host"),
        ("groups: [{name: g, match: {}, set: {version: 1}}]", "must be the same on every node"),
        ("groups: [{name: g, match: {}, set: {node: {labels: {a: b}}}}]", "chooses the groups"),
        ("groups: [{name: g, match: {}, set: {nod: {}}}]", "did you mean node?"),
        ("groups: [{name: g, match: {name: x}, set: {}}]", "did you mean names?"),
        ("groups: [{name: g, mach: {}, match: {}, set: {}}]", "did you mean match?"),
        ("group: []", "did you mean groups?"),
        ("groups: [{name: g, match: {}}]", "groups[0].set: is missing"),
        ("groups: [{name: g, match: {}, set: 3}]", "write the settings of these nodes"),
        ("groups: {g: {}}", "write a list"),
        ("nodes: [n1]", "write a map"),
        ("nodes: {N1: {}}", "the name is 'N1', write lower case letters"),
        (
            "groups: [{name: g, match: {}, set: {}}, {name: g, match: {}, set: {}}]",
            "the name g is taken",
        ),
    ],
)
def test_a_layer_for_some_nodes_is_checked_even_if_it_is_for_others(layer, words):
    (only,) = complaints(f"version: 1\n{layer}\n")

    assert words in only


def test_the_environment_and_flags_cannot_set_what_the_cluster_shares():
    told = complaints(
        "version: 1\n",
        environ={"WAYOUT__EGRESS__LEASE": "4s"},
        overrides=["gossip.suspicion_mult=5"],
    )

    assert told == [
        "--set gossip.suspicion_mult: gossip.suspicion_mult: must be the same on every node, "
        "so one node cannot set it, set it in the file that all nodes share",
        "environment WAYOUT__EGRESS__LEASE: egress.lease: must be the same on every node, "
        "so one node cannot set it, set it in the file that all nodes share",
    ]


@pytest.mark.parametrize(
    ("around", "words"),
    [
        ({"environ": {"WAYOUT__LOGING__LEVEL": "info"}}, "did you mean logging?"),
        ({"environ": {"WAYOUT__LOGGING__LVEL": "info"}}, "did you mean logging.level?"),
        ({"environ": {"WAYOUT__PORT": "tcp://10.0.0.1:80"}}, "enableServiceLinks"),
        ({"environ": {"WAYOUT__GOSSIP": "x"}}, "is a section"),
        ({"environ": {"WAYOUT__NODE__ELIGIBLE": "[" }}, "'[' is not closed"),
        ({"environ": {"WAYOUT__NODE__ELIGIBLE": "\udcff"}}, "not text in UTF-8"),
        ({"overrides": ["logging.level"]}, "has no value"),
        ({"overrides": ["a.b=c"]}, "unknown setting 'a.b'"),
        ({"overrides": ["node.weight=heavy"]}, "write a number"),
    ],
)  # fmt: skip
def test_a_mistake_outside_the_files_names_where_it_is(around, words):
    (only,) = complaints("version: 1\n", **around)

    assert words in only
    assert only.startswith(("environment WAYOUT__", "--set "))


def test_other_variables_of_the_environment_are_nobodys_business():
    environ = {"WAYOUT_PORT": "tcp://10.0.0.1:80", "WAYOUT_SOCKET": "/x", "PATH": "/bin"}

    assert parsed("version: 1\n", environ=environ).settings.node.name == "n1"


def test_outside_the_files_text_needs_no_quotes():
    settings = parsed(
        "version: 1\n",
        environ={"WAYOUT__NODE__ZONE": "007", "WAYOUT__GOSSIP__SEEDS": "[10.0.0.1, '::1']"},
        overrides=["node.name=42", "node.labels.example.org/rack=1", "node.eligible=false"],
    ).settings

    assert settings.node.zone == "007"
    assert settings.node.name == "42"
    assert settings.node.labels == {"example.org/rack": "1"}
    assert settings.node.eligible is False
    assert [seed.host for seed in settings.gossip.seeds] == ["10.0.0.1", "::1"]


def test_the_origin_of_a_value_is_every_layer_that_sets_it():
    loaded = parsed(BASE, hostname="r07-n1", overrides=["logging.level=error"])

    told = [
        (each.layer, str(each.mark)) for each in loaded.provenance.origins(("logging", "level"))
    ]
    assert told == [
        ("config.yaml", "config.yaml:3:18"),
        ("group racks", "config.yaml:7:28"),
        ("nodes.r07-n1", "config.yaml:12:29"),
        ("--set", "--set logging.level"),
    ]
    assert loaded.provenance.winner(("gossip", "fanout")) is None
    assert str(loaded.provenance.winner(("node", "name")).mark) == "host name"


@pytest.mark.parametrize("name", ["null", "~", ""])
def test_a_node_without_a_name_has_that_of_its_host(name):
    assert parsed(f"version: 1\nnode: {{name: {name}}}\n").settings.node.name == "n1"


def test_a_host_name_in_capitals_is_a_node_name():
    assert parsed("version: 1\n", hostname="N1.Example").settings.node.name == "n1.example"


def test_a_host_name_that_no_node_can_have_is_told_where_to_be_mended():
    (only,) = complaints("version: 1\n", hostname="my_host")

    assert only.startswith("host name: node.name: is 'my_host'")


def test_six_hundred_nodes_and_two_exceptions_are_one_file():
    text = "version: 1\nnodes:\n  n7: {logging: {level: debug}}\n  n9: {node: {weight: 2.0}}\n"
    levels = [parsed(text, node=f"n{n}").settings.logging.level.value for n in range(60)]

    assert levels.count("debug") == 1


def test_preset_timings_stand_above_defaults_and_below_everything_written():
    loaded = parsed("version: 1\ngossip: {preset: fast, probe_interval: 400ms}\n")

    assert loaded.settings.gossip.probe_interval == 0.4
    assert loaded.settings.gossip.watch_interval == 0.05
    assert loaded.provenance.winner(("gossip", "watch_interval")).layer == "preset fast"
