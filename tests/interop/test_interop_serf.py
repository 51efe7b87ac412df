"""Real serf agents beside real daemons: each sees the other alive, and serf owns nothing.

One lab holds four clusters, so that their minutes pass together:

joined   n1 and n2 are ours, n3 is a serf that joined them; guests come to n4 and go
joining  n5 and n6 are serfs, n7 is ours and joined them
sealed   n8 is ours, n9 a serf with the same key
apart    n10 is ours, n11 a serf with another delegate version, each a seed of the other
"""

import base64
import json
import signal
import time

import pytest

from agent.lab import faults
from agent.lab.hosts import find
from agent.lab.processes import send
from support.mixed import PORT, eventually, killed, mixed
from support.serfs import seen, serf

pytestmark = [
    pytest.mark.interop,
    pytest.mark.netns,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(find("serf") is None, reason="needs serf (Debian: apt-get install serf)"),
]

PATIENCE = 30.0
"""Seconds for what takes two on an idle machine."""
MINUTE = 60.0
BETWEEN = 1.0
KEY = bytes(range(32))
OURS = {"joined": ("n1", "n2"), "joining": ("n7",), "sealed": ("n8",)}
SERFS = {"joined": ("n3",), "joining": ("n5", "n6"), "sealed": ("n9",)}
CLUSTERS = tuple(OURS)
SPEAKS_SERF = {"delegate_version": "serf"}


def everybody(cluster):
    return {*OURS[cluster], *SERFS[cluster]}


def seeds(lab, *names):
    return {"seeds": [lab.ip(name) for name in names]}


def alive_for_ours(lab, name):
    return {each for each, row in lab.members(name).items() if row["state"] == "alive"}


def alive_for_serf(lab, name):
    return {each for each, status in seen(lab, name).items() if status == "alive"}


def acquainted(lab, cluster):
    names = everybody(cluster)
    return all(alive_for_ours(lab, each) == names for each in OURS[cluster]) and all(
        alive_for_serf(lab, each) == names for each in SERFS[cluster]
    )


def kept(true, seconds):
    """Whether it holds at every look for so long."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if not true():
            return False
        time.sleep(BETWEEN / 2)
    return True


@pytest.fixture(scope="module")
def lab():
    with mixed("serf", nodes=11, ips=6) as lab:
        keys = lab.record.folder / "keys"
        keys.write_bytes(base64.b64encode(KEY) + b"\n")
        keys.chmod(0o600)
        sealing = {"keyring_file": str(keys), "encryption": "required"}
        ips = lab.ips
        # The first ones are a cluster of their own before any serf comes.
        for name in OURS["joined"]:
            lab.daemon(name, gossip={**seeds(lab, "n1", "n2"), **SPEAKS_SERF}, ips=ips[:4])
        serf(lab, "n5")
        serf(lab, "n6", seeds=["n5"])
        lab.daemon("n7", gossip={**seeds(lab, "n5", "n6"), **SPEAKS_SERF}, ips=ips[4:5])
        serf(lab, "n9", f"-encrypt={base64.b64encode(KEY).decode()}")
        lab.daemon("n8", gossip={**seeds(lab, "n9"), **SPEAKS_SERF, **sealing}, ips=ips[5:])
        serf(lab, "n11")
        lab.daemon("n10", gossip=seeds(lab, "n11"))
        eventually(lambda: lab.assigned("n1"), PATIENCE, "our own cluster has settled")
        serf(lab, "n3", seeds=["n1", "n2"])
        for cluster in CLUSTERS:
            eventually(
                lambda cluster=cluster: acquainted(lab, cluster),
                PATIENCE,
                f"{cluster}: everybody sees everybody",
            )
        eventually(lambda: lab.assigned("n7"), PATIENCE, "n7 has its address")
        eventually(lambda: lab.assigned("n8"), PATIENCE, "n8 has its address")
        yield lab


@pytest.fixture(scope="module")
def minute(lab):
    """Looks at everybody, one a second or as many as the machine can take, for a minute."""
    looks = []
    limit = time.monotonic() + MINUTE
    while time.monotonic() < limit:
        began = time.monotonic()
        ours = [*(each for names in OURS.values() for each in names), "n10"]
        serfs = [*(each for names in SERFS.values() for each in names), "n11"]
        looks.append(
            {
                "serf": {each: seen(lab, each) for each in serfs},
                "ours": {each: lab.members(each) for each in ours},
                "egress": {each: lab.egresses(each) for each in ours},
            }
        )
        time.sleep(max(0.0, began + BETWEEN - time.monotonic()))
    assert len(looks) >= MINUTE / 6, "too few looks to say anything"
    return looks


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_serf_sees_everybody_alive_at_every_look_for_a_minute(minute, cluster):
    expected = dict.fromkeys(everybody(cluster), "alive")
    odd = [
        look["serf"][name]
        for look in minute
        for name in SERFS[cluster]
        if look["serf"][name] != expected
    ]

    assert odd == []


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_we_see_everybody_alive_and_serf_as_nobody_who_could_carry(minute, cluster):
    for look in minute:
        for name in OURS[cluster]:
            rows = look["ours"][name]
            assert rows.keys() == everybody(cluster)
            assert {row["state"] for row in rows.values()} == {"alive"}
            for each in SERFS[cluster]:
                assert (rows[each]["eligible"], rows[each]["reasons"]) == (False, ["not_wayout"])
            for each in OURS[cluster]:
                assert (rows[each]["eligible"], rows[each]["reasons"]) == (True, [])


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_serf_never_owns_an_address_nor_stands_by_for_one(minute, cluster):
    found = [row for look in minute for name in OURS[cluster] for row in look["egress"][name]]

    assert len(found) >= len(minute)
    assert {row["state"] for row in found} == {"assigned"}
    assert {row["owner"] for row in found} <= set(OURS[cluster])
    assert {row["standby"] for row in found} <= {*OURS[cluster], None}


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_no_address_moves_because_serf_is_there(minute, cluster):
    for name in OURS[cluster]:
        owners = {
            tuple((row["ip"], row["owner"], row["epoch"]) for row in look["egress"][name])
            for look in minute
        }
        assert len(owners) == 1


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_probes_are_answered_by_datagrams(lab, minute, cluster):  # noqa: ARG001
    # Serf falls back to TCP, and says so, when a datagram is not answered: once a second, if
    # our answers could not be read. A busy machine may be late now and then.
    for name in SERFS[cluster]:
        assert lab.heard(name).count("other probes failed") < MINUTE / 6


def test_those_who_speak_another_version_do_not_take_each_other_for_members(minute):
    for look in minute:
        assert look["serf"]["n11"] == {"n11": "alive"}
        assert look["ours"]["n10"].keys() == {"n10"}


def test_a_version_that_does_not_fit_is_said_on_both_sides_and_ends_nobody(lab, minute):  # noqa: ARG001
    told = lab.network.run("n11", ["serf", "join", f"{lab.ip('n10')}:{PORT}"], check=False)
    warnings = [
        line
        for line in map(json.loads, lab.logged("n10").splitlines())
        if line["level"] == "warning"
    ]

    assert "delegate protocol version (0) is incompatible" in told
    assert "Node 'n10' delegate protocol version (0)" in lab.heard("n11")
    assert {line["reason"] for line in warnings if line["event"] == "gossip.sync_failed"} == {
        "versions"
    }
    assert any(line.get("peer", "").startswith(lab.ip("n11")) for line in warnings)
    assert lab.state("n10") == "running"
    assert seen(lab, "n11") == {"n11": "alive"}


def test_what_serf_says_to_serf_is_heard_and_harms_nobody(lab):
    lab.network.run("n5", ["serf", "event", "deploy", "everywhere"])
    eventually(
        lambda: "user-event: deploy" in lab.heard("n6"), PATIENCE, "the other serf hears the event"
    )
    lab.network.run("n5", ["serf", "tags", "-set", "rack=7"])
    eventually(
        lambda: lab.members("n7")["n5"]["incarnation"] > 1, PATIENCE, "we hear that a tag is new"
    )

    assert acquainted(lab, "joining")


def test_a_serf_that_hangs_for_three_seconds_is_not_lost_for_good(lab):
    owners = lab.assigned("n1")
    [agent] = [each for key, each in lab.record.daemons.items() if key.startswith("guest n3 ")]
    send(agent, signal.SIGSTOP)
    try:
        time.sleep(3.0)
        hung = agent.stopped
    finally:
        send(agent, signal.SIGCONT)
    eventually(lambda: acquainted(lab, "joined"), PATIENCE, "everybody sees everybody again")

    assert hung
    assert kept(lambda: acquainted(lab, "joined"), 8.0)
    assert lab.assigned("n1") == owners


def status_of(lab, who):
    return {lab.members(each).get(who, {}).get("state") for each in OURS["joined"]}


def test_a_serf_that_leaves_is_seen_as_left(lab):
    agent = serf(lab, "n4", seeds=["n1"])
    eventually(lambda: status_of(lab, "n4") == {"alive"}, PATIENCE, "both see the guest")
    lab.network.run("n4", ["serf", "leave"])
    states = set()

    def left():
        states.update(status_of(lab, "n4"))
        return status_of(lab, "n4") == {"left"}

    eventually(left, PATIENCE, "both see that it has left")
    killed(agent, signal.SIGKILL)

    assert states <= {"alive", "left"}
    assert kept(lambda: status_of(lab, "n4") == {"left"}, 4.0)


def test_a_serf_that_is_killed_is_missed_as_the_other_serf_misses_it(lab):
    agent = serf(lab, "n4", seeds=["n1"])
    eventually(lambda: status_of(lab, "n4") == {"alive"}, PATIENCE, "both see the guest")
    killed(agent, signal.SIGKILL)
    eventually(lambda: status_of(lab, "n4") == {"dead"}, PATIENCE, "both see that it is dead")
    eventually(lambda: seen(lab, "n3").get("n4") == "failed", PATIENCE, "serf agrees")

    assert alive_for_ours(lab, "n1") == everybody("joined")


def test_a_daemon_that_stops_is_gone_for_serf_and_comes_back(lab):
    faults.stop(lab, "n7")
    eventually(
        lambda: not {seen(lab, each)["n7"] for each in SERFS["joining"]} & {"alive"},
        PATIENCE,
        "both serfs see that it is gone",
    )
    lab.start(["n7"])
    eventually(lambda: acquainted(lab, "joining"), PATIENCE, "everybody sees everybody again")


def test_a_daemon_that_is_killed_is_missed_by_serf_and_comes_back(lab):
    faults.crash(lab, "n7")
    eventually(
        lambda: {seen(lab, each)["n7"] for each in SERFS["joining"]} == {"failed"},
        PATIENCE,
        "both serfs miss it",
    )
    lab.start(["n7"])
    eventually(lambda: acquainted(lab, "joining"), PATIENCE, "everybody sees everybody again")
