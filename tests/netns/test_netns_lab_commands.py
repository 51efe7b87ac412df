"""The commands of the lab with real daemons: what they start they end."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from agent.lab import cluster

pytestmark = [pytest.mark.netns, pytest.mark.slow, pytest.mark.timeout(180)]

WAYOUT = [sys.executable, "-I", "-m", "agent", "lab"]
NOBODY = "65534"


@pytest.fixture(autouse=True)
def runtime(monkeypatch):
    """A runtime folder; whatever a lab leaves behind in it, or runs with it, is a failure."""
    # Not tmp_path: the path of a Unix socket may have 107 letters.
    folder = Path(tempfile.mkdtemp(prefix="wl"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    links = _links()
    yield folder
    left = _processes_with(folder)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    files = [str(each.relative_to(folder)) for each in folder.rglob("*")]
    shutil.rmtree(folder)
    assert left == {}
    assert files == []
    assert _links() == links


def _processes_with(folder):
    """Everything that runs with this runtime folder, but for ourselves."""
    mark = f"XDG_RUNTIME_DIR={folder}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().decode()
        except OSError:
            continue
    return found


def _links():
    done = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True)
    return {line.split()[1] for line in done.stdout.splitlines() if "p-n" in line or "br0" in line}


def _lab(*words, check=True, prefix=()):
    done = subprocess.run(
        [*prefix, *WAYOUT, *words], capture_output=True, text=True, check=False, timeout=120
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def _as_nobody():
    """The start of a command line that runs the rest without any privilege.

    Where nobody may not read this Python's folder, a private mount shows it to them.
    """
    drop = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
    if _works([*drop, sys.executable, "-c", "pass"]):
        return drop
    base = Path(sys.base_prefix)
    top = Path("/", base.parts[1])
    script = f"""
        set -e
        mkdir -p /run/wl-python && mount --bind {base} /run/wl-python
        mount -t tmpfs -o mode=755 none {top} && mkdir -p {base}
        mount --bind /run/wl-python {base}
        exec "$@"
    """
    return ["unshare", "--mount", "sh", "-c", script, "sh", *drop]


def _works(argv):
    return subprocess.run(argv, capture_output=True, check=False, timeout=30).returncode == 0


def test_a_lab_goes_up_is_used_and_leaves_nothing():
    _lab("up", "--name", "t1")
    told = json.loads(_lab("status", "--name", "t1", "--json").stdout)
    inside = _lab("exec", "--name", "t1", "n2", "--", "wayout", "status", "--json")
    again = _lab("up", "--name", "t1", check=False)
    _lab("down", "--name", "t1")

    assert [each["state"] for each in told["nodes"]] == ["running"] * 3
    assert sum(len(each["owns"]) for each in told["nodes"]) == 6
    assert json.loads(inside.stdout)["node"]["name"] == "n2"
    assert again.returncode == 1
    assert "already" in again.stderr
    assert _lab("status", "--name", "t1", check=False).returncode == 1


def test_nodes_are_killed_stopped_paused_and_come_back():
    _lab("up", "--name", "t2")
    try:
        found = cluster.find("t2")
        states = []
        for breaks, mends in (("kill", "start"), ("stop", "start"), ("pause", "resume")):
            _lab(breaks, "--name", "t2", "n1")
            states.append(cluster.find("t2").state("n1"))
            _lab(mends, "--name", "t2", "n1")
            cluster.find("t2").settle()
        before = found.pid("n2")
        _lab("restart", "--name", "t2", "n2")
        after = cluster.find("t2")
        after.settle()
        _lab("cut", "--name", "t2", "n3")
        unplugged = not after.plugged("n3")
        _lab("heal", "--name", "t2", "n3")
        after.settle()
    finally:
        _lab("down", "--name", "t2")

    assert states == ["killed", "ended", "paused"]
    assert after.record.daemons["n2"].pid != before
    assert unplugged


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_the_demo_shows_a_failover_and_leaves_nothing(runtime, user):
    prefix = []
    if user == "nobody":
        prefix = _as_nobody()
        runtime.chmod(0o700)
        os.chown(runtime, int(NOBODY), int(NOBODY))
        if not _works([*prefix, "unshare", "-Urn", "true"]):
            pytest.skip("ordinary users may not make user namespaces here")
    told = json.loads(_lab("demo", "--json", prefix=prefix).stdout)

    assert told["ok"]
    assert len(told["owners"]) == 6
    assert len(told["moves"]) >= 2
    for move in told["moves"]:
        assert len(move["answered_by"]) == 1
        assert move["two_answerers_seconds"] == 0
        assert 0 < move["takeover_seconds"] < 10


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (signal.SIGINT, None),
        (signal.SIGINT, "hang on one bridge"),
        (signal.SIGTERM, "all nodes are ready"),
        (signal.SIGHUP, "Killing host"),
    ],
)
def test_an_interrupted_demo_leaves_nothing(runtime, number, line):
    with subprocess.Popen([*WAYOUT, "demo"], stdout=subprocess.PIPE, text=True) as demo:
        if line is None:
            # In the middle of making hosts, as far as that can be hit.
            while not any(runtime.rglob("lab.json")):
                time.sleep(0.005)
        else:
            while line not in (told := demo.stdout.readline()):
                assert told, "the demo ended too early"
        demo.send_signal(number)
        demo.communicate(timeout=30)

    assert demo.returncode == 130


def test_a_demo_that_was_killed_is_swept_away_by_the_next_lab(runtime):
    with subprocess.Popen([*WAYOUT, "demo"], stdout=subprocess.PIPE, text=True) as demo:
        demo.stdout.readline()
        demo.stdout.readline()
        demo.kill()
    assert _processes_with(runtime)

    _lab("up", "--name", "t5", "--nodes", "1", "--ips", "0")
    _lab("down", "--name", "t5")
