"""The lab on real namespaces: what the observer sees, what faults do, what stays behind."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent.lab import cluster, faults, record
from agent.lab.hosts import find
from agent.lab.observation import Observation
from agent.lab.processes import LabError, Process

pytestmark = pytest.mark.netns
WAYOUT = [sys.executable, "-I", "-m", "agent"]
NEEDS_NFT = pytest.mark.skipif(find("nft") is None, reason="needs nft")


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    """Labs of this test are kept apart from all others."""
    folder = Path("/run", f"wayout-test-{os.getpid()}-{tmp_path.name[-8:]}")
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    for name in record.names():
        cluster.find(name).down()
    mark = f"XDG_RUNTIME_DIR={folder}".encode()
    assert [each for each in Path("/proc").glob("[0-9]*") if mark in variables(each)] == []
    folder.rmdir()


@pytest.fixture
def bare(runtime):  # noqa: ARG001 - keeps this lab apart
    """Three hosts without daemons."""
    return cluster.up("bare", nodes=3, ips=4, daemons=False)


def address(verb, ip):
    prefix, extra = ("128", ["nodad"]) if ":" in ip else ("32", [])
    return ["ip", "addr", verb, f"{ip}/{prefix}", "dev", "eth0", *(extra if verb == "add" else [])]


@pytest.mark.parametrize("number", [0, 1], ids=["IPv4", "IPv6"])
def test_a_move_is_seen_within_milliseconds(bare, number):
    ip = bare.ips[number]
    bare.network.run("n1", address("add", ip))
    with Observation(bare.network, bare.ips) as seen:
        assert seen.until(lambda: seen.timeline.macs(ip, 0, 1e18), 5)
        began = time.monotonic()
        bare.network.run("n1", address("del", ip))
        bare.network.run("n2", address("add", ip))
        ended = time.monotonic()
        assert seen.caught_up(ended + 0.1)

        (move,) = seen.timeline.moves(ip, began, ended + 0.1)

        assert bare.host_of(move.source) == "n1"
        assert bare.host_of(move.target) == "n2"
        assert began <= move.at <= ended + 0.05
        assert seen.timeline.overlaps(ip, 0, ended) == ()


@pytest.mark.parametrize("number", [0, 1], ids=["IPv4", "IPv6"])
def test_two_owners_are_an_overlap_for_as_long_as_they_last(bare, number):
    ip = bare.ips[number]
    bare.network.run("n1", address("add", ip))
    with Observation(bare.network, bare.ips) as seen:
        assert seen.until(lambda: seen.timeline.macs(ip, 0, 1e18), 5)
        bare.network.run("n2", address("add", ip))
        both = time.monotonic()
        seen.look(0.3)
        bare.network.run("n1", address("del", ip))
        alone = time.monotonic()
        assert seen.caught_up(alone + 0.1)

        doubled = sum(each.seconds for each in seen.timeline.overlaps(ip, 0, seen.timeline.until))

        assert 0.28 <= doubled <= alone - both + 0.1
        assert seen.timeline.silences(ip, both, alone) == ()


def test_the_observer_answers_nothing_itself(bare):
    with Observation(bare.network, bare.ips) as seen:
        seen.look(0.3)

        assert all(not seen.timeline.macs(ip, 0, 1e18) for ip in bare.ips)
        assert not any(ip in bare.network.run("obs", ["ip", "addr"]) for ip in bare.ips)


def test_the_observer_costs_little(bare):
    with Observation(bare.network, bare.ips) as seen:
        seen.look(0.5)
        before, began = cpu(seen.process.pid), time.monotonic()
        seen.look(1.5)

        assert (cpu(seen.process.pid) - before) / (time.monotonic() - began) < 0.15


def test_a_killed_host_falls_silent_and_comes_back_with_nothing(bare):
    ip = bare.ips[0]
    bare.network.run("n1", address("add", ip))
    with Observation(bare.network, bare.ips) as seen:
        assert seen.until(lambda: seen.timeline.macs(ip, 0, 1e18), 5)

        killed = faults.kill(bare, "n1")
        assert seen.caught_up(time.monotonic())
        assert max(each.last for each in seen.timeline.spans(ip)) < killed + 0.1
        assert bare.state("n1") == "killed"
        with pytest.raises(LabError, match="no host 'n1'"):
            bare.network.run("n1", ["true"])

    bare.network.revive(bare.places["n1"], bare.prefix)
    bare.record.save()
    assert ip not in bare.network.run("n1", ["ip", "addr"])
    assert reaches(bare, "n1", "n2")


def test_a_cut_host_has_no_carrier_until_it_is_healed(bare):
    faults.cut(bare, "n1")

    assert "NO-CARRIER" in bare.network.run("n1", ["ip", "link", "show", "eth0"])
    assert not bare.plugged("n1")
    assert not reaches(bare, "n1", "n2")

    faults.heal(bare, "n1")

    assert reaches(bare, "n1", "n2")


@NEEDS_NFT
def test_cut_off_from_peers_it_still_reaches_the_observer(bare):
    faults.cut(bare, "n1", only="peers")

    assert not reaches(bare, "n1", "n2")
    assert reaches(bare, "n1", "obs")
    assert reaches(bare, "n2", "n3")

    faults.heal(bare, "n1")

    assert reaches(bare, "n1", "n2")


@NEEDS_NFT
def test_a_cut_of_gossip_lets_the_rest_through(bare):
    faults.cut(bare, "n1", only="gossip")

    assert reaches(bare, "n1", "n2")
    assert bare.network.run("switch", ["nft", "list", "ruleset"]).count("7955") == 4

    faults.heal(bare, "n1")

    assert bare.network.run("switch", ["nft", "list", "ruleset"]) == ""


@NEEDS_NFT
def test_all_that_is_lost_is_everything(bare):
    faults.lose(bare, "n1", 100)
    assert not reaches(bare, "n1", "n2")

    faults.lose(bare, "n1", 0)
    assert reaches(bare, "n1", "n2")


def test_labs_side_by_side_do_not_meet(bare):
    other = cluster.up("other", nodes=1, ips=2, daemons=False)
    bare.network.run("n1", address("add", bare.ips[0]))
    with Observation(other.network, other.ips) as seen:
        seen.look(0.2)
        assert not seen.timeline.macs(bare.ips[0], 0, 1e18)
    other.down()

    assert record.names() == ["bare"]
    assert reaches(bare, "n1", "n2")


def test_a_second_lab_of_a_name_is_refused_and_the_first_unharmed(bare):
    with pytest.raises(LabError, match="there is a lab named 'bare' already"):
        cluster.up("bare", nodes=2, ips=2, daemons=False)

    assert reaches(bare, "n1", "n2")


def test_nothing_is_left_of_a_lab_that_is_taken_down(bare, runtime):
    processes = bare.network.processes

    bare.down()

    assert not any(each.alive for each in processes)
    assert list(runtime.iterdir()) == []


def test_another_process_with_a_pid_of_ours_is_left_alone(bare):
    mine = subprocess.Popen(["sleep", "60"])
    try:
        bare.record.daemons["n1"] = Process(mine.pid, 1)
        bare.down()
        assert mine.poll() is None
    finally:
        mine.kill()
        mine.wait()


def reaches(lab, source, target):
    argv = ["ping", "-c", "1", "-W", "1", lab.places[target].ip4]
    return "1 received" in lab.network.run(source, argv, check=False)


def variables(process):
    """The environment that a process was started with; nothing of ourselves, or of a dead one."""
    if int(process.name) == os.getpid():
        return []
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def cpu(pid):
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
