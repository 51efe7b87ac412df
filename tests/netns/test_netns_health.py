"""Real daemons that find themselves unfit, robbed of an address, or without their link."""

import contextlib
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pytest

from agent.client import call, rows
from agent.lab import cluster as labs
from agent.lab.hosts import SWITCH

pytestmark = [pytest.mark.netns, pytest.mark.slow, pytest.mark.timeout(240)]

SECOND = "10.78.0.201"
POLL = 0.01
SETTLED = 3.5
"""Seconds after which the silence of a link that has just come up is believed."""
ACQUAINTED = 11.0
"""Seconds after which members take each other's word for a release."""


@pytest.fixture(scope="module")
def lab():
    """A lab of three; not in tmp_path, since the path of a Unix socket may have 107 letters."""
    folder = Path(tempfile.mkdtemp(prefix="wh"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        with labs.temporary("health", nodes=3, ips=3) as cluster:
            cluster.settle()
            yield cluster
    shutil.rmtree(folder)


def tell(line):
    sys.stdout.write(f"{line}\n")


def ask(lab, node, verb, **arguments):
    return call(str(lab.file(node, "sock")), verb, **arguments)


def listed(lab, node, verb, **arguments):
    return rows(str(lab.file(node, "sock")), verb, **arguments)


def eventually(true, patience=10.0, say=str):
    limit = time.monotonic() + patience
    while not (found := true()):
        assert time.monotonic() < limit, f"it did not come about: {say()}"
        time.sleep(POLL)
    return found


def hosts_with(lab, ip):
    shown = {name: lab.network.run(name, ["ip", "-o", "addr"]) for name in lab.nodes}
    return [name for name, text in shown.items() if f" {ip}/" in text]


def reload(lab, name, text):
    lab.file(name, "yaml").write_text(text)
    report = ask(lab, name, "reload", seconds=20.0)
    assert report["code"] == 0, report


@contextlib.contextmanager
def configured(lab, names, change):
    """The files of these nodes changed, and as they were afterwards."""
    before = {name: lab.file(name, "yaml").read_text() for name in names}
    for name in names:
        reload(lab, name, change(name, before[name]))
    try:
        yield
    finally:
        for name in names:
            reload(lab, name, before[name])


def log_of(lab, name):
    text = lab.file(name, "log").read_text()
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def last_move(lab, name, ip):
    moves = [each for each in listed(lab, name, "history", limit=50) if each["ip"] == ip]
    return max(moves, key=lambda each: each["at"], default=None)


# -- checks --------------------------------------------------------------------------------


def test_a_failing_check_moves_the_addresses_within_a_second_and_says_why(lab):
    owners = lab.owners("n1")
    ip, owner = next(iter(owners.items()))
    other = next(name for name in lab.nodes if name != owner)
    flag = Path(lab.record.folder) / "unfit"
    check = (
        "\nhealth:\n  checks:\n"
        f"    flag: {{type: file, path: {flag}, absent: true, interval: 100ms, fall: 1, rise: 2}}\n"
    )
    with configured(lab, [owner], lambda _, text: text + check):
        eventually(lambda: ask(lab, owner, "status")["node"]["checks"][0]["state"] == "passing")
        flag.touch()
        began = time.monotonic()
        eventually(lambda: lab.owners(other).get(ip) not in {owner, None})
        took = time.monotonic() - began
        heir = lab.owners(other)[ip]
        move = eventually(lambda: last_move(lab, heir, ip))
        node = ask(lab, owner, "status")["node"]
        told = eventually(
            lambda: [
                each
                for each in listed(lab, other, "members")
                if each["name"] == owner and not each["eligible"]
            ]
        )
        name = next(each["name"] for each in listed(lab, other, "egress_list") if each["ip"] == ip)
        working = ask(lab, other, "egress_explain", name=name)
        tell(f"a failing check: another node carries it after {took:.3f} s")

        assert took < 1.0
        assert hosts_with(lab, ip) == [heir]
        assert (move["cause"], move["from"], move["to"]) == ("health", owner, heir)
        assert (node["eligible"], node["ineligible_reasons"]) == (False, ["unhealthy:flag"])
        assert told[0]["reasons"] == ["unhealthy:flag"]
        refused = next(each for each in working["candidates"] if each["name"] == owner)
        assert (refused["refusal"], refused["reasons"]) == ("unhealthy", ["unhealthy:flag"])

        flag.unlink()
        eventually(lambda: ask(lab, owner, "status")["node"]["eligible"])
    lab.settle()


# -- guarding ------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1], ids=["IPv4", "IPv6"])
def test_an_address_that_somebody_deletes_is_back_within_a_second_on_the_same_node(lab, number):
    ip = lab.ips[number]
    prefix = 128 if ":" in ip else 32
    owner = lab.owners("n1")[ip]
    eventually(lambda: hosts_with(lab, ip) == [owner])
    before = last_move(lab, owner, ip)
    lab.network.run(owner, ["ip", "addr", "del", f"{ip}/{prefix}", "dev", "eth0"])
    began = time.monotonic()
    eventually(lambda: hosts_with(lab, ip) == [owner])
    took = time.monotonic() - began
    lines = [each for each in log_of(lab, owner) if each.get("ip") == ip]
    said = [each for each in lines if each["event"] == "egress.address_removed"]
    tell(f"a deleted address ({ip}): back after {took:.3f} s, removed by {said[-1]['by']}")

    assert took < 1.0
    assert last_move(lab, owner, ip) == before, "it moved"
    assert "egress.restored" in [each["event"] for each in lines]
    if number == 0:
        assert "pid" in said[-1]["by"]


def test_a_mark_that_another_program_strips_is_put_back(lab):
    ip = lab.ips[2]
    owner = lab.owners("n1")[ip]
    eventually(lambda: hosts_with(lab, ip) == [owner])
    before = last_move(lab, owner, ip)
    lab.network.run(owner, ["ip", "addr", "replace", f"{ip}/32", "dev", "eth0"])

    def leased():
        shown = json.loads(lab.network.run(owner, ["ip", "-j", "addr", "show", "dev", "eth0"]))
        there = [each for each in shown[0]["addr_info"] if each["local"] == ip]
        return there and there[0]["valid_life_time"] <= 3

    eventually(leased, patience=3.0)

    assert last_move(lab, owner, ip) == before
    assert hosts_with(lab, ip) == [owner]


def test_what_another_program_put_there_is_never_touched(lab):
    foreign = "10.77.0.150"
    lab.network.run("n1", ["ip", "addr", "add", f"{foreign}/32", "dev", "eth0"])
    lab.network.run("n1", ["ip", "addr", "add", "10.77.0.151/24", "dev", "eth0"])
    text = lab.file("n1", "yaml").read_text()
    reload(lab, "n1", text + "# a reload\n")
    time.sleep(1.0)
    shown = lab.network.run("n1", ["ip", "-o", "addr"])
    for each in ("10.77.0.150/32", "10.77.0.151/24"):
        lab.network.run("n1", ["ip", "addr", "del", each, "dev", "eth0"])

    assert " 10.77.0.150/32 " in shown
    assert " 10.77.0.151/24 " in shown


# -- links ---------------------------------------------------------------------------------


def wire(lab, name):
    """A second link of a host, on a segment of its own."""
    pid = lab.record.keepers[name].pid
    lines = [
        f"link add second-{name} type veth peer name eth1 netns {pid}",
        f"link set second-{name} master second up",
    ]
    lab.network.batch(SWITCH, lines)
    number = 10 + int(name[1:])
    lab.network.batch(name, [f"addr add 10.78.0.{number}/24 dev eth1", "link set eth1 up"])


@pytest.fixture(scope="module")
def second(lab):
    """The egress `second` lives on the second links, while gossip stays on the first."""
    lab.network.batch(SWITCH, ["link add second type bridge", "link set second up"])
    for name in lab.nodes:
        wire(lab, name)
    entry = f"    second: {{egress_ip: {SECOND}}}\n"
    for name in lab.nodes:
        reload(lab, name, lab.file(name, "yaml").read_text() + entry)
    eventually(lambda: len(hosts_with(lab, SECOND)) == 1)
    uptime = min(ask(lab, name, "status")["node"]["uptime_seconds"] for name in lab.nodes)
    time.sleep(max(0.0, ACQUAINTED - uptime))
    return lab


def the_owner(lab):
    return eventually(lambda: (found := hosts_with(lab, SECOND)) and len(found) == 1 and found[0])


def moved_from(lab, owner):
    began = time.monotonic()
    others = [name for name in lab.nodes if name != owner]
    heir = eventually(
        lambda: (now := lab.owners(others[0]).get(SECOND)) not in {owner, None} and now,
        say=lambda: json.dumps(ask(lab, others[0], "egress_explain", name="second")),
    )
    return heir, time.monotonic() - began


@pytest.mark.parametrize("fault", ["carrier", "down", "deleted", "renamed"])
def test_an_owner_whose_link_fails_hands_over_at_once(second, fault):
    lab = second
    owner = the_owner(lab)
    broken = {
        "carrier": (SWITCH, ["link", "set", f"second-{owner}", "down"]),
        "down": (owner, ["link", "set", "eth1", "down"]),
        "deleted": (owner, ["link", "del", "eth1"]),
        "renamed": (owner, ["link", "set", "eth1", "name", "veth9"]),
    }
    mended = {
        "carrier": lambda: lab.network.run(SWITCH, ["ip", "link", "set", f"second-{owner}", "up"]),
        "down": lambda: lab.network.run(owner, ["ip", "link", "set", "eth1", "up"]),
        "deleted": lambda: wire(lab, owner),
        "renamed": lambda: lab.network.run(owner, ["ip", "link", "set", "veth9", "name", "eth1"]),
    }
    place, argv = broken[fault]
    lab.network.run(place, ["ip", *argv])
    try:
        heir, took = moved_from(lab, owner)
        move = eventually(lambda: last_move(lab, heir, SECOND))
        eventually(lambda: hosts_with(lab, SECOND) == [heir])
    finally:
        mended[fault]()
    tell(f"link {fault}: {owner} to {heir} after {took:.3f} s, {move['phases']}")

    assert took < 1.0
    assert move["cause"] == "health"
    time.sleep(SETTLED)
    assert len(hosts_with(lab, SECOND)) == 1
    explained = ask(lab, heir, "egress_explain", name="second")
    back = next(each for each in explained["candidates"] if each["name"] == owner)
    assert back["fit"], back


# -- last, for it leaves a node behind that takes nothing for a minute -----------------------


def test_an_address_that_is_deleted_again_and_again_goes_to_another_node_as_guarded(lab):
    ip = lab.ips[0]
    owner = lab.owners("n1")[ip]
    others = [name for name in lab.nodes if name != owner]
    limit = time.monotonic() + 30
    while (now := lab.owners(others[0]).get(ip)) in {owner, None}:
        assert time.monotonic() < limit, "it stayed where it is deleted"
        lab.network.run(owner, ["ip", "addr", "del", f"{ip}/32", "dev", "eth0"], check=False)
        time.sleep(0.05)
    move = eventually(lambda: last_move(lab, now, ip))

    assert (move["cause"], move["from"]) == ("guard", owner)
    eventually(lambda: ask(lab, owner, "status")["node"]["ineligible_reasons"] == ["damped"])
    assert hosts_with(lab, ip) == [now]
