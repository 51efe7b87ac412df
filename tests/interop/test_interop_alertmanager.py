"""Two real alertmanagers and a daemon of ours in one cluster, each with its own defaults."""

import json
import signal
import sys
import time

import pytest

from agent.lab import faults
from agent.lab.hosts import find
from agent.lab.processes import send
from support.mixed import PORT, eventually, killed, mixed

PROGRAM = find("prometheus-alertmanager") or find("alertmanager")

pytestmark = [
    pytest.mark.interop,
    pytest.mark.netns,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        PROGRAM is None,
        reason="needs alertmanager (Debian: apt-get install prometheus-alertmanager)",
    ),
]

PATIENCE = 30.0
"""Seconds for what takes two on an idle machine."""
MINUTE = 60.0
BETWEEN = 1.0
ALERTMANAGERS = ("n1", "n2")
OURS = "n3"
GUEST = "n4"
SETTINGS = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"
ASK = """
import sys, urllib.request
method, path, body = sys.argv[1:]
request = urllib.request.Request("http://127.0.0.1:9093/api/v2" + path, method=method)
request.add_header("Content-Type", "application/json")
data = body.encode() or None
sys.stdout.write(urllib.request.urlopen(request, data, timeout=10).read().decode())
"""


def start(lab, name, *peers):
    """Start an alertmanager in a host, and wait until it answers."""
    folder = lab.record.folder / f"{name}.alerts"
    folder.mkdir(exist_ok=True)
    (folder / "alertmanager.yml").write_text(SETTINGS)
    program = lab.guest(
        name,
        PROGRAM,
        "--log.level=debug",
        f"--config.file={folder}/alertmanager.yml",
        f"--storage.path={folder}",
        "--web.listen-address=127.0.0.1:9093",
        f"--cluster.listen-address={lab.ip(name)}:{PORT}",
        f"--cluster.advertise-address={lab.ip(name)}:{PORT}",
        *(f"--cluster.peer={lab.ip(peer)}:{PORT}" for peer in peers),
    )
    eventually(lambda: peers_of(lab, name), PATIENCE, f"the alertmanager of {name} answers")
    return program


def ask(lab, name, method, path, body=None):
    text = "" if body is None else json.dumps(body)
    argv = [sys.executable, "-I", "-c", ASK, method, path, text]
    told = lab.network.run(name, argv, check=False)
    return json.loads(told) if told else None


def peers_of(lab, name):
    """The hosts of those whom an alertmanager holds for alive; empty while it does not answer."""
    told = ask(lab, name, "GET", "/status")
    return (
        {each["address"].rpartition(":")[0] for each in told["cluster"]["peers"]} if told else set()
    )


def members(lab):
    """Our members by the name of their host; alertmanagers change theirs with every start."""
    hosts = {lab.ip(name): name for name in lab.nodes}
    return {hosts[row["address"]]: row for row in lab.members(OURS).values()}


def state_of(lab, name):
    return members(lab).get(name, {}).get("state")


def everybody(lab):
    return {lab.ip(each) for each in (*ALERTMANAGERS, OURS)}


def acquainted(lab):
    rows = members(lab)
    return all(
        rows.get(each, {}).get("state") == "alive" for each in (*ALERTMANAGERS, OURS)
    ) and all(peers_of(lab, each) == everybody(lab) for each in ALERTMANAGERS)


@pytest.fixture(scope="module")
def lab():
    with mixed("alerts", nodes=4, ips=2) as lab:
        start(lab, "n1")
        start(lab, "n2", "n1")
        gossip = {"seeds": [lab.ip("n1")], "delegate_version": "none"}
        lab.daemon(OURS, gossip=gossip, ips=lab.ips)
        eventually(lambda: acquainted(lab), PATIENCE, "everybody sees everybody")
        eventually(lambda: lab.assigned(OURS), PATIENCE, "our node has its addresses")
        yield lab


@pytest.fixture(scope="module")
def minute(lab):
    """Looks at everybody, one a second or as many as the machine can take, for a minute."""
    looks = []
    limit = time.monotonic() + MINUTE
    while time.monotonic() < limit:
        began = time.monotonic()
        theirs = {each: peers_of(lab, each) for each in ALERTMANAGERS}
        looks.append((theirs, members(lab), lab.egresses(OURS)))
        time.sleep(max(0.0, began + BETWEEN - time.monotonic()))
    assert len(looks) >= MINUTE / 6, "too few looks to say anything"
    return looks


def test_alertmanagers_see_everybody_at_every_look_for_a_minute(lab, minute):
    expected = dict.fromkeys(ALERTMANAGERS, everybody(lab))

    assert [theirs for theirs, _, _ in minute if theirs != expected] == []


def test_we_see_everybody_alive_and_alertmanagers_as_nobody_who_could_carry(minute):
    for _, rows, _ in minute:
        assert {name: row["state"] for name, row in rows.items()} == dict.fromkeys(
            (*ALERTMANAGERS, OURS), "alive"
        )
        for each in ALERTMANAGERS:
            assert (rows[each]["eligible"], rows[each]["reasons"]) == (False, ["not_wayout"])


def test_an_alertmanager_never_owns_an_address_nor_stands_by_for_one(minute):
    found = [row for _, _, listed in minute for row in listed]

    assert len(found) == 2 * len(minute)
    assert {(row["state"], row["owner"], row["standby"]) for row in found} == {
        ("assigned", OURS, None)
    }


def test_probes_are_answered_by_datagrams(lab, minute):  # noqa: ARG001
    # As with serf: said once a second if our answers could not be read.
    for name in ALERTMANAGERS:
        assert "[DEBUG] memberlist: Stream connection" in lab.heard(name), "it would not say so"
        assert lab.heard(name).count("other probes failed") < MINUTE / 6


def test_a_silence_that_one_alertmanager_makes_reaches_the_other_and_harms_nobody(lab):
    silence = {
        "matchers": [{"name": "alertname", "value": "x" * 3000, "isRegex": False}],
        "startsAt": "2020-01-01T00:00:00Z",
        "endsAt": "2200-01-01T00:00:00Z",
        "createdBy": "a test",
        "comment": "too long for a datagram",
    }
    made = ask(lab, "n1", "POST", "/silences", silence)["silenceID"]
    eventually(
        lambda: made in {each["id"] for each in ask(lab, "n2", "GET", "/silences")},
        PATIENCE,
        "the other alertmanager has the silence",
    )

    assert acquainted(lab)


def test_an_alertmanager_that_ends_is_seen_as_left(lab):
    program = start(lab, GUEST, "n1")
    eventually(lambda: state_of(lab, GUEST) == "alive", PATIENCE, "we see the third alertmanager")
    killed(program, signal.SIGTERM, PATIENCE)
    eventually(lambda: state_of(lab, GUEST) == "left", PATIENCE, "we see that it has left")

    assert acquainted(lab)


def test_an_alertmanager_that_hangs_or_hears_no_datagrams_is_lost_for_nobody(lab):
    [program] = [each for key, each in lab.record.daemons.items() if key.startswith("guest n2 ")]
    rules = (
        "add table inet t; add chain inet t i { type filter hook input priority 0; }; "
        f"add rule inet t i udp dport {PORT} drop"
    )
    told = set()

    def look():
        told.add(state_of(lab, "n2"))
        return peers_of(lab, "n1") == everybody(lab)

    send(program, signal.SIGSTOP)
    time.sleep(1.5)
    send(program, signal.SIGCONT)
    eventually(lambda: look() and acquainted(lab), PATIENCE, "everybody sees everybody again")
    lab.network.run("n2", ["nft", rules])
    try:
        eventually(
            lambda: look() and "datagrams_blocked" in lab.logged(OURS),
            PATIENCE,
            "we say that datagrams do not arrive",
        )
        limit = time.monotonic() + 10
        while time.monotonic() < limit:
            assert look(), "the other alertmanager has lost somebody"
            time.sleep(0.5)
    finally:
        lab.network.run("n2", ["nft", "delete table inet t"])
    eventually(lambda: acquainted(lab), PATIENCE, "everybody sees everybody again")

    assert told <= {"alive", "suspect"}


def test_a_daemon_that_is_killed_is_missed_by_alertmanagers_and_comes_back(lab):
    faults.crash(lab, OURS)
    others = {lab.ip(each) for each in ALERTMANAGERS}
    eventually(
        lambda: all(peers_of(lab, each) == others for each in ALERTMANAGERS),
        PATIENCE,
        "both alertmanagers miss it",
    )
    lab.start([OURS])
    eventually(lambda: acquainted(lab), PATIENCE, "everybody sees everybody again")
