"""An encrypted cluster of two daemons and two serfs goes through a bad minute and new keys.

n1 and n2 are ours, n3 and n4 are serfs. Serf distributes keys by queries that only serfs answer,
so the operator does each step twice: `serf keys …` and `wayout keyring …`.
"""

import base64
import signal
import threading
import time

import pytest
from click.testing import CliRunner

from agent.cli.group import wayout
from agent.keys.file import fingerprint
from agent.lab import faults
from agent.lab.hosts import find
from agent.lab.processes import send
from support.mixed import PORT, eventually, mixed
from support.serfs import seen, serf

pytestmark = [
    pytest.mark.interop,
    pytest.mark.netns,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(find("serf") is None, reason="needs serf (Debian: apt-get install serf)"),
]

PATIENCE = 30.0
OLD, NEW = bytes(range(32)), bytes([7]) * 32
OURS, SERFS = ("n1", "n2"), ("n3", "n4")
EVERYBODY = {*OURS, *SERFS}
BOTH_SERFS = "2/4 nodes reported success"
HANGS = 1.5
"""Seconds; a suspect of a cluster of four may refute for two."""
GONE = {"dead", "left", "failed", "leaving"}
UDP_AWAY = (
    "add table inet t; add chain inet t i {{ type filter hook input priority 0; }}; "
    "add rule inet t i udp dport {0} drop"
)


def text(key):
    return base64.b64encode(key).decode()


@pytest.fixture(scope="module")
def lab():
    with mixed("serfkeys", nodes=4, ips=2) as lab:
        seeds = [lab.ip(name) for name in OURS]
        for name in OURS:
            path = lab.record.folder / f"{name}.keys"
            path.write_text(text(OLD) + "\n")
            path.chmod(0o600)
            sealing = {"keyring_file": str(path), "encryption": "required"}
            gossip = {"seeds": seeds, "delegate_version": "serf", **sealing}
            lab.daemon(name, gossip=gossip, ips=lab.ips)
        # A serf that finds nobody to join gives up.
        eventually(lambda: lab.assigned("n1"), PATIENCE, "our own cluster has settled")
        for name in SERFS:
            serf(lab, name, f"-encrypt={text(OLD)}", seeds=["n1", "n2"])
        eventually(lambda: acquainted(lab), PATIENCE, "everybody sees everybody")
        yield lab


def states(lab, name):
    """What a member says of everybody."""
    if name in SERFS:
        return seen(lab, name)
    return {each: row["state"] for each, row in lab.members(name).items()}


def acquainted(lab):
    return all(states(lab, name) == dict.fromkeys(EVERYBODY, "alive") for name in EVERYBODY)


class Watch:
    """Looks at everybody all the time while the block lasts: who ever held whom for gone."""

    def __init__(self, lab, *watching):
        self._lab = lab
        self._watching = watching or sorted(EVERYBODY)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.losses = []
        self.looks = 0

    def _look(self):
        while not self._over.wait(0.3):
            for name in self._watching:
                found = states(self._lab, name)
                self.looks += bool(found)
                self.losses += [(name, who, how) for who, how in found.items() if how in GONE]
                if found and EVERYBODY - found.keys():
                    self.losses.append((name, EVERYBODY - found.keys(), "unknown"))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


def keyring(lab, name, *words, typed=None):
    where = ["--socket", str(lab.file(name, "sock"))]
    return CliRunner().invoke(wayout, ["keyring", *words, *where], input=typed)


def serf_keys(lab, *words):
    """Serf counts those who do not answer as failures, as ours never do."""
    return lab.network.run("n3", ["serf", "keys", *words], check=False)


def test_keys_are_rotated_in_a_mixed_cluster_without_one_member_lost(lab):
    with Watch(lab) as watch:
        refused = keyring(lab, "n1", "use", "-", typed=text(OLD))
        assert "n3, n4 cannot be asked for keys" in refused.stderr
        assert keyring(lab, "n1", "add", "-", typed=text(NEW)).exit_code == 0
        assert BOTH_SERFS in serf_keys(lab, "-install", text(NEW))
        time.sleep(2)
        for words in (("use", "-use"), ("remove", "-remove")):
            key = NEW if words[0] == "use" else OLD
            assert BOTH_SERFS in serf_keys(lab, words[1], text(key))
            done = keyring(lab, "n2", words[0], "-", "--force", typed=text(key))
            assert done.exit_code == 0, done.stderr
            time.sleep(3)
        told = keyring(lab, "n1", "list")
        assert acquainted(lab)

    assert watch.looks > 10
    assert watch.losses == []
    assert fingerprint(NEW) in told.stdout
    assert fingerprint(OLD) not in told.stdout
    for name in OURS:
        assert (lab.record.folder / f"{name}.keys").read_text() == text(NEW) + "\n"
        for key in (OLD, NEW):
            assert text(key) not in lab.logged(name)


@pytest.mark.parametrize("stopped", ["n2", "n4"])
def test_whoever_hangs_for_a_while_is_lost_for_nobody(lab, stopped):
    others = sorted(EVERYBODY - {stopped})
    with Watch(lab, *others) as watch:
        process = program(lab, stopped)
        send(process, signal.SIGSTOP)
        time.sleep(HANGS)
        send(process, signal.SIGCONT)
        eventually(lambda: acquainted(lab), PATIENCE, "everybody sees everybody again")

    assert watch.losses == []


def program(lab, name):
    prefix = name if name in OURS else f"guest {name} "
    return next(each for key, each in lab.record.daemons.items() if key.startswith(prefix))


def test_without_datagrams_streams_keep_everybody_for_fifteen_seconds(lab):
    with Watch(lab) as watch:
        lab.network.run("n4", ["nft", UDP_AWAY.format(PORT)])
        eventually(
            lambda: any("datagrams_blocked" in lab.logged(name) for name in OURS),
            PATIENCE,
            "one of ours says that datagrams do not arrive",
        )
        time.sleep(15.0)
        lab.network.run("n4", ["nft", "delete table inet t"])
        eventually(lambda: acquainted(lab), PATIENCE, "everybody sees everybody again")

    assert watch.losses == []


def test_a_daemon_leaves_and_rejoins_with_the_new_key_from_its_file(lab):
    faults.stop(lab, "n2")
    eventually(
        lambda: all(states(lab, each).get("n2") in GONE for each in ("n1", *SERFS)),
        PATIENCE,
        "everybody sees that it is gone",
    )
    assert states(lab, "n1")["n2"] == "left"
    lab.start(["n2"])
    eventually(lambda: acquainted(lab), PATIENCE, "everybody sees everybody again")


def test_a_serf_leaves_and_rejoins(lab):
    process = program(lab, "n4")
    lab.network.run("n4", ["serf", "leave"], check=False)
    eventually(lambda: states(lab, "n1").get("n4") == "left", PATIENCE, "we see that it left")
    send(process, signal.SIGKILL)
    serf(lab, "n4", f"-encrypt={text(NEW)}", seeds=["n1"])
    eventually(lambda: acquainted(lab), PATIENCE, "everybody sees everybody again")
