"""The commands as people and scripts type them, against an admin socket that answers."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from agent import release
from agent.cli.group import COMMANDS, wayout
from agent.cli.tables import age, span, word
from support.desk import FakeDesk
from support.served import served

STARTED_IN = 3.0
"""How much more than loading its command line library `wayout --help` may take."""


@pytest.fixture
def desk():
    return FakeDesk()


@pytest.fixture
def daemon(tmp_path, desk):
    with capture_logs(), served(tmp_path / "admin.sock", desk) as path:
        yield str(path)


def run(*arguments, env=None):
    return CliRunner().invoke(wayout, [*arguments], env=env)


def told(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["status"], lambda desk: desk.status()),
        (["members"], lambda desk: desk.members()),
        (["egress", "list"], lambda desk: desk.egress_list()),
        (["history"], lambda desk: desk.history(1000)),
        (["history", "--limit", "1"], lambda desk: desk.history(1)),
        (["egress", "show", "billing"], lambda desk: desk.egress_list()[:2]),
        (["egress", "explain", "192.0.2.41"], lambda desk: desk.egress_explain("partner")),
    ],
)
def test_json_is_the_document_of_the_contract(daemon, desk, command, expected):
    assert told(run(*command, "--json", "--socket", daemon)) == expected(desk)


def test_the_socket_is_named_by_option_before_or_after_or_by_the_environment(daemon, desk):
    expected = desk.status()

    assert told(run("--socket", daemon, "status", "--json")) == expected
    assert told(run("status", "--json", "--socket", daemon)) == expected
    assert told(run("status", "--json", env={"WAYOUT_SOCKET": daemon})) == expected


def test_status_is_ten_lines_for_people(daemon):
    lines = run("status", "--socket", daemon).stdout.splitlines()

    assert len(lines) <= 10
    assert lines[0] == "node        n1 (192.0.2.11), cluster wayout"
    assert "up 1d2h" in lines[1]
    assert "members     2 alive, 1 suspect, 0 dead, 0 left" in lines
    assert "addresses   2 of 3 here, 0 unassigned, 1 in conflict" in lines


def test_status_tells_the_last_failover(daemon, desk):
    shown = run("status", "--socket", daemon).stdout
    desk.moves.clear()
    nothing = run("status", "--socket", daemon).stdout

    assert "failover    192.0.2.41 from n2 to n1 " in shown
    assert ", node_dead, took 565 ms" in shown
    assert "failover    none yet" in nothing


def test_history_shows_cause_and_milliseconds_of_each_phase(daemon):
    titles, _, row = run("history", "--socket", daemon).stdout.splitlines()

    assert titles.endswith("CAUSE      DETECT  ELECT  CHECK  BIND  ANNOUNCE  TOTAL")
    assert "192.0.2.41  billing  n2    n1  node_dead  410ms   -      150ms  4ms   1ms" in row


def test_history_follows_what_comes(daemon, desk):
    command = [sys.executable, "-I", "-m", "agent", "history", "--follow", "--json"]
    with subprocess.Popen(
        [*command, "--socket", daemon], stdout=subprocess.PIPE, text=True
    ) as following:
        told = [json.loads(following.stdout.readline()) for _ in range(2)]
        desk.moves.append({**desk.moves[0], "ip": "192.0.2.99"})
        told.append(json.loads(following.stdout.readline()))
        following.send_signal(signal.SIGINT)
        assert following.wait(timeout=10) == 0

    assert told == desk.moves


def test_a_table_in_a_pipe_has_one_line_for_each_row_whatever_its_width(daemon, desk):
    desk.rows[2]["reason"] = "somebody with a very long story, " * 10

    lines = run("egress", "list", "--socket", daemon).stdout.splitlines()

    assert len(lines) == 4
    assert lines[0].split()[:5] == ["NAME", "IP", "OWNER", "STANDBY", "STATE"]
    assert lines[1].split()[:4] == ["billing", "192.0.2.40", "n1", "*"]
    assert "conflict: somebody" in lines[3]


def test_members_show_state_and_reasons(daemon):
    lines = run("members", "--socket", daemon).stdout.splitlines()

    assert lines[1].split()[:4] == ["n1", "*", "192.0.2.59:7955", "alive"]
    assert "suspect" in lines[2]
    assert "no_carrier" in lines[3]


def test_explain_shows_the_rule_and_every_candidate(daemon):
    text = run("egress", "explain", "billing", "--socket", daemon).stdout

    assert "rule   sticky" in text
    assert "NAME  ELIGIBLE  SCORE  REASONS" in text
    assert "n3    no        0.1    no_carrier" in text


def test_names_from_elsewhere_are_not_taken_for_markup(daemon, desk):
    desk.rows[0]["standby"] = "[red]n9[/red]"

    assert "[red]n9[/red]" in run("egress", "list", "--socket", daemon).stdout


def test_drain_and_undrain_act_on_the_daemon_that_is_asked(daemon, desk):
    assert run("drain", "--for", "30m", "--wait", "--socket", daemon).stdout == (
        "drained, nothing is carried here, for 30m\n"
    )
    assert (desk.draining, desk.drain_seconds) == (True, 1800.0)
    assert "state       draining, 30m to go" in run("status", "--socket", daemon).stdout

    assert run("drain", "--socket", daemon).stdout == (
        "draining, 2 IPs are still here, until 'wayout undrain'\n"
    )

    assert told(run("undrain", "--json", "--socket", daemon))["draining"] is False
    assert not desk.draining


def test_a_restart_is_prepared_for_thirty_seconds_or_as_long_as_said(daemon, desk):
    shown = run("restart-prepare", "--socket", daemon).stdout
    assert desk.restart_seconds == 30.0
    assert shown == "a stop within 30s keeps the addresses, for 30s from then on\n"

    assert told(run("restart-prepare", "--for", "2m", "--json", "--socket", daemon)) == {
        "seconds": 120.0,
        "kept_seconds": 30.0,
    }
    assert run("restart-prepare", "--for", "0s", "--socket", daemon).exit_code == 0
    refused = run("restart-prepare", "--for", "1h", "--socket", daemon)
    assert (refused.exit_code, desk.restart_seconds) == (2, 0.0)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["stauts"], 2, "there is no command 'stauts', did you mean 'status'?"),
        (["frobnicate"], 2, "'wayout --help' lists all"),
        (["status", "--nope"], 2, "No such option '--nope', see 'wayout status --help'"),
        (["egress", "show"], 2, "Missing argument 'NAME', see 'wayout egress show --help'"),
        (["drain", "--for", "soon"], 2, "see 'wayout drain --help'"),
        (["status", "--socket", "/nonexistent/a.sock"], 1, "no daemon at /nonexistent/a.sock"),
        (["members", "--json", "--socket", "/nonexistent/a.sock"], 1, "start it"),
    ],
)
def test_an_error_is_one_line_that_says_what_to_do(arguments, code, says):
    result = run(*arguments)

    assert result.exit_code == code
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("wayout: error: ")
    assert says in line


def test_what_the_daemon_refuses_ends_with_its_code(daemon):
    result = run("egress", "explain", "nothing", "--socket", daemon)

    assert result.exit_code == 2
    assert "there is no egress 'nothing', 'wayout egress list' shows all" in result.stderr


def test_every_command_of_this_installation_has_its_help():
    listed = run("--help").stdout

    for name, (_, summary) in COMMANDS.items():
        if name in listed:
            assert f"  {name} " in listed
            assert summary in listed
            assert run(name, "--help").exit_code == 0


def test_a_family_that_is_not_installed_is_not_offered(monkeypatch):
    monkeypatch.setitem(COMMANDS, "fly", ("agent.cli.wings:fly", "Fly."))

    assert "fly" not in run("--help").stdout
    assert run("fly").exit_code == 2


def test_version_needs_no_daemon():
    assert told(run("version", "--json")) == {
        "version": release.VERSION,
        "protocol": release.PROTOCOL,
        "build": "source",
    }
    assert run("--version").stdout == f"wayout {release.VERSION}\n"


def test_an_invalid_configuration_ends_the_daemon_with_78_and_every_problem(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("version: 1\nnode: {weight: heavy}\ngossip: {sedes: []}\n")

    result = run("run", "--config", str(config))

    assert result.exit_code == 78
    lines = result.stderr.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"wayout: error: {config}:") for line in lines)


def test_a_wrong_override_is_an_invalid_configuration_too(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("version: 1\n")

    result = run("run", "--config", str(config), "--set", "logging.level=loud")

    assert result.exit_code == 78
    assert "loud" in result.stderr


def process(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "agent", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_a_real_process_asks_a_real_socket(daemon, desk):
    with process("members", "--json", "--socket", daemon) as command:
        out, err = command.communicate(timeout=30)

    assert (command.returncode, err) == (0, "")
    assert json.loads(out) == desk.members()


@pytest.mark.slow
def test_watching_repeats_until_interrupted_and_is_no_failure(daemon):
    with process("members", "--watch", "--json", "--socket", daemon) as command:
        first, second = command.stdout.readline(), command.stdout.readline()
        command.send_signal(signal.SIGINT)
        assert command.wait(30) == 0

    assert json.loads(first) == json.loads(second)


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_traceback(daemon):
    with process("members", "--watch", "--json", "--socket", daemon) as command:
        command.stdout.readline()
        command.stdout.close()
        assert command.wait(30) == 1
        assert "Traceback" not in command.stderr.read()


def test_a_command_dies_with_its_terminal(daemon):
    with process("members", "--watch", "--json", "--socket", daemon) as command:
        command.stdout.readline()
        command.send_signal(signal.SIGHUP)
        assert command.wait(30) == -signal.SIGHUP


def test_a_hang_up_during_the_start_does_not_kill_the_daemon(tmp_path):
    """`run` with a slow configuration source (a FIFO), and a SIGHUP while it waits for it."""
    fifo = tmp_path / "config.yaml"
    os.mkfifo(fifo)
    with process("run", "--config", str(fifo)) as command:
        deadline = time.monotonic() + 30
        while not _holds_hang_up(command.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        command.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        alive = command.poll() is None or command.returncode == 78
        command.kill()

    assert alive


def _holds_hang_up(pid):
    try:
        with Path(f"/proc/{pid}/status").open() as status:
            masks = dict(line.split(":\t") for line in status if line.startswith("SigBlk"))
    except FileNotFoundError:
        return False
    return bool(int(masks["SigBlk"], 16) & 1 << (signal.SIGHUP - 1))


@pytest.mark.parametrize("arguments", [["--help"], ["version"], ["run", "--help"], ["status"]])
def test_short_commands_load_nothing_that_makes_them_slow(arguments):
    heavy = {"aiohttp", "asyncio", "pydantic", "prometheus_client", "pyroute2", "rich", "structlog"}
    code = (
        "import sys; sys.argv = ['wayout', *sys.argv[1:]]\n"
        "from agent.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print('loaded', sorted({heavy!r} & set(sys.modules)))\n"
    )
    command = [
        sys.executable,
        "-c",
        code,
        *arguments,
        *(["--socket", "/x"][: 2 * (arguments == ["status"])]),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "loaded []"


@pytest.mark.slow
def test_help_is_there_at_once():
    """In processor time, against what loading the command line library alone takes here."""

    def once(*words):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    bare = min(once("-c", "import click") for _ in range(3))
    assert min(once("-m", "agent", "--help") for _ in range(3)) < STARTED_IN * bare


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0s"), (9.96, "10.0s"), (12, "12s"), (192, "3m12s"), (3600, "1h"), (187200, "2d4h")],
)
def test_a_span_is_told_in_its_two_largest_units(seconds, text):
    assert span(seconds) == text


def test_an_age_is_told_and_nonsense_is_passed_on():
    assert age((datetime.now(UTC) - timedelta(minutes=5)).isoformat()) in {"5m", "5m1s"}
    assert age(None) == "-"
    assert age("soon") == "soon"


def test_values_become_words():
    assert word([]) == word(None) == word({}) == "-"
    assert word({"a": True, "b": [1, "x"]}) == "a=yes, b=1, x"
