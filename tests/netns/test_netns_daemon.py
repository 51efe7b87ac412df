"""Real daemons in namespaces: reloads that move nothing, and bad input that says what to do."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.client import call, rows
from agent.lab import cluster as labs

pytestmark = [pytest.mark.netns, pytest.mark.slow, pytest.mark.timeout(240)]

DAEMON = [sys.executable, "-I", "-m", "agent", "run", "--config"]
RELOADS = 100
STRANGER = "obs"


@pytest.fixture
def runtime(monkeypatch):
    """A folder for labs; not tmp_path, since the path of a Unix socket may have 107 letters."""
    folder = Path(tempfile.mkdtemp(prefix="wd"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def lab(runtime):  # noqa: ARG001 - where the lab keeps its files
    with labs.temporary("daemon", nodes=3, ips=6) as cluster:
        cluster.settle()
        yield cluster


@contextmanager
def monitored(lab, name):
    """Lines of `ip monitor address` in a host, as a list that is complete after the block."""
    argv = lab.network.inside(name, ["ip", "-ts", "monitor", "address"])
    lines = []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as monitor:
        time.sleep(0.3)
        yield lines
        time.sleep(0.2)
        monitor.terminate()
        lines += monitor.stdout.read().splitlines()


def ask(lab, name, verb, **arguments):
    return call(str(lab.file(name, "sock")), verb, **arguments)


def eventually(true, patience=10.0):
    limit = time.monotonic() + patience
    while not true():
        assert time.monotonic() < limit, "it did not come about"
        time.sleep(0.02)


def an_owner(lab):
    return next(name for name in lab.nodes if ask(lab, name, "status")["egress"]["owned"])


def test_a_hundred_reloads_half_of_them_broken_move_nothing(lab):
    name = an_owner(lab)
    path, pid = lab.file(name, "yaml"), lab.pid(name)
    good = path.read_text()
    held = {row["ip"] for row in rows(str(lab.file(name, "sock")), "egress_list") if row["local"]}
    last = ask(lab, name, "status")["config"]["last_reload"]["at"]
    with monitored(lab, name) as lines:
        for number in range(RELOADS):
            broken = number % 2 == 0
            path.write_text("egress: [" if broken else f"# {number}\n{good}")
            os.kill(pid, signal.SIGHUP)
            before = last
            eventually(
                lambda before=before: (
                    ask(lab, name, "status")["config"]["last_reload"]["at"] != before
                )
            )
            config = ask(lab, name, "status")["config"]
            last = config["last_reload"]["at"]
            assert config["stale"] == broken
            assert config["last_reload"]["result"] == ("rejected" if broken else "unchanged")
            assert len(config["last_reload"]["errors"]) == int(broken)
    gone = [line for line in lines if "Deleted" in line]
    status = ask(lab, name, "status")

    assert held
    assert len(lines) > 10, "the monitor saw nothing, not even renewals"
    assert gone == []
    assert status["node"]["pid"] == pid
    assert status["config"]["generation"] == 1
    assert held == {
        row["ip"] for row in rows(str(lab.file(name, "sock")), "egress_list") if row["local"]
    }


def test_a_reload_adds_and_removes_and_leaves_the_rest_alone(lab):
    kept, dropped, added = "10.77.0.201", "10.77.0.202", "10.77.0.240"
    for name in lab.nodes:
        path = lab.file(name, "yaml")
        text = path.read_text()
        lines = [line for line in text.splitlines() if f'"{dropped}"' not in line]
        path.write_text("\n".join([*lines, f"    extra: {{egress_ip: {added}}}"]) + "\n")
    owners = lab.owners(lab.nodes[0])
    with monitored(lab, owners[kept]) as lines:
        for name in lab.nodes:
            report = ask(lab, name, "reload", seconds=20.0)
            assert (report["result"], report["code"]) == ("applied", 0)
        eventually(lambda: lab.owners(lab.nodes[0]).get(added) is not None)
    listed = {row["ip"]: row["owner"] for row in rows(str(lab.file("n1", "sock")), "egress_list")}

    assert dropped not in listed
    assert listed[kept] == owners[kept]
    assert [line for line in lines if "Deleted" in line and f" {kept}/" in line] == []
    for name in lab.nodes:
        assert f" {dropped}/" not in lab.network.run(name, ["ip", "-o", "addr"])


def test_an_address_that_a_stranger_has_is_never_bound_and_taken_over_when_it_leaves(lab):
    stranger = "10.77.0.241"
    lab.network.run(STRANGER, ["ip", "addr", "add", f"{stranger}/32", "dev", "eth0"])
    mac = lab.places[STRANGER].mac
    for name in lab.nodes:
        path = lab.file(name, "yaml")
        path.write_text(f"{path.read_text()}    taken: {{egress_ip: {stranger}}}\n")
        ask(lab, name, "reload", seconds=20.0)

    def conflicts():
        listed = [
            rows(str(lab.file(name, "sock")), "egress_show", name="taken") for name in lab.nodes
        ]
        return [row for found in listed for row in found if row["state"] == "conflict"]

    eventually(conflicts)
    assert {row["reason"] for row in conflicts() if mac not in row["reason"]} == set()
    time.sleep(2.0)
    for name in lab.nodes:
        assert f" {stranger}/" not in lab.network.run(name, ["ip", "-o", "addr"])
    lab.network.run(STRANGER, ["ip", "addr", "del", f"{stranger}/32", "dev", "eth0"])
    eventually(lambda: lab.owners("n1").get(stranger) is not None, patience=10.0)


def started(lab, text, *, name="n1", prefix=()):
    """`wayout run` with this configuration in a host; what came of it."""
    path = Path(lab.record.folder) / "other.yaml"
    path.write_text(text)
    argv = lab.network.inside(name, [*prefix, *DAEMON, str(path)])
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)


def other(lab, *, node="", rest=""):
    folder = lab.record.folder
    return (
        f"version: 1\nnode: {{name: other{node}}}\n"
        f"api: {{socket: {folder}/other.sock, http_listen: off}}\n"
        f"state: {{dir: {folder}/other.state, runtime_dir: {folder}/other.run}}\n{rest}"
    )


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"rest": "egres: {}\n"}, 78, ["other.yaml:5:1", "egres", "egress"]),
        ({"rest": "gossip: {bind_port: many}\n"}, 78, ["other.yaml:5:", "gossip.bind_port"]),
        ({"rest": "gossip: {}\ngossip: {}\n"}, 78, ["other.yaml:6:", "gossip", "5"]),
        ({}, 1, ["10.77.0.11:7955", "in use", "gossip.bind_port"]),
        ({"node": ", address: iface:nope0"}, 1, ["nope0", "node.address"]),
        ({"node": ", address: 10.9.9.9"}, 1, ["10.9.9.9", "node.address"]),
    ],
    ids=["unknown-key", "wrong-type", "duplicate-key", "port-in-use", "no-interface", "no-address"],
)
def test_a_start_that_cannot_be_says_so_in_one_line_that_names_the_fix(lab, change, code, words):
    addresses = lab.network.run("n1", ["ip", "-o", "addr"]).count("\n")
    done = started(lab, other(lab, **change))
    errors = [line for line in done.stderr.splitlines() if line.startswith("wayout: error: ")]

    assert done.returncode == code
    assert len(errors) == 1
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in errors[0]
    assert not (Path(lab.record.folder) / "other.sock").exists()
    assert lab.network.run("n1", ["ip", "-o", "addr"]).count("\n") == addresses


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv (util-linux)")
def test_without_the_capabilities_a_start_names_them(lab):
    done = started(
        lab,
        other(lab),
        prefix=["setpriv", "--bounding-set=-net_admin,-net_raw", "--inh-caps=-net_admin,-net_raw"],
    )

    assert done.returncode == 1
    assert "CAP_NET_ADMIN" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interface_that_does_not_exist_is_a_condition_of_that_egress_alone(lab):
    for name in lab.nodes:
        path = lab.file(name, "yaml")
        path.write_text(f"{path.read_text()}    odd: {{egress_ip: 192.0.2.9, interface: nope0}}\n")
        ask(lab, name, "reload", seconds=20.0)

    def row(name):
        return rows(str(lab.file(name, "sock")), "egress_show", name="odd")[0]

    # Whether each node has it is known to the others as soon as their metadata arrived.
    for name in lab.nodes:
        eventually(lambda name=name: row(name)["reason"] == "no_eligible_node: no_interface 3")
    assert row("n1")["owner"] is None
    assert all(lab.owners("n1")[ip] is not None for ip in lab.ips)
