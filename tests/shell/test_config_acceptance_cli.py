"""The thread by number: the commands, and reloads that need no daemon."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from agent.cli.config_words import change_lines
from agent.cli.group import wayout
from config.load import load
from config.report import Result
from config.schema.option import Modifiability
from config.schema.table import OPTIONS
from config.transaction import Reloader
from support.settings import Part

ROOT = Path(__file__).parents[2]
OLD = "# ours\ngossip: {join: [192.0.2.11]}  # two\n"
MISTAKES = {
    "gossip: {probe_timout: 1s}": "did you mean",
    "egres:": "did you mean",
    "gossip: {probe_interval: 5}": "write 5ms or 5s",
    "node: {eligible: yes}": "write true",
    "gossip: {seeds: a}": "write a list",
    "gossip: {bind_port: '80'}": "without quotes",
    "egress: {removal_guard: 50}": "write 50%",
    "egress: {failback: never ever}": "write",
    "egress: {egresses: {a: {egressIP: 192.0.2.1}}}": "egress_ip",
    "egress: {egresses: {a: {egress_ip: 192.0.2.1/24}}}": "write 192.0.2.1",
    "egress: {egresses: {a: {egress_ip: 192.0.2.256}}}": "above 255",
    "egress: {egresses: {a: 192.0.2.1}}": "egress_ip: 192.0.2.1",
    "egress: {egresses: [a]}": "write a map by name",
    "node: {name: A_B}": "for example a-b",
    "gossip: {encryption: required}": "keyring_file",
    "gossip: {probe_timeout: 1s}": "write at most",
    "nodes: {n1: {gossip: {fanout: 3}}}": "the file that all nodes share",
    "groups: [{name: g, match: {}, set: {api: {socket: /x}}}]": "that host's own file",
    "gossip: {encrypt_key: abc}": "keyring_file",
    "logging: {level: &x debug}": "remove it",
    "egress: {lease: 1:30}": "write 1m30s",
    "kind: Egress": "Kubernetes",
}


def run(*words, environ=None):
    arguments = ["config", *map(str, words)]
    return CliRunner().invoke(wayout, arguments, env=environ, catch_exceptions=False)


@pytest.fixture
def main(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("version: 1\nnode: {name: n1}\n")
    return path


async def test_t05_a_trial_tells_each_path_with_old_new_class_and_who_acts_on_it(main):
    reloader = Reloader(main, load(main, environ={}), environ={})
    part = Part("gossip", ["gossip"])
    reloader.subscribe(part)
    main.write_text("version: 1\nnode: {name: n1}\ngossip: {fanout: 5, bind_port: 8000}\n")

    report = await reloader.reload("test", dry_run=True)

    rows = {each["path"]: each for each in report.to_document()["changes"]}
    assert [rows["gossip.fanout"][key] for key in ("old", "new", "class")] == [3, 5, "dynamic"]
    assert rows["gossip.bind_port"]["class"] == "static"
    assert rows["gossip.fanout"]["subscribers"] == ["gossip"]
    assert rows["gossip.bind_port"]["subscribers"] == []
    assert [*change_lines(rows.values())] == [
        "~ gossip.fanout: 3 -> 5 (dynamic: gossip)",
        "~ gossip.bind_port: 7955 -> 8000 (static)",
    ]
    assert part.steps == []
    assert reloader.settings.gossip.fanout == 3


def test_t08_the_check_of_all_nodes_tells_who_has_which_value(main):
    nodes = "".join(f"  n{n}: {{node: {{weight: 1.0}}}}\n" for n in range(2, 600))
    main.write_text(
        f"version: 1\nnode: {{name: n1}}\nnodes:\n{nodes}  n600: {{logging: {{level: debug}}}}\n"
    )

    told = run("check", main, "--all-nodes", "--show", "logging.level").stdout.splitlines()

    assert [each.split()[:2] for each in told] == [["info", "599"], ["debug", "1"]]
    assert told[1].endswith("n600")


@pytest.mark.parametrize(
    "path",
    [p for p, x in OPTIONS.items() if x.option.modifiability is Modifiability.IMMUTABLE],
    ids=".".join,
)
async def test_t25_a_change_of_what_is_immutable_is_refused_with_a_procedure(main, path):
    reloader = Reloader(main, load(main, environ={}), environ={})
    value = "serf" if path[-1] == "delegate_version" else "other"
    rows = {"version": 1, "node": {"name": "n1"}}
    rows.setdefault(path[0], {})[path[1]] = value
    main.write_text(json.dumps(rows))

    report = await reloader.reload("test")

    assert report.result is Result.REJECTED
    assert "stop all nodes first" in report.problems[0].hint


@pytest.mark.parametrize("name", ["dir", "runtime_dir"])
async def test_t32_another_folder_waits_for_a_restart_with_a_reason(main, name):
    reloader = Reloader(main, load(main, environ={}), environ={})
    main.write_text(f"version: 1\nnode: {{name: n1}}\nstate: {{{name}: /srv/x}}\n")

    report = await reloader.reload("test")

    assert [(each.path, bool(each.reason)) for each in report.pending_restart] == [
        (f"state.{name}", True)
    ]


@pytest.mark.parametrize("line", MISTAKES)
def test_t42_a_typical_mistake_is_told_with_its_place_and_its_mending(main, line):
    main.write_text(f"version: 1\n{line}\n")

    result = run("check", main)

    assert result.exit_code == 2
    told = result.stderr.splitlines()[0]
    assert told.startswith(f"wayout: error: {main}:2:")
    assert MISTAKES[line] in told


def test_t42_there_are_at_least_twenty():
    assert len(MISTAKES) >= 20


def test_t43_no_manifest_asks_for_custom_resources():
    for path in (ROOT / "deploy" / "kubernetes").glob("*.yaml"):
        for each in yaml.safe_load_all(path.read_text()):
            assert "CustomResourceDefinition" not in json.dumps(each)
            assert "customresourcedefinitions" not in json.dumps(each)


def test_t44_no_role_may_do_more_to_nodes_than_read():
    for path in (ROOT / "deploy" / "kubernetes").glob("*.yaml"):
        for each in yaml.safe_load_all(path.read_text()):
            for rule in (each or {}).get("rules") or ():
                if "nodes" in rule["resources"]:
                    assert set(rule["verbs"]) <= {"get", "list", "watch"}


def test_t46_the_first_file_is_written_with_its_schema_and_checks_clean(tmp_path):
    path = tmp_path / "new" / "config.yaml"

    assert run("init", path).exit_code == 0
    assert run("check", path, "--strict").exit_code == 0
    assert json.loads(path.with_name("wayout.schema.json").read_text())["required"] == ["version"]
    assert run("init", path).exit_code == 2


def test_t47_the_entry_of_the_image_is_the_program_itself():
    rows = (ROOT / "Dockerfile").read_text().splitlines()

    assert 'ENTRYPOINT ["wayout"]' in rows
    assert not [each for each in rows if "/etc/wayout" in each and each.startswith("RUN")]


def test_t49_what_is_shown_checks_clean_and_does_not_differ(main, tmp_path):
    shown = tmp_path / "shown.yaml"
    told = run("show", "--configured", "--config", main, "--socket", tmp_path / "none").stdout
    shown.write_text(told)

    assert run("check", shown, "--strict").exit_code == 0
    differs = run("diff", "--config", main, "--file", shown, "--socket", tmp_path / "none")
    assert (differs.exit_code, differs.stdout) == (0, "")


def test_an_old_file_is_shown_as_it_would_be_and_left_alone(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(OLD)

    told = run("migrate", path)

    assert told.exit_code == 0
    assert "+gossip: {seeds: [192.0.2.11]}  # two" in told.stdout
    assert path.read_text() == OLD


def test_an_old_file_is_replaced_when_that_is_said_and_kept_beside(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(OLD)
    path.chmod(0o640)

    assert run("migrate", path, "--write").exit_code == 0

    assert path.read_text() == "# ours\nversion: 1\ngossip: {seeds: [192.0.2.11]}  # two\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "config.yaml.v0.bak").read_text() == OLD
    assert "nothing to do" in run("migrate", path, "--write").stdout


def test_an_old_file_with_a_mistake_is_not_replaced(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(OLD + "egress: {lease: 5}\n")

    told = run("migrate", path, "--write")

    assert told.exit_code == 2
    assert "egress.lease" in told.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["config.yaml"]


def test_the_sums_behind_an_option_are_told(main, tmp_path):
    words = ("explain", "gossip.suspicion_mult", "--config", main, "--members", "100")

    told = run(*words, "--socket", tmp_path / "none").stdout
    assert "4 x max(1, log10 of 100 nodes) 2 x probe_interval 500ms = 4s" in told
