"""The lab with real daemons, as people use it: by command, as root and as nobody."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agent.lab import cluster

pytestmark = [
    pytest.mark.netns,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.usefixtures("runtime"),
]

WAYOUT = [sys.executable, "-I", "-m", "agent", "lab"]
NOBODY = "65534"


@pytest.fixture
def runtime(monkeypatch):
    """A runtime folder; whatever a lab leaves in it, or runs with it, is a failure."""
    # Not tmp_path: the path of a Unix socket may have 107 letters.
    folder = Path(tempfile.mkdtemp(prefix="wl"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    left = processes_with(folder)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    files = [str(each.relative_to(folder)) for each in folder.glob("wayout-lab/*")]
    shutil.rmtree(folder)
    assert left == {}
    assert files == []


def processes_with(folder):
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


def lab(*words, check=True, prefix=()):
    argv = [*prefix, *WAYOUT, *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def works(argv):
    return subprocess.run(argv, capture_output=True, check=False, timeout=30).returncode == 0


def as_nobody():
    """The start of a command line that runs the rest without any privilege.

    Where nobody may not read the folder of this Python, a private mount shows it to them.
    """
    # setpriv itself may still read everything; env, which it becomes, may not.
    drop = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "env"]
    if works([*drop, sys.executable, "-c", "pass"]):
        return drop
    base = Path(sys.base_prefix)
    script = f"""
        set -e
        mount -t tmpfs none /mnt && mkdir /mnt/python && mount --bind {base} /mnt/python
        mount -t tmpfs -o mode=755 none {Path("/", base.parts[1])} && mkdir -p {base}
        mount --bind /mnt/python {base}
        exec "$@"
    """
    return ["unshare", "--mount", "sh", "-c", script, "sh", *drop]


def test_a_lab_goes_up_and_is_used_and_goes_down():
    lab("up", "--name", "t1")
    told = json.loads(lab("status", "--name", "t1", "--json").stdout)
    inside = lab("exec", "--name", "t1", "n2", "--", "wayout", "status", "--json")
    again = lab("up", "--name", "t1", check=False)
    lab("down", "--name", "t1")

    assert [each["state"] for each in told["nodes"]] == ["running"] * 3
    assert sum(len(each["owns"]) for each in told["nodes"]) == 6
    assert json.loads(inside.stdout)["node"]["name"] == "n2"
    assert again.returncode == 1
    assert "already" in again.stderr
    assert lab("status", "--name", "t1", check=False).returncode == 1


def test_nodes_are_killed_stopped_paused_and_come_back():
    lab("up", "--name", "t2")
    try:
        states = []
        for breaks, mends in (("kill", "start"), ("stop", "start"), ("pause", "resume")):
            lab(breaks, "--name", "t2", "n1")
            states.append(cluster.find("t2").state("n1"))
            lab(mends, "--name", "t2", "n1")
            cluster.find("t2").settle()
        before = cluster.find("t2").pid("n2")
        lab("restart", "--name", "t2", "n2")
        cluster.find("t2").settle()
        after = cluster.find("t2").pid("n2")
        lab("cut", "--name", "t2", "n3")
        unplugged = not cluster.find("t2").plugged("n3")
        lab("heal", "--name", "t2", "n3")
        cluster.find("t2").settle()
    finally:
        lab("down", "--name", "t2")

    assert states == ["killed", "ended", "paused"]
    assert None not in (before, after)
    assert before != after
    assert unplugged


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_the_demo_shows_a_failover(runtime, user):
    prefix = []
    if user == "nobody":
        prefix = as_nobody()
        os.chown(runtime, int(NOBODY), int(NOBODY))
        if not works([*prefix, "unshare", "-Urn", "true"]):
            pytest.skip("ordinary users may not make user namespaces here")
    told = json.loads(lab("demo", "--json", prefix=prefix).stdout)

    assert told["ok"]
    assert len(told["owners"]) == 6
    assert len(told["moves"]) >= 2
    for move in told["moves"]:
        assert len(move["answered_by"]) == 1
        assert move["two_answerers_seconds"] == 0
        assert 0 < move["takeover_seconds"] < 10


@pytest.mark.parametrize("line", ["hang on one bridge", "all nodes are ready", "Killing host"])
def test_an_interrupt_at_any_point_of_the_story_ends_it_clean(line):
    with subprocess.Popen([*WAYOUT, "demo"], stdout=subprocess.PIPE, text=True) as demo:
        while line not in (told := demo.stdout.readline()):
            assert told, "the demo ended too early"
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=30)

    assert demo.returncode == 130


def test_measuring_gives_figures_of_each_trial():
    done = lab("measure", "--fault", "drain", "--repeat", "2", "--json")
    told = json.loads(done.stdout)

    assert told["repeat"] == 2
    assert told["not_taken_over"] == 0
    assert told["two_answerers_seconds"]["max"] == 0
    assert told["takeover_seconds"]["max"] < 10
