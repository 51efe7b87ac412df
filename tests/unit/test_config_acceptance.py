"""What the operators of the thread asked for, by number: settings, layers, schema, migration.

Those that need a running daemon are in tests/shell.
"""

import json
from pathlib import Path
from random import Random

import jsonschema
import pytest

from agent.sums import sums
from config.changes import diff
from config.crd import definition
from config.documents import Text
from config.json_schema import json_schema
from config.load import load
from config.parse import Reader, Surroundings, parse
from config.problems import ConfigError
from config.reference import options, template
from config.remote import Reach, RemoteLayer, Standing
from config.render import text
from config.schema.option import Modifiability, Scope
from config.schema.table import ANY, OPTIONS
from config.yaml import SIZE_MAX
from support.annotation_source import AnnotationSource
from support.settings import complaints, parsed

ROOT = Path(__file__).parents[2]
RACK = "interfaces: {default: bond7}\nnode: {max_addresses: 3}\n"
ONE = "wayout/wayout-rack7"


def corpus(count=50, seed=11):
    """Good files and files that were hurt, in turn."""
    rng = Random(seed)
    whole = template()
    for number in range(count):
        body = f"version: 1\ngossip: {{fanout: {1 + number % 8}}}\n" if number % 3 else whole
        if number % 2:
            cut = rng.randrange(len(body))
            body = body[:cut] + rng.choice(["\t", "[", "zz", ": ", "1"]) + body[cut + 1 :]
        yield body


def fleet():
    """600 nodes in ten racks with three exceptions, in one file; (text, names)."""
    names = [f"r{rack:02}-n{n:02}" for rack in range(10) for n in range(60)]
    rows = ["version: 1", "groups:"]
    for rack in range(10):
        rows.append(f"  - name: rack{rack}")
        rows.append(f'    match: {{names: ["r{rack:02}-*"]}}')
        rows.append(f"    set: {{interfaces: {{default: bond{rack}}}}}")
    rows += ["nodes:", "  r03-n07: {logging: {level: debug}}"]
    rows += ["  r04-n01: {node: {eligible: false}}", "  r05-n05: {node: {weight: 2.0}}"]
    return "\n".join(rows) + "\n", names


def as_each(body, names):
    reader = Reader([Text("config.yaml", body.encode())])
    return {name: reader.judge(Surroundings(node=name)).settings for name in names}


def test_t02_values_come_from_files_alone_when_the_environment_is_silent():
    loaded = parsed("version: 1\ngossip: {fanout: 4}\n", dropins=[("conf.d/a.yaml", RACK)])
    told = text(loaded.settings, origins=loaded.provenance, changed_only=True)

    origins = {line.split("  # ")[1] for line in told.splitlines() if "  # " in line}
    assert {each.split(":")[0] for each in origins} == {"config.yaml", "conf.d/a.yaml", "host name"}


def test_t06_the_check_and_the_daemon_judge_fifty_files_alike(tmp_path):
    path = tmp_path / "config.yaml"
    verdicts = set()
    for body in corpus():
        path.write_text(body)
        told = []
        for read in (
            lambda: load(path, environ={}).warnings,
            lambda: (
                Reader([Text(str(path), path.read_bytes())])
                .judge(Surroundings(hostname="n1"))
                .warnings
            ),
        ):
            try:
                told.append(("good", [str(each) for each in read()]))
            except ConfigError as error:
                told.append(("bad", [str(each) for each in error.problems]))
        assert told[0] == told[1]
        verdicts.add(told[0][0])
    assert verdicts == {"good", "bad"}


def test_t07_nodes_with_one_file_agree_about_the_cluster_and_differ_in_themselves():
    found = [parsed("version: 1\n", node=name).digests for name in ("a", "b", "c")]

    assert len({each.cluster for each in found}) == 1
    assert len({each.node for each in found}) == 3


def test_t08_one_of_600_nodes_logs_more():
    body, names = fleet()
    levels = {name: each.logging.level.value for name, each in as_each(body, names).items()}

    assert [name for name, level in levels.items() if level == "debug"] == ["r03-n07"]


def test_t09_one_manifest_and_three_nodes_are_three_configurations():
    source = AnnotationSource()
    source.objects["wayout", "wayout-rack7"] = {"config.yaml": RACK}
    source.nodes["b"] = ONE
    body = "version: 1\nnodes: {c: {logging: {level: debug}}}\n"
    read = {}
    for name in "abc":
        remote = RemoteLayer().look(source, name, 0.0).text
        read[name] = parsed(body, node=name, remote=remote).settings

    assert [each.node.max_addresses for each in read.values()] == [0, 3, 0]
    assert [each.logging.level.value for each in read.values()] == ["info", "info", "debug"]


def test_t11_six_hundred_nodes_and_two_exceptions_are_three_objects():
    source = AnnotationSource()
    names = [f"n{number}" for number in range(600)]
    for name in names[:2]:
        source.nodes[name] = f"wayout-{name}"
        source.objects["wayout", f"wayout-{name}"] = {"config.yaml": "logging: {level: debug}\n"}
    shared = 1
    reader = Reader([Text("config.yaml", b"version: 1\n")])
    debugging = 0
    for name in names:
        remote = RemoteLayer().look(source, name, 0.0).text
        read = reader.judge(Surroundings(node=name, remote=remote)).settings
        debugging += read.logging.level.value == "debug"

    assert (shared + len(source.objects), debugging) == (3, 2)


@pytest.mark.parametrize("where", ["main", "group", "node", "annotation"])
def test_t12_a_secret_is_taken_from_no_layer_and_repeated_by_none(where):
    key = "q83vASNFZ4mrze8BI0VniQ=="
    line = f"gossip: {{keyring_file: {key}}}\n"
    body, remote = "version: 1\n", None
    match where:
        case "main":
            body += line
        case "group":
            body += f"groups: [{{name: g, match: {{}}, set: {{{line.strip()}}}}}]\n"
        case "node":
            body += f"nodes: {{n1: {{{line.strip()}}}}}\n"
        case _:
            remote = Text("configmap", line.encode())
    told = complaints(body, remote=remote)

    assert told
    assert key not in "\n".join(told)


def test_t12_the_keys_of_other_nodes_are_not_part_of_a_configuration():
    source = AnnotationSource()
    source.objects["wayout", "wayout-nodes"] = {"n1": RACK, "n2": "not: [yaml"}
    source.nodes["n1"] = "wayout-nodes#n1"

    remote = RemoteLayer().look(source, "n1", 0.0).text

    assert parsed("version: 1\n", remote=remote).settings.node.max_addresses == 3


def test_t12_a_shared_object_that_is_nearly_full_is_told():
    source = AnnotationSource()
    source.nodes["n1"] = "wayout-nodes"
    for size, words in ((SIZE_MAX // 2, False), (SIZE_MAX * 9 // 10, True)):
        source.objects["wayout", "wayout-nodes"] = {"config.yaml": "#" * size}
        assert bool(RemoteLayer().look(source, "n1", 0.0).warning) is words


def test_t13_a_file_a_dropin_and_an_annotation_say_the_same_in_the_same_words():
    whole = f"version: 1\n{RACK}"
    file = parsed(whole)
    dropin = parsed("version: 1\n", dropins=[("conf.d/a.yaml", RACK)])
    annotated = parsed("version: 1\n", remote=Text("configmap wayout/x", whole.encode()))

    assert file.settings == dropin.settings == annotated.settings
    assert file.digests.node == dropin.digests.node == annotated.digests.node


def test_t15_no_option_waits_for_a_restart_without_a_reason_and_three_quarters_never_do():
    live = [x for x in OPTIONS.values() if x.option.modifiability.value in ("dynamic", "rebind")]

    assert [
        path for path, x in OPTIONS.items() if x not in live and not x.option.restart_reason
    ] == []
    assert len(live) / len(OPTIONS) >= 0.75


def test_t16_what_the_cluster_shares_cannot_be_set_for_one_node():
    told = complaints("version: 1\nnodes:\n  n1:\n    gossip: {suspicion_mult: 5}\n")

    assert told == [
        "config.yaml:4:30: nodes.n1.gossip.suspicion_mult: must be the same on every node, "
        "so one node cannot set it, set it in the file that all nodes share"
    ]


def test_t17_without_any_layer_for_some_nodes_nothing_is_missing():
    loaded = parsed(template())

    ranks = {each.rank.value for each in loaded.provenance.layers}
    assert ranks <= {"main file", "host"}
    assert not loaded.warnings


def test_t18_the_list_of_what_may_differ_is_the_schema_itself():
    schema = json_schema()["$defs"]
    # Below a name that the operator chooses (health.checks) the section is offered as a whole.
    table = {x.path[:2] for scope in (Scope.GROUP, Scope.NODE) for x in options(scope)}
    offered = {
        (section, name)
        for section, reference in schema["SettingsOfSome"]["properties"].items()
        for name in schema[reference["$ref"].split("/")[-1]]["properties"]
    }

    assert offered == table


def test_t20_an_annotation_is_applied_changed_and_removed():
    source, layer = AnnotationSource(), RemoteLayer()
    source.objects["wayout", "wayout-rack7"] = {
        "config.yaml": RACK,
        "other": "node: {weight: 2.0}\n",
    }

    def weight_and_limit():
        remote = layer.look(source, "n1", 0.0).text
        node = parsed("version: 1\nnode: {max_addresses: 9}\n", remote=remote).settings.node
        return node.weight, node.max_addresses

    seen = [weight_and_limit()]
    for said in (ONE, ONE + "#other", None):
        source.nodes["n1"] = said
        seen.append(weight_and_limit())

    assert seen == [(1.0, 9), (1.0, 3), (2.0, 9), (1.0, 9)]


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("wayout-a", "configmap wayout/wayout-a#config.yaml"),
        ("wayout/wayout-a", "configmap wayout/wayout-a#config.yaml"),
        ("wayout-a#n1", "configmap wayout/wayout-a#n1"),
        ("wayout/wayout-a.b#x.yaml", "configmap wayout/wayout-a.b#x.yaml"),
        ("", None),
        ("  ", None),
        ("other/wayout-a", None),
        ("a/b/c", None),
        ("secrets", None),
        ("Wayout-A", None),
        ("wayout-a#", None),
        ("wayout-a#../x", None),
        ("wayout-" + "a" * 300, None),
    ],
)
def test_t21_an_annotation_is_understood_or_refused_with_what_to_write(said, wanted):
    if wanted is None:
        with pytest.raises(ConfigError) as caught:
            Reach().reference(said)
        (problem,) = caught.value.problems
        assert problem.hint
    else:
        assert str(Reach().reference(said)) == wanted


def test_t21_other_namespaces_only_if_they_are_allowed():
    assert Reach(others=True).reference("other/wayout-a").namespace == "other"


def test_t21_a_bad_annotation_leaves_what_was_taken_before():
    source, layer = AnnotationSource(), RemoteLayer()
    source.objects["wayout", "wayout-rack7"] = {"config.yaml": RACK}
    source.nodes["n1"] = ONE
    good = layer.look(source, "n1", 0.0)
    source.nodes["n1"] = "other/secrets"

    with pytest.raises(ConfigError):
        layer.look(source, "n1", 1.0)
    assert layer.last == good


def test_t23_the_resource_of_kubernetes_is_made_of_the_same_schema():
    golden = ROOT / "tests" / "vectors" / "config" / "egressnodeconfig.json"

    assert definition() == json.loads(golden.read_text())


def test_t23_the_resource_has_what_a_group_may_set_and_no_references():
    told = json.dumps(definition())
    version = definition()["spec"]["versions"][0]
    config = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["config"]

    assert "$ref" not in told
    assert "seeds" in config["properties"]["gossip"]["properties"]
    assert "fanout" not in config["properties"]["gossip"]["properties"]


def test_t24_every_option_has_one_scope():
    split = {scope: {x.path for x in options(scope)} for scope in Scope}

    assert sum(map(len, split.values())) == len(OPTIONS)
    assert all(split.values())


def test_t25_every_immutable_option_says_why_and_what_to_do():
    fixed = [x for x in OPTIONS.values() if x.option.modifiability is Modifiability.IMMUTABLE]

    assert fixed
    assert all(x.option.restart_reason and x.option.scope is Scope.CLUSTER for x in fixed)


def test_t34_a_timeout_above_its_interval_is_refused_with_both_places():
    (told,) = complaints("version: 1\ngossip:\n  probe_interval: 200ms\n  probe_timeout: 300ms\n")

    assert "config.yaml:4:18" in told
    assert "config.yaml:3:19" in told


def test_t35_addresses_of_nodes_differ_without_a_difference_of_the_cluster():
    one = parsed("version: 1\nnode: {address: 192.0.2.1}\n")
    other = parsed("version: 1\nnode: {address: 192.0.2.2}\n")

    assert one.digests.cluster == other.digests.cluster
    (change,) = diff(one.leaves, other.leaves)
    assert change.option.modifiability is Modifiability.STATIC


def test_t37_a_hundred_nodes_in_ten_racks_have_what_their_rack_has():
    names = [f"r{rack:02}-n{n}" for rack in range(10) for n in range(10)]
    read = as_each(fleet()[0], names)

    assert {n: s.interfaces.default for n, s in read.items()} == {
        name: f"bond{int(name[1:3])}" for name in names
    }


def test_t37_racks_that_overlap_are_told():
    body = fleet()[0].replace(
        "nodes:\n",
        "  - {name: odd, match: {names: ['r0*']}, set: {interfaces: {default: x0}}}\nnodes:\n",
    )
    reader = Reader([Text("config.yaml", body.encode())])

    (warning,) = reader.judge(Surroundings(node="r01-n01")).warnings
    assert "group rack1 sets it too, at config.yaml:" in str(warning)


def test_t45_an_object_of_a_rack_is_read_by_those_who_name_it():
    source = AnnotationSource()
    source.nodes = {"a": ONE, "b": ONE}
    layers = {name: RemoteLayer() for name in "abc"}

    def limits(value):
        source.objects["wayout", "wayout-rack7"] = {
            "config.yaml": f"node: {{max_addresses: {value}}}\n"
        }
        looks = {name: layer.look(source, name, 0.0).text for name, layer in layers.items()}
        return [
            parsed("version: 1\n", remote=x).settings.node.max_addresses for x in looks.values()
        ]

    assert limits(3) == [3, 3, 0]
    assert limits(4) == [4, 4, 0]


def test_t46_the_first_file_is_valid_and_says_what_it_is():
    loaded = parsed(template())

    assert not loaded.warnings
    assert template().count("#") > 50


def test_t48_a_layer_whose_source_is_away_is_kept_and_grows_old():
    source, layer = AnnotationSource(), RemoteLayer()
    source.nodes["n1"] = ONE
    source.objects["wayout", "wayout-rack7"] = {"config.yaml": RACK}
    good = layer.look(source, "n1", 10.0)
    source.down = "connection refused"
    kept = layer.look(source, "n1", 20.0)

    assert (kept.standing, kept.text, kept.reason) == (Standing.KEPT, good.text, source.down)
    assert layer.stale_seconds(70.0) == 60.0
    source.down = ""
    del source.objects["wayout", "wayout-rack7"]
    assert layer.look(source, "n1", 80.0).standing is Standing.KEPT
    source.objects["wayout", "wayout-rack7"] = {"config.yaml": ""}
    assert layer.look(source, "n1", 90.0).standing is Standing.CURRENT
    assert layer.stale_seconds(95.0) == 0.0


def test_t49_what_is_shown_is_the_same_configuration_again():
    body = (
        "version: 1\nnode: {name: n1, labels: {rack: r7}}\n"
        "gossip: {encryption: required, keyring_file: /etc/wayout/keys/gossip.keys}\n"
        "egress: {egresses: {a: {egress_ip: 192.0.2.40, priority: 3}}}\n"
    )
    first = parsed(body)
    again = parsed(text(first.settings))

    assert diff(first.leaves, again.leaves) == ()
    assert again.settings == first.settings


def mutants():
    """Each option with values of many kinds, as a document and as text."""
    values = [True, -1, 3, 0.5, "x y!", "1s", "50%", "192.0.2.7", [], ["192.0.2.7"], {}, None]
    for path in OPTIONS:
        if ANY in path or len(path) != 2:
            continue
        for value in values:
            document = {"version": 1, path[0]: {path[1]: value}}
            yield path, value, document


def test_t50_the_schema_refuses_nothing_that_the_check_takes():
    """The other way round there are ranges of durations and forms of addresses, in words alone."""
    editor = jsonschema.Draft202012Validator(json_schema())
    wrong, lenient, total = [], 0, 0
    for path, value, document in mutants():
        total += 1
        marked = not editor.is_valid(document)
        try:
            parse([Text("x", json.dumps(document).encode())], Surroundings(hostname="n1"))
            taken = True
        except ConfigError:
            taken = False
        if taken and marked:
            wrong.append((path, value))
        lenient += not taken and not marked
    assert wrong == []
    assert lenient < total / 5


def test_auto_values_are_told_with_their_sums():
    settings = parsed("version: 1\n").settings

    lines = sums(("gossip", "suspicion_mult"), settings, 100)
    assert lines[0].endswith("4 x max(1, log10 of 100 nodes) 2 x probe_interval 500ms = 4s")
    assert sums(("node", "name"), settings, 100) == ()
    expected = parsed("version: 1\ngossip: {expected_nodes: 1000, seeds: [192.0.2.1]}\n").settings
    assert "1000 nodes" in sums(("gossip", "suspicion_mult"), expected, 3)[0]
