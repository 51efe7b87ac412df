"""The commands `wayout config …` as an operator types them: output, complaints, exit codes."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from agent.admin import AdminServer
from agent.cli.group import wayout
from config.load import load
from config.transaction import Reloader
from config.triggers import Pace, Reloads
from support.settings import Part

GOOD = "version: 1\nnode: {name: n1}\negress: {egresses: {a: {egress_ip: 192.0.2.40}}}\n"


def run(*words):
    return CliRunner().invoke(wayout, ["config", *map(str, words)], catch_exceptions=False)


@pytest.fixture
def main(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(GOOD)
    return path


def test_a_valid_file_is_called_valid(main):
    result = run("check", main)

    assert (result.exit_code, result.stdout) == (0, f"{main}: valid\n")
    assert run("check", main, "--quiet").output == ""


def test_every_problem_is_a_line_on_stderr_and_the_exit_code_is_2(main):
    main.write_text(GOOD + "gossip: {probe_interval: 5, bind_port: x}\n")
    result = run("check", main, "--quiet")

    assert (result.exit_code, result.stdout) == (2, "")
    lines = result.stderr.splitlines()
    assert [each.startswith(f"wayout: error: {main}:4:") for each in lines] == [True, True]


def test_warnings_are_errors_when_strict(main):
    main.write_text(GOOD + "gossip: {expected_nodes: 3}\n")

    assert run("check", main).exit_code == 0
    assert "wayout: warning: " in run("check", main).stderr
    assert run("check", main, "--strict", "--quiet").exit_code == 2


def test_a_file_that_cannot_be_read_is_invalid_input(tmp_path):
    result = run("check", tmp_path / "none.yaml")

    assert result.exit_code == 2
    assert "does not exist" in result.stderr


def test_a_file_is_read_as_another_node_would_read_it(main):
    main.write_text(
        GOOD
        + "groups: [{name: g, match: {labels: {rack: r7}},"
        + " set: {interfaces: {default: veth0}}}]\n"
    )

    assert run("check", main, "--node", "n2").exit_code == 0
    result = run("check", main, "--node", "n2", "--labels", "rack=r7")
    assert (result.exit_code, "veth0" in result.stderr) == (2, True)
    assert run("check", main, "--labels", "rack").exit_code == 2


def test_a_mistake_that_only_one_node_meets_is_found_when_all_are_asked(main, tmp_path):
    names = tmp_path / "names"
    names.write_text("n2\nr07-n1\n")
    main.write_text(
        GOOD
        + "groups: [{name: g, match: {names: [r07-*]}, set: {interfaces: {default: veth0}}}]\n"
        + "nodes: {n3: {}}\n"
    )

    assert run("check", main, "--all-nodes").exit_code == 0
    assert "read as 2 nodes" in run("check", main, "--all-nodes").stdout
    result = run("check", main, "--all-nodes", names)
    assert (result.exit_code, result.stderr.count("veth0")) == (2, 1)
    assert run("check", main, "--all-nodes", tmp_path / "none").exit_code == 1


def test_a_first_file_is_written_once_and_is_valid(tmp_path):
    path = tmp_path / "etc" / "wayout" / "config.yaml"

    assert run("init", path).exit_code == 0
    assert run("check", path, "--strict").exit_code == 0
    assert run("init", path).exit_code == 2
    assert run("init", path, "--force").exit_code == 0
    assert run("init", "-").stdout == path.read_text()
    # No half-written file is left, and editors have their schema.
    files = sorted(each.name for each in path.parent.iterdir())
    assert files == ["config.yaml", "wayout.schema.json"]


def test_a_first_file_that_cannot_be_written_is_a_failure(tmp_path):
    (tmp_path / "file").write_text("")

    result = run("init", tmp_path / "file" / "config.yaml")

    assert result.exit_code == 1
    assert "cannot write" in result.stderr


def test_an_option_is_explained(main):
    result = run("explain", "node.name", "--config", main)

    assert result.exit_code == 0
    assert f"set by          {main} ({main}:2:14)" in result.stdout
    assert json.loads(run("explain", "node.name", "--json").stdout)["scope"] == "process"


def test_an_unknown_option_is_invalid_input():
    result = run("explain", "node.nam")

    assert result.exit_code == 2
    assert "did you mean node.name?" in result.stderr


def test_the_schema_is_printed_for_editors_and_for_people():
    assert json.loads(run("schema").stdout)["required"] == ["version"]
    assert "`egress.egresses.NAME.pin`" in run("schema", "--markdown").stdout
    assert "gossip.fanout" not in run("schema", "--scope", "node").stdout


def test_what_is_configured_can_be_shown_and_compared_without_a_daemon(main, tmp_path):
    nobody = ("--socket", tmp_path / "none.sock", "--config", main)
    other = tmp_path / "other.yaml"
    other.write_text(GOOD + "logging: {level: debug}\n")

    shown = run("show", "--configured", "--changed-only", *nobody)
    assert (shown.exit_code, shown.stdout.splitlines()[0]) == (0, "version: 1")
    same = run("diff", "--file", main, *nobody)
    assert (same.exit_code, same.output) == (0, "")
    differs = run("diff", "--file", other, *nobody)
    assert (differs.exit_code, differs.stdout) == (4, "~ logging.level: info -> debug (dynamic)\n")
    defaults = json.loads(run("diff", "--defaults", "--json", *nobody).stdout)
    assert [each["path"] for each in defaults] == ["egress.egresses.a.egress_ip", "node.name"]


@pytest.mark.parametrize("words", [["show"], ["status"], ["reload"], ["diff"]])
def test_without_a_daemon_the_live_commands_fail_with_a_reason(words, main, tmp_path):
    socket = ("--socket", tmp_path / "none.sock")
    result = run(*words, *socket, *(["--config", main] if words[0] in ("show", "diff") else []))

    assert result.exit_code == 1
    assert "no daemon at" in result.stderr


class LiveDesk:
    """The configuration part of a daemon's desk, on a real file."""

    def __init__(self, path):
        self.reloader = Reloader(path, load(path, environ={}), environ={})
        self.reloads = Reloads(self.reloader, pace=lambda: Pace(quiet=0.01))

    async def reload(self, *, trigger, wait, dry_run, allow_removal, timeout):  # noqa: ASYNC109
        if not wait:
            self.reloads.poke(trigger)
            return {"result": "requested", "generation": self.reloader.generation}
        async with asyncio.timeout(timeout):
            report = await self.reloads.request(
                trigger, dry_run=dry_run, allow_removal=allow_removal
            )
        return report.to_document()

    def config_show(self, *, which, origin, changed_only):
        shown = self.reloader.show(which=which, origin=origin, changed_only=changed_only)
        row = {"name": "push/pull seconds", "value": 60.0, "from": {"members": 40}}
        return {**shown, "derived": [row]}

    def config_status(self):
        return self.reloader.status()


@asynccontextmanager
async def daemon(path, socket):
    desk = LiveDesk(path)
    server = AdminServer(desk)
    await server.start(socket)
    worker = asyncio.create_task(desk.reloads.run())
    try:
        # What a daemon logs is not what its client prints.
        with capture_logs():
            yield desk
    finally:
        worker.cancel()
        await asyncio.wait([worker])
        await server.close()


async def test_the_live_commands_tell_what_runs_what_waits_and_what_was_refused(main, tmp_path):
    socket = tmp_path / "admin.sock"

    async def live(*words):
        return await asyncio.to_thread(run, *words, "--socket", socket)

    async with daemon(main, socket) as desk:
        assert (await live("reload")).stdout == "unchanged, generation 1\n"

        main.write_text(GOOD + "logging: {level: debug}\n")
        trial = await live("reload", "--dry-run")
        assert trial.stdout.splitlines() == [
            "would be applied, generation 1",
            "~ logging.level: info -> debug (dynamic)",
        ]
        assert desk.reloader.generation == 1
        assert (await live("reload", "--no-wait")).stdout.startswith("requested")
        await asyncio.sleep(0.3)
        assert desk.reloader.generation == 2

        main.write_text(GOOD + "logging: {level: debug}\ngossip: {bind_port: 8000}\n")
        waits = await live("reload", "--wait", "--timeout", "5s")
        assert waits.exit_code == 3
        assert "restart pending: gossip.bind_port is 7955, will be 8000" in waits.stdout
        assert (await live("reload", "--pending-ok")).exit_code == 0
        assert (await live("status")).exit_code == 3
        assert "bind_port: 7955" in (await live("show")).stdout
        assert "bind_port: 8000" in (await live("show", "--configured")).stdout
        assert (await live("diff", "--config", main)).stdout == (
            "~ gossip.bind_port: 7955 -> 8000 (static)\n"
        )

        main.write_text("version: 1\n")
        guarded = await live("reload")
        assert (guarded.exit_code, "--allow-removal" in guarded.stderr) == (2, True)
        told = await live("status", "--last-error")
        assert (told.exit_code, "drops 1 of 1 egresses" in told.stdout) == (2, True)
        assert "push/pull seconds  60     members=40" in (await live("show", "--derived")).stdout
        assert json.loads((await live("show", "--derived", "--json")).stdout)[0]["value"] == 60.0
        shown = json.loads((await live("show", "--json")).stdout)
        assert list(shown["egress"]["egresses"]) == ["a"]


async def test_a_change_that_was_rolled_back_has_its_own_exit_code(main, tmp_path):
    async with daemon(main, tmp_path / "s") as desk:
        desk.reloader.subscribe(Part("gossip", ["gossip"], fails="commit"))
        main.write_text(GOOD + "gossip: {fanout: 4}\n")

        result = await asyncio.to_thread(run, "reload", "--socket", tmp_path / "s", "--json")

    assert result.exit_code == 5
    assert json.loads(result.stdout)["result"] == "rolled_back"


def test_asking_for_help_imports_neither_yaml_nor_pydantic():
    import subprocess
    import sys

    code = (
        "import sys; from agent.cli.config import config; "
        "sys.exit(len({'yaml', 'pydantic', 'rich', 'structlog'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
