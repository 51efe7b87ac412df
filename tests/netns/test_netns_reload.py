"""Reloads of real daemons: what the service manager hears, what peers see, and what is undone."""

import base64
import json
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from agent.client import call, rows
from agent.lab import cluster as labs
from agent.lab.observation import Observation
from support.managed import WAYOUT, heard, managed

pytestmark = [pytest.mark.netns, pytest.mark.slow, pytest.mark.timeout(240)]

MIXED = 15.0
"""Seconds for which two nodes run different files; `wayout lab` can do it for longer."""


@pytest.fixture
def folder(monkeypatch):
    """Short, since the path of a Unix socket may have 107 letters."""
    made = Path(tempfile.mkdtemp(prefix="wr"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(made))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def lab(folder):  # noqa: ARG001 - where the lab keeps its files
    with labs.temporary("reload", nodes=3, ips=6) as cluster:
        cluster.settle()
        yield cluster


def command(lab, name, *words):
    """`wayout …` at a daemon of the lab."""
    done = subprocess.run(
        [*WAYOUT, "--socket", str(lab.file(name, "sock")), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


def eventually(found, patience=15.0):
    limit = time.monotonic() + patience
    while not (value := found()):
        assert time.monotonic() < limit, "it did not come about"
        time.sleep(0.05)
    return value


def edit(lab, name, old, new):
    path = lab.file(name, "yaml")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_t19_and_test_t36_a_canary_is_drift_and_is_read_from_anywhere(lab):
    for name in lab.nodes:
        path = lab.file(name, "yaml")
        path.write_text(path.read_text() + "config: {drift_grace: 1s}\n")
        assert command(lab, name, "config", "reload")[0] == 0
    edit(lab, "n1", "gossip: {", "gossip: {fanout: 4, ")
    assert command(lab, "n1", "config", "reload")[0] == 0
    time.sleep(1.5)

    eventually(lambda: command(lab, "n3", "config", "drift")[0] == 4)
    groups = json.loads(command(lab, "n3", "config", "drift", "--json")[1])["groups"]
    assert [[row["name"] for row in group["members"]] for group in groups] == [["n2", "n3"], ["n1"]]
    assert groups[1]["members"][0]["agreement"] == "differs"
    _read_from_anywhere(lab)

    for name in ("n2", "n3"):
        edit(lab, name, "gossip: {", "gossip: {fanout: 4, ")
        assert command(lab, name, "config", "reload")[0] == 0
    eventually(lambda: command(lab, "n3", "config", "drift")[0] == 0)


def _read_from_anywhere(lab):
    """T-36."""
    running = json.loads(
        command(lab, "n3", "config", "show", "--peer", "n1", "--format", "json")[1]
    )
    differs, said, _ = command(lab, "n3", "config", "diff", "--peer", "n1")
    assert running["gossip"]["fanout"] == 4
    assert differs == 4
    assert "gossip.fanout: 3 -> 4 (cluster)" in said
    unknown = command(lab, "n3", "config", "show", "--peer", "n9")
    assert unknown[0] == 2
    assert "no wayout member 'n9'" in unknown[2]


def test_a_change_of_gossip_that_loses_all_peers_is_rolled_back_and_says_so(lab, folder):
    key = folder / "keyring"
    key.write_text(base64.b64encode(bytes(range(16))).decode() + "\n")
    key.chmod(0o600)
    path = lab.file("n1", "yaml")
    path.write_text(path.read_text() + "config: {confirm_timeout: 3s}\n")
    assert command(lab, "n1", "config", "reload")[0] == 0
    generation = call(str(lab.file("n1", "sock")), "config_status")["generation"]
    edit(lab, "n1", "gossip: {", f"gossip: {{encryption: required, keyring_file: {key}, ")

    code, said, wrong = command(lab, "n1", "config", "reload", "--wait")
    status = call(str(lab.file("n1", "sock")), "config_status")

    assert code == 5, said + wrong
    assert "no peer has answered for 3 s" in wrong
    assert status["last_reload"]["result"] == "rolled_back"
    assert status["generation"] == generation + 2
    shown = json.loads(command(lab, "n1", "config", "show", "--format", "json")[1])
    assert shown["gossip"]["encryption"] == "off"
    alone = call(str(lab.file("n1", "sock")), "status")["members"]
    eventually(lambda: call(str(lab.file("n1", "sock")), "status")["members"]["alive"] == 3)
    assert alone["alive"] + alone["suspect"] + alone["dead"] == 3
    for name in lab.nodes:
        text = lab.file(name, "log").read_text(errors="replace")
        assert base64.b64encode(bytes(range(16))).decode() not in text


def test_t26_a_port_waits_for_a_restart_and_the_exit_code_tells_the_truth(lab):
    """And what ExecReload= of the unit reports."""
    name = "n1"
    reload = ("config", "reload", "--wait", "--pending-ok", "--timeout", "30s")
    good = lab.file(name, "yaml").read_text()
    socket_path = str(lab.file(name, "sock"))
    edit(lab, name, "gossip: {", "gossip: {bind_port: 7999, fanout: 4, ")

    assert command(lab, name, "config", "reload")[0] == 3
    assert command(lab, name, *reload)[0] == 0
    status = call(socket_path, "status")
    (pending,) = status["config"]["pending_restart"]
    assert (pending["path"], pending["running"], pending["configured"]) == (
        "gossip.bind_port",
        7955,
        7999,
    )
    assert pending["reason"]
    assert status["members"]["alive"] == 3
    shown = json.loads(command(lab, name, "config", "show", "--format", "json")[1])
    assert (shown["gossip"]["bind_port"], shown["gossip"]["fanout"]) == (7955, 4)
    rows_seen = eventually(
        lambda: [
            row
            for group in json.loads(command(lab, "n2", "config", "drift", "--json")[1])["groups"]
            for row in group["members"]
            if row["state"] == "pending"
        ]
    )
    assert [row["name"] for row in rows_seen] == [name]

    lab.file(name, "yaml").write_text("egress: [\n")
    code, _, wrong = command(lab, name, *reload)
    assert code == 2
    assert "yaml:" in wrong
    lab.file(name, "yaml").write_text(good)
    assert command(lab, name, *reload)[0] == 0
    assert call(socket_path, "status")["config"]["pending_restart"] == []
    code, said, _ = command(lab, name, "config", "status", "--last-error")
    assert code == 0
    assert "rejected at" in said


def test_two_nodes_with_different_files_never_answer_for_one_address(lab):
    """Another seat for every address on one side, and an address that only that side knows."""
    ips = list(lab.ips)
    with Observation(lab.network, ips) as seen:
        seen.look(1.0)
        began = time.monotonic()
        edit(lab, "n1", "  egresses:", "  failback: immediate\n  load_factor: 3.0\n  egresses:")
        kept = [
            line for line in lab.file("n1", "yaml").read_text().splitlines() if ips[0] not in line
        ]
        lab.file("n1", "yaml").write_text("\n".join(kept) + "\n")
        assert command(lab, "n1", "config", "reload")[0] == 0
        pins = "".join(
            f'    pin{at}: {{egress_ip: "{ip}", pin: n2}}\n' for at, ip in enumerate(ips)
        )
        head, _, _ = lab.file("n2", "yaml").read_text().partition("  egresses:")
        lab.file("n2", "yaml").write_text(f"{head}  egresses:\n{pins}")
        assert command(lab, "n2", "config", "reload")[0] == 0
        seen.look(MIXED)
        doubled = {ip: seen.timeline.overlaps(ip, began, seen.timeline.until) for ip in ips}

    assert {ip: found for ip, found in doubled.items() if found} == {}
    assert any(row["owner"] for row in rows(str(lab.file("n2", "sock")), "egress_list"))


def test_notify_reload_gets_its_messages_whatever_comes_of_it(folder):
    with managed(folder) as (daemon, path, manager):
        heard(manager, "READY=1")
        good = path.read_text()
        for text, verdict in (
            (good + "logging: {level: debug}\n", r"generation 2, applied"),
            (good + "gossip: {bind_port: 7999}\n", r"generation 3, applied, a restart is pending"),
            ("egress: [\n", r"generation 3, rejected: .*config.yaml:"),
            (good, r"generation 3, unchanged"),
        ):
            path.write_text(text)
            before = time.monotonic_ns() // 1000
            daemon.send_signal(signal.SIGHUP)
            began = heard(manager, "RELOADING=1")
            ended = heard(manager, "READY=1")

            assert before <= int(began["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
            assert re.match(verdict, ended["STATUS"]), ended
        daemon.terminate()
        assert heard(manager, "STOPPING=1")


def test_a_hang_up_in_the_middle_of_the_start_neither_kills_nor_counts_as_ready(folder):
    with managed(folder) as (daemon, _, manager):
        time.sleep(0.15)
        for _ in range(5):
            daemon.send_signal(signal.SIGHUP)
            time.sleep(0.02)
        said = manager.recv(4096).decode()
        while not said.startswith("READY"):
            assert not said.startswith("RELOADING")
            said = manager.recv(4096).decode()

        assert daemon.poll() is None
        assert call(str(folder / "sock"), "status")["node"]["state"] == "ready"


def test_a_start_with_broken_files_takes_what_ran_last_only_if_told_to(folder):
    with managed(folder) as (_, path, manager):
        heard(manager, "READY=1")
        eventually((folder / "state" / "last-good.json").exists)
        good = path.read_text()
        path.write_text(good + "egres: {}\n")
        plain = subprocess.run(
            [*WAYOUT, "run", "--config", str(path)], capture_output=True, text=True, check=False
        )
    (folder / "notify").unlink()

    assert plain.returncode == 78
    assert "egres" in plain.stderr
    with managed(folder, "--start-with-last-good", more="egres: {}\n") as (_, path, manager):
        heard(manager, "READY=1")
        config = call(str(folder / "sock"), "status")["config"]
        assert config["stale"]
        assert "egres" in config["last_reload"]["errors"][0]
        eventually(lambda: rows(str(folder / "sock"), "egress_list")[0]["owner"] == "n1")
        path.write_text(good)
        assert call(str(folder / "sock"), "reload", timeout=20)["result"] == "unchanged"
        assert not call(str(folder / "sock"), "status")["config"]["stale"]


def test_t33_a_changed_interface_moves_the_addresses_that_it_concerns_and_no_other(folder):
    """As the kernel tells it: released there, then bound here; nothing else is dropped."""
    moving, staying = "10.77.0.202", "10.77.0.201"
    more = "    b: {egress_ip: %s, interface: %s}\n"
    with managed(folder) as (daemon, path, manager):
        heard(manager, "READY=1")
        inside = ["nsenter", f"--net=/proc/{daemon.pid}/ns/net"]
        subprocess.run(
            [*inside, "ip", "link", "add", "eth1", "type", "veth", "peer", "name", "eth1p"],
            check=True,
        )
        for link in ("eth1", "eth1p"):
            subprocess.run([*inside, "ip", "link", "set", link, "up"], check=True)
        base, _, _ = path.read_text().partition("egress:")
        base += f"egress:\n  egresses:\n    a: {{egress_ip: {staying}}}\n"
        sock = str(folder / "sock")
        path.write_text(base + more % (moving, "eth0"))
        assert call(sock, "reload", timeout=20)["result"] == "applied"

        def where():
            return {row["ip"]: row["interface"] for row in rows(sock, "egress_list")}

        eventually(lambda: where() == {staying: "eth0", moving: "eth0"})
        with subprocess.Popen(
            [*inside, "ip", "monitor", "address"], stdout=subprocess.PIPE, text=True
        ) as monitor:
            time.sleep(0.5)
            path.write_text(base + more % (moving, "eth1"))
            assert call(sock, "reload", timeout=20)["result"] == "applied"
            eventually(lambda: where() == {staying: "eth0", moving: "eth1"})
            time.sleep(2.0)
            monitor.terminate()
            lines = monitor.stdout.read().splitlines()

    gone = [line for line in lines if "Deleted" in line and " inet " in line]
    bound = [moving in line and " eth1 " in line and "Deleted" not in line for line in lines]
    assert len(gone) == 1, lines
    assert moving in gone[0]
    assert "eth0" in gone[0]
    assert lines.index(gone[0]) < bound.index(True)
    assert any(staying in line for line in lines), "renewals of the other are seen"
