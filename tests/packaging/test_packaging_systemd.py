"""The systemd unit: its settings, and the command lines in it."""

import shlex
import shutil
import sys
from pathlib import Path

import pytest

from support.commands import run, wayout

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "wayout.service"


@pytest.fixture(scope="module")
def unit():
    """Section to key to values, for keys may come again."""
    sections, current = {}, None
    for line in UNIT.read_text().splitlines():
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            current.setdefault(key, []).append(value)
    return sections


def test_the_ways_to_end_are_those_of_the_contract(unit):
    service = unit["Service"]

    assert service["KillSignal"] == ["SIGTERM"]
    assert service["RestartKillSignal"] == ["SIGUSR2"]
    assert service["Restart"] == ["always"]
    assert service["RestartPreventExitStatus"] == ["78"]
    assert int(service["TimeoutStopSec"][0]) > 10
    assert unit["Unit"]["StartLimitIntervalSec"] == ["0"]


def test_the_service_manager_is_told_and_watches(unit):
    service = unit["Service"]

    assert service["Type"] == ["notify"]
    assert service["NotifyAccess"] == ["main"]
    assert int(service["WatchdogSec"][0]) >= 10


def test_nothing_of_root_is_left_but_two_capabilities(unit):
    service = unit["Service"]

    assert service["CapabilityBoundingSet"] == ["CAP_NET_ADMIN CAP_NET_RAW"]
    assert service["NoNewPrivileges"] == ["yes"]
    assert service["ProtectSystem"] == ["strict"]
    assert set(service["RestrictAddressFamilies"][0].split()) == {
        "AF_UNIX",
        "AF_INET",
        "AF_INET6",
        "AF_NETLINK",
        "AF_PACKET",
    }


def test_the_folders_are_those_of_the_defaults(unit):
    from config.schema.settings import VERSION, Settings

    settings = Settings(version=VERSION)
    service = unit["Service"]
    assert settings.state.runtime_dir == f"/run/{service['RuntimeDirectory'][0]}"
    assert settings.state.dir == f"/var/lib/{service['StateDirectory'][0]}"
    assert settings.api.socket.startswith(settings.state.runtime_dir)


def test_a_stop_has_more_time_than_the_daemon_takes_by_default(unit):
    from config.schema.settings import VERSION, Settings

    settings = Settings(version=VERSION)
    assert int(unit["Service"]["TimeoutStopSec"][0]) > settings.node.stop_timeout


@pytest.mark.parametrize("key", ["ExecStart", "ExecReload"])
def test_every_command_line_is_one_that_wayout_understands(unit, key):
    (line,) = unit["Service"][key]
    program, *arguments = shlex.split(line)

    assert program == "wayout"
    done = wayout(*arguments, "--help")
    assert done.returncode == 0, done.stderr
    offered = done.stdout
    assert all(word.split("=")[0] in offered for word in arguments if word.startswith("--"))


def test_a_reload_without_a_daemon_fails_as_systemctl_expects():
    command = "config reload --wait --pending-ok --timeout 30s --socket /nonexistent/admin.sock"

    done = wayout(*command.split())

    assert done.returncode == 1
    assert "no daemon at /nonexistent/admin.sock" in done.stderr


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    program = Path(sys.executable).with_name("wayout")
    copy = tmp_path / "wayout.service"
    copy.write_text(UNIT.read_text().replace("=wayout ", f"={program} "))

    done = run("systemd-analyze", "verify", str(copy))

    assert (done.returncode, done.stderr) == (0, "")
