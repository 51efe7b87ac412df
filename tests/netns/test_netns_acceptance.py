"""The thread by number, on real daemons: what a reload changes while everything goes on."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import yaml

from agent.client import call, rows
from agent.lab import cluster as labs
from config.documents import Text
from config.leaves import value_at
from config.parse import Surroundings, parse
from config.problems import ConfigError
from config.schema.option import Modifiability
from config.schema.table import OPTIONS
from support.annotated import PROGRAM
from support.managed import heard, managed

pytestmark = [pytest.mark.netns, pytest.mark.slow, pytest.mark.timeout(240)]

LIVE = (Modifiability.DYNAMIC, Modifiability.REBIND)
HURRY = "config: {debounce: 10ms, debounce_max: 20ms, confirm_timeout: 1s}\n"
KEY = "q83vASNFZ4mrze8BI0VniQ==\n"
VALUES = [
    *(False, True, 1, 2, 3, 4, 5, 0.5, 1.5, 2.0, "0s", "50ms", "150ms", "300ms", "1s", "2s", "5s"),
    *(
        "1m",
        "20%",
        "eth0",
        "r7",
        "n2",
        "10.0.0.0/8",
        "10.77.0.201",
        "127.0.0.1:19765",
        "127.0.0.1:19766",
        "127.0.0.1:19767",
    ),
    *(["192.0.2.7"], ["10.0.0.0/8"], ["eth*"], {"a": "b"}, "some.name", "echo", ["echo"], "/tmp/x"),
]
SCRAPER = """
import sys, time, urllib.request
counted = lost = 0
def scrape(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as got:
        assert b"wayout_" in got.read()
def refused(error):
    return isinstance(getattr(error, "reason", None), ConnectionRefusedError)
print("begun", flush=True)
end = time.monotonic() + float(sys.argv[1])
ports = sys.argv[2:]
while time.monotonic() < end:
    try:
        scrape(ports[0])
    except OSError as error:
        lost += not refused(error)
        ports.reverse()
        scrape(ports[0])
    counted += 1
    time.sleep(0.005)
print(counted, lost)
"""
HOLDER = """
import socket, time
held = socket.create_server(("127.0.0.1", 19003))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(monkeypatch):
    """Short, since the path of a Unix socket may have 107 letters."""
    made = Path(tempfile.mkdtemp(prefix="wa"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(made))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def lab(folder):  # noqa: ARG001 - where the lab keeps its files
    with labs.temporary("thread", nodes=3, ips=6) as cluster:
        cluster.settle()
        yield cluster


def eventually(found, patience=15.0):
    limit = time.monotonic() + patience
    while not (value := found()):
        assert time.monotonic() < limit, "it did not come about"
        time.sleep(0.05)
    return value


def owned(lab, viewer="n2"):
    return {row["ip"]: row["owner"] for row in rows(str(lab.file(viewer, "sock")), "egress_list")}


def reloaded(lab, name, more):
    path = lab.file(name, "yaml")
    path.write_text(lab.config(name).replace(*more))
    return call(str(lab.file(name, "sock")), "reload", timeout=30)


def test_t01_and_test_t38_a_live_change_restarts_nothing_and_an_unfit_node_hands_over(lab):
    pids = {name: each.pid for name, each in lab.record.daemons.items()}
    held = owned(lab)
    for name in lab.nodes:
        done = reloaded(lab, name, ("gossip: {", "gossip: {probe_interval: 700ms, "))
        assert done["result"] == "applied", done
    time.sleep(2)

    asked = {"which": "running", "origin": False, "changed_only": False}
    derived = call(str(lab.file("n3", "sock")), "config_show", **asked)["derived"]
    members = call(str(lab.file("n3", "sock")), "status")["members"]
    assert {name: lab.record.daemons[name].alive for name in pids} == dict.fromkeys(pids, True)
    assert (members["alive"], members["suspect"], members["dead"]) == (3, 0, 0)
    assert owned(lab) == held
    assert any(row["from"].get("probe_interval") == 0.7 for row in derived)

    began = time.monotonic()
    assert reloaded(lab, "n1", (", address", ", eligible: false, address"))["result"] == "applied"
    eventually(lambda: set(owned(lab).values()) == {"n2", "n3"})
    assert time.monotonic() - began < 30
    inside = lab.network.run("n1", ["ip", "-o", "address", "show"])
    assert not [ip for ip in lab.ips if f" {ip}/" in inside]
    assert call(str(lab.file("n1", "sock")), "status")["members"]["alive"] == 3


def taken(document):
    """The settings of a document, None if it is refused."""
    try:
        text = Text("config.yaml", json.dumps(document).encode())
        return parse([text], Surroundings(hostname="n1")).settings
    except ConfigError:
        return None


def changed(document, steps, value):
    """The document with one value set."""
    whole = json.loads(json.dumps(document))
    holder = whole
    for step in steps[:-1]:
        holder = holder.setdefault(step, {})
    holder[steps[-1]] = value
    return whole


def flips(base):
    """By path, another value of each live option; and the options for which there was none."""
    made, none = {}, []
    before = taken(base)
    for path, entry in OPTIONS.items():
        if entry.option.modifiability not in LIVE:
            continue
        steps = tuple("a" if step == "*" else step for step in path)
        words = [*getattr(entry.form, "schema", {}).get("enum", ()), *VALUES]
        for value in words:
            if value in made.values() and str(value).startswith("127."):
                continue  # Two listeners have two ports.
            after = taken(changed(base, steps, value))
            if after is not None and value_at(after, steps) != value_at(before, steps):
                made[steps] = value
                break
        else:
            none.append(".".join(path))
    return made, none


def show(sock):
    return call(sock, "config_show", which="running", origin=False, changed_only=False)["settings"]


def shown(settings, steps):
    for step in steps:
        settings = settings[step]
    return settings


def test_t27_every_live_option_is_live(folder):
    """Another value for each, on a daemon that runs: in force at once, and nothing is broken."""
    with managed(folder) as (daemon, path, manager):
        heard(manager, "READY=1")
        base = json.loads(json.dumps(yaml.safe_load(path.read_text() + HURRY)))
        base["egress"]["egresses"] = {"a": {"egress_ip": "10.77.0.201"}}
        base["health"] = {"checks": {"a": {"type": "tcp", "target": "127.0.0.1:1"}}}
        base["egress"]["removal_guard"] = "off"
        base["state"]["dir"] = str(folder / "state")
        made, none = flips(base)
        sock = str(folder / "sock")
        for steps, value in made.items():
            path.write_text(json.dumps(changed(base, steps, value)))
            done = call(sock, "reload", timeout=20)
            sock = value if steps == ("api", "socket") else str(folder / "sock")
            where = ".".join(steps)
            assert done["result"] == "applied", (where, value, done)
            assert any(each["path"].startswith(where) for each in done["changes"]), where
            assert not done["pending_restart"], where
            assert daemon.poll() is None, where
            if steps == ("api", "socket"):
                path.write_text(json.dumps(base))
                assert call(sock, "reload", timeout=20)["result"] == "applied"
                sock = str(folder / "sock")
        # Nobody listens at port 1, so with the check this node is unfit.
        path.write_text(json.dumps({key: base[key] for key in base if key != "health"}))
        assert call(sock, "reload", timeout=20)["result"] == "applied"
        assert show(sock)["gossip"]["fanout"] == taken(base).gossip.fanout
        eventually(lambda: rows(sock, "egress_list")[0]["owner"] == "n1")
    # These take a partner (a file, another kind of check, a free name) and have tests of their own.
    prefixes = ("gossip.encryption", "egress.egresses.*.", "health.checks.*.")
    assert [each for each in none if not each.startswith(prefixes)] == []
    assert len(made) >= 60


def test_t29_the_port_of_metrics_moves_while_it_is_scraped(folder):
    with managed(folder, more="metrics: {listen: 127.0.0.1:19001}\n") as (daemon, path, manager):
        heard(manager, "READY=1")
        good, sock = path.read_text(), str(folder / "sock")
        inside = ["nsenter", f"--net=/proc/{daemon.pid}/ns/net", sys.executable, "-c"]
        words = [*inside, SCRAPER, "3", "19001", "19002"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as scraper:
            assert scraper.stdout.readline() == "begun\n"
            for _ in range(3):
                for port in ("19002", "19001"):
                    path.write_text(good.replace("19001", port))
                    assert call(sock, "reload", timeout=20)["result"] == "applied"
            counted, lost = map(int, scraper.stdout.readline().split())
        assert counted > 50
        # Whoever comes in the very microsecond of the closing is reset by the kernel.
        assert lost <= 1
        words = [*inside, HOLDER]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as other:
            try:
                other.stdout.readline()
                path.write_text(good.replace("19001", "19003"))
                done = call(sock, "reload", timeout=20)
            finally:
                other.kill()
        assert done["result"] == "rejected"
        assert "19003" in str(done["errors"])
        assert subprocess.run([*inside, SCRAPER, "0.1", "19001"], check=False).returncode == 0


def world(folder, text, down=""):
    """What the cluster says of n1."""
    objects = {"wayout/wayout-n1": {"config.yaml": text}}
    whole = {"nodes": {"n1": "wayout-n1"} if text else {}, "objects": objects, "down": down}
    temporary = folder / "world.new"
    temporary.write_text(json.dumps(whole))
    temporary.rename(folder / "world.json")


def test_t20_and_test_t48_a_daemon_follows_its_annotation_and_keeps_it_while_its_source_is_away(
    folder,
):
    world(folder, "node: {max_addresses: 7}")
    with managed(folder, more=HURRY, program=PROGRAM) as (_, _, manager):
        heard(manager, "READY=1")
        sock = str(folder / "sock")

        def limit():
            return show(sock)["node"]["max_addresses"]

        eventually(lambda: limit() == 7)
        assert (folder / "state" / "node-layer.json").exists()
        world(folder, "node: {max_addresses: 8}", down="connection refused")
        eventually(lambda: call(sock, "config_status")["annotation"]["standing"] == "kept")
        assert limit() == 7
        world(folder, "node: {max_addresses: 9}")
        eventually(lambda: limit() == 9, patience=30)
        world(folder, "")
        eventually(lambda: limit() == 0, patience=30)
    (folder / "notify").unlink()
