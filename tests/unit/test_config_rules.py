"""Rules over the whole: one case for each, refused or doubted at the right place."""

import pytest

from config.rules import RULES
from support.settings import complaints, parsed

EGRESS = "egress: {egresses: {a: {egress_ip: 192.0.2.1"

REFUSED = {
    "probe-timeout": ("gossip: {probe_interval: 200ms}", "gossip.probe_timeout: is 200ms"),
    "cadence": ("gossip: {gossip_interval: 1s}", "above probe_interval 500ms, write at most 500ms"),
    "lease": ("egress: {lease: 2s}\ngossip: {probe_interval: 2s}", "write at least 4s"),
    "same-address": (
        "egress: {egresses: {a: {egress_ip: '2001:db8::1'}, b: {egress_ip: '2001:db8:0::1'}}}",
        "egress.egresses.b: has 2001:db8::1, which egress a has too",
    ),
    "encryption": ("gossip: {encryption: permissive}", "is permissive without keys"),
    "advertised": (
        "gossip: {bind_address: 0.0.0.0, advertise_address: '2001:db8::1'}",
        "is IPv6 while bind_address 0.0.0.0 is IPv4",
    ),
    "allowed": (
        "gossip: {seeds: [10.0.0.1, name.example], allowed_cidrs: [192.0.2.0/24]}",
        "has the seed 10.0.0.1, which allowed_cidrs shut out",
    ),
    "listeners": ("api: {http_listen: '0.0.0.0:7955'}", "uses port 7955, which gossip listens on"),
    "interfaces": ("interfaces: {default: veth0}", "is veth0, which 'veth*' denies"),
}
DOUBTED = {
    "own-address": (
        "node: {address: 192.0.2.1}\n" + EGRESS + "}}}",
        "egress.egresses.a: has 192.0.2.1, which is this node's own address",
    ),
    "encryption": ("gossip: {keyring_file: /k}", "is set, but gossip.encryption is off"),
    "alone": ("gossip: {expected_nodes: 3}", "is empty, but expected_nodes is 3"),
    "same-sources": (
        "egress: {egresses: {a: {egress_ip: 192.0.2.1, applied_to: {ip_blocks: [10.0.0.0/8]}},"
        " b: {egress_ip: 192.0.2.2, applied_to: {ip_blocks: [10.0.0.0/8]}}}}",
        "has 10.0.0.0/8, which egress a has too",
    ),
    "unsteered": (
        "egress: {egresses: {a: {egress_ip: 192.0.2.1, applied_to: {ip_blocks: [10.0.0.0/8]}}}}",
        "this version carries the address alone",
    ),
}
FINE = [
    "gossip: {bind_address: '::', advertise_address: 192.0.2.1}",
    "gossip: {encryption: required, keyring_file: /etc/wayout/keys/gossip.keys}",
    "gossip: {seeds: [192.0.2.9], allowed_cidrs: [192.0.2.0/24]}",
    "metrics: {listen: '127.0.0.1:9766'}",
    "interfaces: {default: veth0, deny: []}",
]


def test_every_rule_has_a_case():
    assert REFUSED.keys() | DOUBTED.keys() == RULES.keys()


@pytest.mark.parametrize("rule", REFUSED)
def test_what_does_not_fit_together_is_refused(rule):
    text, words = REFUSED[rule]
    (only,) = complaints(f"version: 1\n{text}\n")

    assert words in only
    assert only.startswith("config.yaml:")


@pytest.mark.parametrize("rule", DOUBTED)
def test_what_is_doubtful_is_told_and_taken(rule):
    text, words = DOUBTED[rule]
    found = parsed(f"version: 1\n{text}\n").warnings
    (only,) = (each for each in found if each.rule == rule)

    assert words in str(only)


@pytest.mark.parametrize("text", FINE)
def test_what_fits_together_is_taken_without_a_word(text):
    assert parsed(f"version: 1\n{text}\n").warnings == ()


def test_sources_of_different_priority_do_not_collide():
    blocks = "applied_to: {ip_blocks: [10.0.0.0/8]}"
    first, second = f"a: {{egress_ip: 192.0.2.1, {blocks}}}", f"priority: 1, {blocks}}}"
    text = f"egress: {{egresses: {{{first}, b: {{egress_ip: 192.0.2.2, {second}}}}}"
    found = parsed(f"version: 1\n{text}\n").warnings

    assert "same-sources" not in {each.rule for each in found}


def test_a_listener_for_metrics_where_http_is_served_is_refused():
    (only,) = complaints("version: 1\nmetrics: {listen: '0.0.0.0:9765'}\n")

    assert "which api.http_listen 127.0.0.1:9765 occupies" in only


def test_an_interface_of_one_egress_obeys_the_list_too():
    (only,) = complaints(
        "version: 1\ninterfaces: {allow: [eth*]}\n" + EGRESS + ", interface: bond0}}}\n"
    )

    assert only.startswith("config.yaml:3:58: egress.egresses.a.interface: is bond0")


def test_one_family_twice_in_an_egress_is_refused():
    (only,) = complaints(
        "version: 1\negress: {egresses: {a: {egress_ips: [192.0.2.1, 192.0.2.1]}}}\n"
    )

    assert "two addresses of one family" in only


def test_an_address_and_addresses_are_one_too_many():
    (only,) = complaints("version: 1\n" + EGRESS + ", egress_ips: [192.0.2.2]}}}\n")

    assert "keep one of the two" in only


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("{key: rack, operator: In}", "In has no values"),
        ("{key: rack, operator: Exists, values: [a]}", "Exists takes no values"),
        ("{key: rack, operator: in, values: [a]}", "is 'in', write"),
        ("{operator: Exists}", "key: is missing"),
    ],
)
def test_a_selector_that_makes_no_sense_is_refused(expression, words):
    selector = f", node_selector: {{match_expressions: [{expression}]}}}}}}}}"
    (only,) = complaints("version: 1\n" + EGRESS + selector + "\n")

    assert words in only
