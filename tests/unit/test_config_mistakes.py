"""Typical mistakes: each is told with its place, its key, what is wrong and what to write."""

from random import Random

import pytest

from config.problems import PROBLEMS_MAX, ConfigError, Problem
from config.tree import Mark
from support.settings import complaints, parsed

MISTAKES = {
    "a misspelt option": (
        "version: 1\ngossip:\n  probe_timout: 200ms\n",
        "config.yaml:3:3: gossip.probe_timout: unknown key, did you mean probe_timeout?",
    ),
    "a misspelt section": (
        "version: 1\negres:\n  egresses: {}\n",
        "config.yaml:2:1: egres: unknown key, did you mean egress?",
    ),
    "a name from Kubernetes": (
        "version: 1\negress: {egresses: {a: {egressIP: 192.0.2.1}}}\n",
        "config.yaml:2:25: egress.egresses.a.egressIP: unknown key, did you mean egress_ip?",
    ),
    "an option in the wrong section": (
        "version: 1\nnode: {seeds: [192.0.2.1]}\n",
        "config.yaml:2:8: node.seeds: unknown key here, did you mean gossip.seeds?",
    ),
    "a number without a unit": (
        "version: 1\ngossip:\n  probe_interval: 500\n",
        "config.yaml:3:19: gossip.probe_interval: is the number 500 without a unit, "
        "write 500ms or 500s",
    ),
    "an unknown unit": (
        "version: 1\ngossip:\n  probe_interval: 2sec\n",
        "config.yaml:3:19: gossip.probe_interval: has the unknown unit 'sec', write 2s",
    ),
    "a clock time as a duration": (
        "version: 1\negress:\n  failback_delay: 1:30\n",
        "config.yaml:3:19: egress.failback_delay: is '1:30', write 1m30s",
    ),
    "a duration out of range": (
        "version: 1\negress:\n  lease: 500ms\n",
        "config.yaml:3:10: egress.lease: is 500ms, write a duration from 2s to 1m",
    ),
    "a word of YAML 1.1 as a switch": (
        "version: 1\nnode:\n  eligible: no\n",
        "config.yaml:3:13: node.eligible: is the text 'no', write false without quotes",
    ),
    "a number in quotes": (
        'version: 1\ngossip: {bind_port: "7955"}\n',
        "config.yaml:2:21: gossip.bind_port: is the text '7955', "
        "write 7955 without quotes and separators",
    ),
    "a port out of range": (
        "version: 1\ngossip: {bind_port: 79550}\n",
        "config.yaml:2:21: gossip.bind_port: is 79550, write a whole number from 1 to 65535",
    ),
    "an impossible address": (
        "version: 1\negress:\n  egresses:\n    a: {egress_ip: 10.77.0.999}\n",
        "config.yaml:4:20: egress.egresses.a.egress_ip: is '10.77.0.999': 999 is above 255, "
        "write an address",
    ),
    "a prefix length at an address": (
        "version: 1\negress:\n  egresses:\n    a: {egress_ip: 10.77.0.1/24}\n",
        "config.yaml:4:20: egress.egresses.a.egress_ip: is '10.77.0.1/24' with a prefix length, "
        "write 10.77.0.1",
    ),
    "a port at an address": (
        "version: 1\negress:\n  egresses:\n    a: {egress_ip: '10.77.0.1:80'}\n",
        "config.yaml:4:20: egress.egresses.a.egress_ip: is '10.77.0.1:80' with a port, "
        "write 10.77.0.1",
    ),
    "an address that no host can carry": (
        "version: 1\negress:\n  egresses:\n    a: {egress_ip: 224.0.0.9}\n",
        "config.yaml:4:20: egress.egresses.a.egress_ip: is 224.0.0.9, which is multicast, "
        "write an address of your network",
    ),
    "a network with host bits": (
        "version: 1\negress:\n  egresses:\n"
        "    a: {egress_ip: 192.0.2.1, applied_to: {ip_blocks: [10.9.0.5/24]}}\n",
        "config.yaml:4:56: egress.egresses.a.applied_to.ip_blocks[0]: is '10.9.0.5/24' "
        "with host bits set, write 10.9.0.0/24, or 10.9.0.5/32 for this address alone",
    ),
    "a single value for a list": (
        "version: 1\ngossip:\n  seeds: 192.0.2.11\n",
        "config.yaml:3:10: gossip.seeds: is the text '192.0.2.11', write a list: [192.0.2.11]",
    ),
    "a list for a section": (
        "version: 1\ngossip:\n  - seeds\n",
        "config.yaml:3:3: gossip: is a list, write a map: one 'key: value' in a line, indented",
    ),
    "one address in two egresses": (
        "version: 1\negress:\n  egresses:\n"
        "    a: {egress_ip: 192.0.2.1}\n    b: {egress_ip: 192.0.2.1}\n",
        "config.yaml:5:8: egress.egresses.b: has 192.0.2.1, which egress a has too "
        "(egress.egresses.a at config.yaml:4:8), give each egress an address of its own",
    ),
    "two egresses of one name": (
        "version: 1\negress:\n  egresses:\n"
        "    a: {egress_ip: 192.0.2.1}\n    a: {egress_ip: 192.0.2.2}\n",
        "config.yaml:5:5: egress.egresses.a: the key is here a second time, first in line 4, "
        "remove one of the two",
    ),
    "an egress without an address": (
        "version: 1\negress:\n  egresses:\n    a: {priority: 3}\n",
        "config.yaml:4:8: egress.egresses.a: has no address, write egress_ip: ADDRESS",
    ),
    "a timeout above its interval": (
        "version: 1\ngossip:\n  probe_interval: 200ms\n  probe_timeout: 300ms\n",
        "config.yaml:4:18: gossip.probe_timeout: is 300ms, not below probe_interval 200ms "
        "(gossip.probe_interval at config.yaml:3:19), write at most 80ms",
    ),
    "encryption without keys": (
        "version: 1\ngossip: {encryption: required}\n",
        "config.yaml:2:22: gossip.encryption: is required without keys, "
        "write gossip.keyring_file: /etc/wayout/keys/gossip.keys",
    ),
    "a key instead of its file": (
        "version: 1\ngossip: {encrypt_key: q83vASNFZ4mrze8BI0VniQ==}\n",
        "config.yaml:2:10: gossip.encrypt_key: unknown key, "
        "put keys into a file and write gossip.keyring_file: PATH",
    ),
    "a misspelt choice": (
        "version: 1\negress: {failback: imediate}\n",
        "config.yaml:2:20: egress.failback: is 'imediate', write immediate",
    ),
    "a share without a sign": (
        "version: 1\negress: {removal_guard: 50}\n",
        "config.yaml:2:25: egress.removal_guard: is the number 50, write 50% or off",
    ),
    "a missing version": (
        "gossip: {seeds: [192.0.2.11]}\n",
        "config.yaml:1:1: version: is missing, write version: 1",
    ),
    "a version of the future": (
        "version: 2\n",
        "config.yaml:1:10: version: is 2, which this program does not know, write version: 1",
    ),
    "an option that is not here yet": (
        "version: 1\negress: {egresses: {a: {external_ip_pool: p}}}\n",
        "config.yaml:2:25: egress.egresses.a.external_ip_pool: "
        "is not supported by this version, remove it",
    ),
    "a setting of all in one node": (
        "version: 1\nnodes: {n1: {gossip: {suspicion_mult: 5}}}\n",
        "config.yaml:2:39: nodes.n1.gossip.suspicion_mult: must be the same on every node, "
        "so one node cannot set it, set it in the file that all nodes share",
    ),
    "a node name in capitals": (
        "version: 1\nnode: {name: Node_1}\n",
        "config.yaml:2:14: node.name: is 'Node_1', "
        "write lower case letters, digits, '-' and '.', for example node-1",
    ),
    "a list of egresses": (
        "version: 1\negress:\n  egresses:\n    - name: a\n",
        "config.yaml:4:5: egress.egresses: is a list, "
        "write a map by name: 'NAME:', and its options below it, indented",
    ),
    "an address in the place of an egress": (
        "version: 1\negress:\n  egresses:\n    a: 192.0.2.1\n",
        "config.yaml:4:8: egress.egresses.a: is the text '192.0.2.1', "
        "write a: {egress_ip: 192.0.2.1}",
    ),
    "a Kubernetes object": (
        "apiVersion: v1\nkind: Egress\n",
        "config.yaml:2:1: kind: is of a Kubernetes object, not of this file, "
        "write version: 1 and sections",
    ),
    "a fraction for a share": (
        "version: 1\negress: {removal_guard: 0.25}\n",
        "config.yaml:2:25: egress.removal_guard: is the number 0.25, write 25% or off",
    ),
    "an empty file": ("# nothing yet\n", "config.yaml:1:1: is empty, write at least 'version: 1'"),
    "prose instead of a map": (
        "version 1\n",
        "config.yaml:1:1: is the text 'version 1', not a map, "
        "write sections: 'gossip:', and below it indented 'key: value' lines",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_so_that_it_can_be_mended(name):
    text, told = MISTAKES[name]

    assert told in complaints(text)


def test_all_mistakes_of_a_file_are_told_at_once_in_their_order():
    told = complaints(
        """\
        version: 1
        node: {weigth: 2}
        gossip:
          probe_interval: 1
          bind_port: x
        egress:
          egresses:
            a: {egress_ip: 300.1.1.1}
            b: {egress_ip: 192.0.2.1}
            c: {egress_ip: 192.0.2.1}
        """
    )

    assert [each.split(":")[1] for each in told] == ["2", "4", "5", "8", "10"]


def test_a_wrong_value_does_not_hide_what_two_others_do_to_each_other():
    told = complaints(
        "version: 1\nlogging: {level: loud}\n"
        "gossip: {probe_interval: 100ms, probe_timeout: 1s, gossip_interval: 50ms}\n"
    )

    assert any("logging.level" in each for each in told)
    assert any("not below probe_interval" in each for each in told)


@pytest.mark.parametrize(
    "line",
    [
        "gossip: {keyring_file: c2VjcmV0c2VjcmV0c2VjcmV0cw==}",
        "gossip: {keyring_file: [c2VjcmV0c2VjcmV0c2VjcmV0cw==]}",
        "gossip: {keyring: c2VjcmV0c2VjcmV0c2VjcmV0cw==}",
        "secret: c2VjcmV0c2VjcmV0c2VjcmV0cw==",
    ],
)
def test_a_secret_in_the_wrong_place_is_never_repeated(line):
    told = "\n".join(complaints(f"version: 1\n{line}\n"))

    assert "c2Vjcm" not in told
    assert "2:" in told


def test_what_a_file_says_does_nothing_to_a_terminal():
    told = "".join(complaints(b'version: 1\n"\\e[2J": 1\nnode: {zone: "\\a"}\n'))

    assert told.isprintable()


def test_an_egress_with_nothing_below_it_is_doubtful():
    (only,) = parsed("version: 1\negress:\n  egresses:\n    billing:\n").warnings

    assert str(only) == (
        "config.yaml:4:13: egress.egresses.billing: is empty and means no egress, "
        "write egress_ip: ADDRESS below it"
    )


def test_very_many_problems_are_counted_rather_than_listed():
    problems = [Problem(Mark("f", n + 1, 1), "", "is wrong") for n in range(PROBLEMS_MAX + 7)]

    assert str(ConfigError(problems)).splitlines()[-1] == "and 7 more problems"


BODIES = {
    "unbalanced": b"egress: [\n",
    "misspelt section": b"version: 1\negres: {egresses: {}}\n",
    "impossible address": b"version: 1\negress: {egresses: {e4: {egress_ip: 10.77.0.999}}}\n",
    "prefix too long": b"version: 1\negress: {egresses: {e4: {egress_ip: 10.77.0.0/33}}}\n",
    "one name twice": b"version: 1\negress: {egresses: {e4: {egress_ip: 10.77.0.1},"
    b" e4: {egress_ip: 10.77.0.2}}}\n",
    "a list as a section": b"version: 1\ngossip: [10.77.0.11]\n",
    "tabs": b"version: 1\negress:\n\tegresses: {}\n",
    "noise": Random(11).randbytes(4096),
    "nothing": b"",
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_no_configuration_is_refused_cleanly(name):
    assert all(each.startswith("config.yaml:") for each in complaints(BODIES[name]))
