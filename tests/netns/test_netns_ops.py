"""Operating real daemons: history, restarts, drains, cleaning up, and what helps if all fails."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import pytest

from agent.client import ClientError, call, rows
from agent.lab import cluster as labs
from agent.lab import faults, measure
from agent.lab.observation import Observation
from agent.lab.processes import send, wait

pytestmark = [pytest.mark.netns, pytest.mark.slow, pytest.mark.timeout(240)]

FOREIGN = "10.77.0.150"


@pytest.fixture
def runtime(monkeypatch):
    """A folder for labs; not tmp_path, since the path of a Unix socket may have 107 letters."""
    folder = Path(tempfile.mkdtemp(prefix="wo"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def lab(runtime):  # noqa: ARG001 - where the lab keeps its files
    with labs.temporary("ops", nodes=3, ips=6) as cluster:
        cluster.settle()
        yield cluster


def ask(lab, name, verb, **arguments):
    return call(str(lab.file(name, "sock")), verb, **arguments)


def history(lab, name):
    return rows(str(lab.file(name, "sock")), "history")


def wayout(lab, name, *arguments, cwd=None):
    """A command on a host, with its daemon's socket and file."""
    argv = [sys.executable, "-I", "-m", "agent", *arguments]
    environment = {**os.environ, "WAYOUT_SOCKET": str(lab.file(name, "sock"))}
    return subprocess.run(
        lab.network.inside(name, argv),
        capture_output=True,
        text=True,
        env=environment,
        cwd=cwd,
        check=False,
        timeout=60,
    )


def eventually(true, patience=10.0):
    limit = time.monotonic() + patience
    while not (found := true()):
        assert time.monotonic() < limit, "it did not come about"
        time.sleep(0.05)
    return found


def busiest(lab):
    owners = list(lab.owners("n1").values())
    return max(lab.nodes, key=owners.count)


def test_a_death_is_in_every_history_and_stays_there(lab):
    victim = busiest(lab)
    lost = {ip for ip, owner in lab.owners("n1").items() if owner == victim}
    others = [name for name in lab.nodes if name != victim]
    faults.kill(lab, victim)

    def moves(name):
        return [each for each in history(lab, name) if each["cause"] == "node_dead"]

    eventually(lambda: all(len(moves(name)) >= len(lost) for name in others))
    found = moves(others[0])
    assert in_order(found) == in_order(moves(others[1]))
    assert {each["ip"] for each in found} == lost
    for each in found:
        assert (each["from"], each["to"] in others) == (victim, True)
        assert 0.2 < each["phases"]["detect_seconds"] < 2.0
        assert each["total_seconds"] == pytest.approx(sum(each["phases"].values()), abs=1e-4)

    taker = found[0]["to"]
    before = history(lab, taker)
    assert f"from {victim} to " in wayout(lab, taker, "status").stdout
    faults.restart(lab, taker)
    eventually(lambda: answers(lab, taker), 20.0)
    assert history(lab, taker)[: len(before)] == before


def in_order(entries):
    return sorted(entries, key=lambda each: each["ip"])


def test_what_a_plan_says_is_what_a_death_does(lab):
    victim = busiest(lab)
    other = next(name for name in lab.nodes if name != victim)
    said = wayout(lab, other, "plan", "--without", victim, "--json")
    assert said.returncode == 0, said.stderr
    planned = json.loads(said.stdout)
    before = lab.owners(other)

    faults.kill(lab, victim)
    eventually(lambda: not {victim, None} & set(lab.owners(other).values()))
    after = lab.settle(members=False)

    moves = {each["ip"]: (each["from"], each["to"]) for each in planned["moves"]}
    assert moves == {ip: (victim, after[ip]) for ip, owner in before.items() if owner == victim}
    assert planned["unassigned"] == []
    assert planned["load"] == {
        name: list(after.values()).count(name) for name in lab.nodes if name != victim
    }


def test_a_drain_is_in_every_history_as_what_it_is(lab):
    victim = busiest(lab)
    lost = {ip for ip, owner in lab.owners("n1").items() if owner == victim}
    done = wayout(lab, victim, "drain", "--wait")
    assert done.returncode == 0, done.stderr

    def moves(name):
        return [each for each in history(lab, name) if each["from"] == victim]

    limit = time.monotonic() + 10.0
    while any(len(moves(name)) < len(lost) for name in lab.nodes) and time.monotonic() < limit:
        time.sleep(0.05)
    for name in lab.nodes:
        found = moves(name)
        assert {each["ip"] for each in found} == lost
        assert {each["cause"] for each in found} == {"drain"}
        assert max(each["total_seconds"] for each in found) < 2.0
    log = lab.file(victim, "log").read_text()
    assert log.count("egress.handed_over") == len(lost)


def test_a_drain_ends_by_itself_and_outlives_the_daemon(lab):
    victim = busiest(lab)
    assert wayout(lab, victim, "drain", "--for", "1m", "--wait").returncode == 0
    assert ask(lab, victim, "status")["node"]["state"] == "draining"

    faults.restart(lab, victim)
    eventually(lambda: answers(lab, victim))
    assert ask(lab, victim, "status")["node"]["state"] == "draining"
    assert ask(lab, victim, "status")["egress"]["owned"] == 0

    assert wayout(lab, victim, "drain", "--for", "2s").returncode == 0
    eventually(lambda: ask(lab, victim, "status")["node"]["state"] == "ready", 6.0)


def answers(lab, name):
    try:
        return ask(lab, name, "ready")["ready"]
    except ClientError:
        return False


@pytest.mark.parametrize("fault", ["rolling-restart", "rolling-upgrade"])
def test_replacing_every_daemon_moves_nothing_and_loses_no_answer(lab, fault):
    with Observation(lab.network, lab.ips) as seen:
        (trial,) = measure.trials(lab, seen, fault, 1)

    assert trial.needless == ()
    assert len(trial.losses) == len(lab.ips)
    assert [each for each in trial.losses if each.silent or each.doubled or each.taken] == []


def test_a_stop_that_was_not_announced_hands_over(lab):
    victim = busiest(lab)
    assert wayout(lab, victim, "restart-prepare", "--for", "1s").returncode == 0
    time.sleep(1.1)
    faults.stop(lab, victim)

    assert lab.network.run(victim, ["ip", "addr"]).count("10.77.0.2") == 0
    lab.settle(members=False)


def test_a_host_that_dies_while_its_daemon_is_replaced_is_not_waited_for(lab):
    victim = busiest(lab)
    lost = [ip for ip, owner in lab.owners("n1").items() if owner == victim]
    daemon = lab.record.daemons[victim]
    send(daemon, signal.SIGUSR2)
    assert wait(daemon, 10.0)
    lab.ended(victim)
    began = time.monotonic()
    time.sleep(1.0)
    lab.network.unplug(victim)

    other = next(name for name in lab.nodes if name != victim)
    eventually(lambda: all(lab.owners(other)[ip] not in {None, victim} for ip in lost), 15.0)
    assert time.monotonic() - began < 12.0


def test_cleaning_up_takes_what_is_ours_and_nothing_else(lab):
    victim = busiest(lab)
    config = ("--config", str(lab.file(victim, "yaml")))
    lab.network.run(victim, ["ip", "addr", "add", f"{FOREIGN}/32", "dev", "eth0"])
    refused = wayout(lab, victim, "cleanup", *config)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "the daemon runs" in refused.stderr

    daemon = lab.record.daemons[victim]
    send(daemon, signal.SIGUSR2)  # so that its addresses stay for longer than a lease
    assert wait(daemon, 10.0)
    lab.ended(victim)
    planned = json.loads(wayout(lab, victim, "cleanup", "--dry-run", "--json", *config).stdout)
    done = json.loads(wayout(lab, victim, "cleanup", "--json", *config).stdout)
    again = wayout(lab, victim, "cleanup", *config)

    assert planned["removed"]
    assert planned["removed"] == done["removed"]
    assert done["failed"] == []
    assert (again.returncode, again.stdout) == (0, "nothing of ours is here\n")
    left = lab.network.run(victim, ["ip", "-o", "addr"])
    assert FOREIGN in left
    assert lab.places[victim].ip4 in left
    assert not [each["ip"] for each in done["removed"] if f"{each['ip']}/" in left]


def test_the_doctor_sees_an_address_that_is_there_twice(lab):
    config = ("--config", str(lab.file("n1", "yaml")))
    well = wayout(lab, "n1", "doctor", "--json", *config)
    assert well.returncode in {0, 4}, well.stdout
    assert not [each for each in json.loads(well.stdout) if each["severity"] == "error"]

    lab.network.run("obs", ["ip", "addr", "add", f"{lab.places['n1'].ip4}/32", "dev", "eth0"])
    ill = wayout(lab, "n1", "doctor", "--json", *config)
    assert ill.returncode == 1
    (error,) = [each for each in json.loads(ill.stdout) if each["severity"] == "error"]
    assert lab.places["obs"].mac in error["what"]
    assert set(error) == {"severity", "what", "why", "fix"}


def test_a_bundle_tells_everything_but_the_key(runtime, tmp_path):
    key = base64.b64encode(os.urandom(32)).decode()
    keys = runtime / "keys"
    keys.write_text(key + "\n")
    keys.chmod(0o600)
    dropins = runtime / "dropins"
    dropins.mkdir()
    (dropins / "keys.yaml").write_text(f"gossip: {{encryption: required, keyring_file: {keys}}}\n")
    sets = (f"config.dropin_dir={dropins}",)
    with labs.temporary("keyed", nodes=2, ips=2, sets=sets) as lab:
        lab.settle()
        config = ("--config", str(lab.file("n1", "yaml")))
        done = wayout(lab, "n1", "bundle", *config, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        path = tmp_path / done.stdout.strip()

    assert path.name.startswith("wayout-bundle-n1-")
    assert path.stat().st_mode & 0o077 == 0
    with tarfile.open(path) as tar:
        parts = {
            Path(each.name).name: tar.extractfile(each).read().decode() for each in tar.getmembers()
        }
    assert {"status.json", "members.json", "egress.json", "history.json"} <= set(parts)
    assert {"config.json", "doctor.json", "host.txt", "journal.txt"} <= set(parts)
    assert json.loads(parts["status.json"])["node"]["name"] == "n1"
    assert all(each["cause"] == "start" for each in json.loads(parts["history.json"]))
    assert str(keys) in parts["config.json"]
    raw = base64.b64decode(key)
    for name, text in parts.items():
        assert key not in text, name
        assert raw.hex() not in text, name
