"""`wayout plan`: offline from a file, or from the picture of a daemon."""

import json

import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from agent.cli.group import wayout
from support.desk import FakeDesk
from support.served import served

FILE = """
version: 1
egress:
  egresses:
    billing: {egress_ip: 192.0.2.40}
    partner: {egress_ip: 192.0.2.41}
    dual: {egress_ips: [192.0.2.42, "2001:db8::42"]}
    rack: {egress_ip: 192.0.2.43, node_selector: {match_labels: {rack: r1}}}
nodes:
  a: {node: {labels: {rack: r1}}}
"""
NOBODY = ["--socket", "/nonexistent/a.sock"]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "new.yaml"
    path.write_text(FILE)
    return str(path)


@pytest.fixture
def desk():
    return FakeDesk()


@pytest.fixture
def daemon(tmp_path, desk):
    with capture_logs(), served(tmp_path / "admin.sock", desk) as path:
        yield str(path)


def run(*arguments):
    return CliRunner().invoke(wayout, ["plan", *arguments])


def told(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_offline_the_members_are_those_that_are_named(file, tmp_path):
    names = tmp_path / "names"
    names.write_text("b\nc\n")

    found = told("--file", file, "--with", "a", "--nodes-file", str(names), *NOBODY)

    assert set(found) == {"moves", "unassigned", "load"}
    assert set(found["load"]) == {"a", "b", "c"}
    assert sum(found["load"].values()) == 5
    assert {each["from"] for each in found["moves"]} == {None}
    assert {each["reason"] for each in found["moves"]} == {"start"}
    dual = {each["to"] for each in found["moves"] if each["name"] == "dual"}
    assert len(dual) == 1


def test_each_member_reads_the_file_as_itself(file):
    found = told("--file", file, "--with", "b", "--with", "c", *NOBODY)

    assert found["unassigned"] == [
        {"ip": "192.0.2.43", "name": "rack", "reason": "no_eligible_node"}
    ]
    owners = {
        each["ip"]: each["to"] for each in told("--file", file, "--with", "a", *NOBODY)["moves"]
    }
    assert owners["192.0.2.43"] == "a"


def test_offline_without_a_node_only_its_own_addresses_move(file):
    everybody = ["--with", "a", "--with", "b", "--with", "c"]
    start = told("--file", file, *everybody, *NOBODY)
    lost = {each["ip"] for each in start["moves"] if each["to"] == "c"}

    found = told("--file", file, *everybody, "--without", "c", *NOBODY)

    assert {each["ip"] for each in found["moves"] if each["from"] == "c"} == lost
    assert {each["reason"] for each in found["moves"]} == {"node_left"}
    assert "c" not in found["load"]


def test_every_problem_of_the_file_is_told_as_config_check_does(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\negres: {}\nnode: {weight: -1}\n")
    checked = CliRunner().invoke(wayout, ["config", "check", str(bad)])

    for arguments in ([], ["--with", "a"]):
        result = run("--file", str(bad), *arguments, *NOBODY)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == checked.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], 1, "no daemon at /nonexistent/a.sock"),
        (["--offline"], 2, "name it with --file"),
        (["--file", "FILE"], 2, "name them with --with or --nodes-file"),
        (["--file", "FILE", "--with", "a", "--without", "z"], 2, "there is no member 'z'"),
        (["--file", "FILE", "--nodes-file", "/nonexistent/names"], 1, "one name a line"),
    ],
)
def test_what_is_missing_is_said(file, arguments, code, says):
    result = run(*[file if each == "FILE" else each for each in arguments], *NOBODY)

    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_daemon_knows_members_and_claims(daemon):
    assert told("--socket", daemon)["moves"] == []

    found = told("--without", "n1", "--socket", daemon)

    assert [(each["from"], each["to"], each["reason"]) for each in found["moves"]] == [
        ("n1", "n2", "node_left")
    ]
    assert found["load"] == {"n2": 2}


def test_a_member_that_comes_gets_its_share_once_it_has_been_well(daemon, desk):
    desk.more_egresses(30)

    found = told("--with", "n9", "--socket", daemon)

    assert {each["to"] for each in found["moves"]} == {"n9"}
    assert {each["reason"] for each in found["moves"]} == {"failback"}
    assert 5 <= found["load"]["n9"] <= 14


def test_another_file_moves_what_it_names_and_drops_what_it_does_not(daemon, file):
    found = told("--file", file, "--socket", daemon)

    moves = {each["ip"]: each for each in found["moves"]}
    assert moves["192.0.2.99"] == {
        "ip": "192.0.2.99",
        "name": "other",
        "from": "n2",
        "to": None,
        "reason": "config",
    }
    assert "192.0.2.40" not in moves
    assert moves["192.0.2.41"]["from"] is None
    assert [each["name"] for each in found["unassigned"]] == ["rack"]


def test_offline_says_no_to_a_daemon_that_is_there(daemon, file):
    found = told("--offline", "--file", file, "--with", "a", "--socket", daemon)

    assert set(found["load"]) == {"a"}


def test_people_get_tables_and_a_sentence(file):
    result = run("--file", file, "--with", "a", "--with", "b", *NOBODY)

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["IP", "NAME", "FROM", "TO", "REASON"]
    assert lines[-1] == "5 of 5 IPs move"
    assert "NODE  NOW  THEN" in result.stdout
