"""What the doctor makes of a host: each judgement on made-up readings."""

import base64
import stat
from ipaddress import ip_address, ip_network

import pytest

from agent.doctor import files, firewall, machine, managers, network
from agent.sysctls import Severity
from config.load import load
from egress.model import Binding, Bound, Interface, Observed, Question, Reply
from egress.placement import Placement

OK, NOTE, WARNING, ERROR = Severity.OK, Severity.NOTE, Severity.WARNING, Severity.ERROR
NET = ip_network("10.77.0.0/24")
LINK = Interface("eth0", 2, "02:00:00:00:00:0a", carrier=True, networks=(NET,))


def severities(findings):
    return [each.severity for each in findings]


# -- the machine -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "severity"),
    [
        ("6.18.44-fc", OK),
        ("5.18.0", OK),
        ("5.17.9-1-amd64", WARNING),
        ("4.19.0", ERROR),
        ("strange", ERROR),
    ],
)
def test_a_kernel_without_marks_is_told(release, severity):
    assert machine.of_release(release).severity is severity


def test_missing_capabilities_are_named():
    found = machine.of_privileges(["CAP_NET_RAW"])

    assert (found.severity, "CAP_NET_RAW" in found.what) == (ERROR, True)
    assert machine.of_privileges([]).severity is OK


@pytest.mark.parametrize(("state", "severity"), [(0, OK), (5, NOTE), (None, NOTE)])
def test_a_wrong_clock_is_only_a_note_since_nothing_is_decided_by_it(state, severity):
    assert machine.of_clock(state).severity is severity


def test_the_machine_can_be_examined_here():
    assert len(list(machine.examine())) == 4


# -- other managers --------------------------------------------------------------------------


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_programs_that_hold_addresses_are_named(tmp_path):
    write(tmp_path, "proc/7/comm", "keepalived\n")
    write(tmp_path, "proc/8/comm", "openelb-manager"[:15] + "\n")
    write(tmp_path, "proc/9/comm", "bash\n")

    found = list(managers.examine((LINK,), tmp_path))

    assert severities(found) == [WARNING, WARNING]
    assert "keepalived" in found[0].what
    assert "OpenELB" in found[1].what


def test_a_host_without_others_is_well(tmp_path):
    assert severities(managers.examine((LINK,), tmp_path)) == [OK]


@pytest.mark.parametrize(("managed", "count"), [("true", 1), ("false", 0)])
def test_network_manager_matters_where_it_manages_the_interface(tmp_path, managed, count):
    write(tmp_path, "run/NetworkManager/devices/2", f"[device]\nmanaged={managed}\n")
    write(tmp_path, "run/NetworkManager/devices/3", "[device]\nmanaged=true\n")

    found = [each for each in managers.examine((LINK,), tmp_path) if each.severity is WARNING]

    assert len(found) == count
    assert all("eth0" in each.what for each in found)


@pytest.mark.parametrize(
    ("state", "network_file", "dropin", "severity"),
    [
        ("configured", "[Network]\nDHCP=yes\n", None, WARNING),
        ("configured", "[Network]\nKeepConfiguration=static\n", None, OK),
        ("configured", "[Network]\nDHCP=yes\n", "[Network]\nKeepConfiguration=yes\n", OK),
        ("configured", "[Network]\nKeepConfiguration=dhcp\n", None, WARNING),
        ("unmanaged", "[Network]\n", None, None),
        ("configured", "no section at all", None, WARNING),
    ],
)
def test_networkd_matters_unless_it_keeps_what_it_finds(
    tmp_path, state, network_file, dropin, severity
):
    file = "/etc/systemd/network/10-eth0.network"
    write(tmp_path, "run/systemd/netif/links/2", f"ADMIN_STATE={state}\nNETWORK_FILE={file}\n")
    write(tmp_path, file.lstrip("/"), network_file)
    if dropin is not None:
        write(tmp_path, f"run/systemd/network/{file.rsplit('/', 1)[1]}.d/keep.conf", dropin)

    _, *found = managers.examine((LINK,), tmp_path)

    assert severities(found) == ([] if severity is None else [severity])


# -- the firewall ----------------------------------------------------------------------------


def chain(hook="input", policy="accept", family="inet", name="in"):
    told = {"family": family, "table": "filter", "name": name, "policy": policy}
    return {"chain": {**told, "hook": hook}}


def rule(right, verdict, field="dport", family="inet"):
    left = {"payload": {"protocol": "th", "field": field}}
    match = {"match": {"op": "==", "left": left, "right": right}}
    told = {"family": family, "table": "filter", "chain": "in", "handle": 4}
    return {"rule": {**told, "expr": [match, {verdict: None}]}}


@pytest.mark.parametrize(
    ("ruleset", "severity"),
    [
        ([], OK),
        ([chain()], OK),
        ([chain(policy="drop")], WARNING),
        ([chain(policy="drop", hook="forward")], OK),
        ([chain(policy="drop"), rule(7955, "accept")], OK),
        ([chain(policy="drop"), rule({"set": [22, 7955]}, "accept")], OK),
        ([chain(policy="drop"), rule({"range": [7000, 8000]}, "accept")], OK),
        ([chain(policy="drop"), rule(22, "accept")], WARNING),
        ([chain(), rule(7955, "drop")], ERROR),
        ([chain(), rule(7955, "reject", "sport")], ERROR),
        ([chain(), rule(22, "drop")], OK),
        ([chain(family="arp", policy="drop")], WARNING),
        ([chain(family="arp"), rule(1, "drop", "operation", family="arp")], WARNING),
        ([{"metainfo": {}}, {"rule": {"family": "ip", "expr": [{"match": {"left": "x"}}]}}], OK),
    ],
)
def test_rules_that_keep_gossip_or_arp_away_are_found(ruleset, severity):
    found = list(firewall.judge(ruleset, 7955))

    assert severities(found) == [severity]
    assert severity is OK or found[0].fix


# -- files -----------------------------------------------------------------------------------


def test_a_state_folder_is_ours_alone_and_can_be_written(tmp_path):
    assert severities(files.of_state(str(tmp_path))) == [OK]
    assert severities(files.of_state(str(tmp_path / "new" / "deeper"))) == [OK]

    tmp_path.chmod(0o777)
    assert severities(files.of_state(str(tmp_path))) == [WARNING]
    tmp_path.chmod(0o700)
    (tmp_path / "file").write_text("")
    assert severities(files.of_state(str(tmp_path / "file"))) == [ERROR]


def test_keys_that_everybody_may_read_are_an_error(tmp_path):
    keys, path = tmp_path / "keys", tmp_path / "config.yaml"
    keys.write_text(base64.b64encode(bytes(16)).decode() + "\n")
    path.write_text(
        f"version: 1\ngossip: {{encryption: required, keyring_file: {keys}}}\n"
        "egress: {egresses: {}}\n"
    )
    settings = load(path, environ={}).settings
    keys.chmod(0o644)
    (found,) = files.of_keys(settings)
    assert (found.severity, "chmod" in found.what) == (ERROR, True)
    keys.chmod(stat.S_IRUSR)
    assert severities(files.of_keys(settings)) == [OK]

    path.write_text("version: 1\n")
    assert severities(files.of_keys(load(path, environ={}).settings)) == [NOTE]


# -- the network -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mtu", "severity"), [(9000, OK), (1500, OK), (1400, NOTE), (1200, WARNING), (None, OK)]
)
def test_small_frames_are_told(mtu, severity):
    mtus = {} if mtu is None else {"eth0": mtu}

    assert severities(network.of_links([LINK], mtus)) == [severity]


def test_a_link_without_carrier_and_no_link_at_all_are_told():
    down = Interface("eth0", 2, LINK.mac, carrier=False, networks=(NET,))

    assert severities(network.of_links([down], {"eth0": 1500})) == [WARNING, OK]
    assert severities(network.of_links([], {})) == [ERROR]


def test_addresses_that_cannot_live_here_are_told_by_reason():
    places = {ip_address(0x0A000000 + n): Placement(None, "no_subnet") for n in range(5)}
    places[ip_address("10.77.0.201")] = Placement("eth0")

    (found,) = network.of_places(places)

    assert found.severity is NOTE
    assert "10.0.0.0, 10.0.0.1, 10.0.0.2 and 2 more" in found.what


def test_a_failed_duplicate_detection_is_told():
    ip = ip_address("2001:db8::1")
    bad = Bound(Binding(ip, "eth0"), ours=False, valid=None, prefix=128, usable=False)

    (found,) = network.of_kernel(Observed((LINK,), (bad,)))

    assert (found.severity, "2001:db8::1" in found.what) == (WARNING, True)


def reply(macs=(), *, control=True):
    asked = Question(ip_address("10.77.0.11"), "eth0", (ip_address("10.77.0.1"),))
    return Reply(asked, frozenset(macs), control, carrier=True, asked=0.0, heard=0.1)


@pytest.mark.parametrize(
    ("told", "severity", "says"),
    [
        (reply(), OK, "nobody else"),
        (reply([LINK.mac]), OK, "nobody else"),
        (reply(["02:00:00:00:00:99"]), ERROR, "02:00:00:00:00:99 answers for 10.77.0.11"),
        (reply(control=False), WARNING, "the gateway 10.77.0.1 does not answer"),
        (reply(control=None), OK, "nobody else"),
    ],
)
def test_the_lan_tells_who_else_has_our_address(told, severity, says):
    (found,) = network.of_replies([told], frozenset([LINK.mac]))

    assert (found.severity, says in found.what) == (severity, True)
