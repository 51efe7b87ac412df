"""Differences between settings, what they take, and digests that ignore mere spelling."""

import pytest

from config.changes import ABSENT, diff, notable, split
from config.digest import Digests
from config.guard import guarded, removed
from config.redact import fingerprint, shown
from support.settings import parsed

BASE = "version: 1\ngossip: {seeds: [192.0.2.1, 192.0.2.2]}\n"


def changes(old, new):
    return diff(parsed(old).leaves, parsed(new).leaves)


def egresses(*ips):
    rows = ", ".join(f"e{n}: {{egress_ip: {ip}}}" for n, ip in enumerate(ips))
    return parsed(f"version: 1\negress: {{egresses: {{{rows}}}}}\n")


def test_a_change_has_its_path_both_values_and_its_class():
    (only,) = changes(BASE, BASE + "logging: {level: debug}\n")

    assert only.to_plain() == {
        "path": "logging.level",
        "kind": "changed",
        "old": "info",
        "new": "debug",
        "class": "dynamic",
        "scope": "group",
    }


def test_another_order_and_another_spelling_are_no_change():
    assert not changes(BASE, "gossip:\n  seeds: ['192.0.2.2', 192.0.2.1]\nversion: 0x1\n")
    assert not changes(BASE, BASE + "egress: {lease: 3000ms}\n")


def test_an_egress_that_comes_is_added_leaf_by_leaf_and_told_in_one():
    found = changes(BASE, BASE + "egress: {egresses: {a: {egress_ip: 192.0.2.9}}}\n")

    assert {each.kind for each in found} == {"added"}
    assert found[0].old is ABSENT
    assert [each.path[-1] for each in notable(found)] == ["egress_ip"]


def test_changes_are_sorted_by_what_they_take():
    found = changes(
        BASE,
        BASE + "node: {cluster: other, name: n9}\nlogging: {level: debug}\n"
        "api: {http_listen: off}\nmetrics: {listen: '127.0.0.1:1'}\n",
    )
    parts = split(found, rebinding={"metrics.listen"})

    assert [each.path[-1] for each in parts.live] == ["level", "listen"]
    assert [each.path for each in parts.pending] == ["api.http_listen", "node.name"]
    assert [each.path[-1] for each in parts.forbidden] == ["cluster"]
    assert all(each.reason for each in parts.pending)


def test_the_cluster_digest_covers_what_must_agree_and_nothing_else():
    base = parsed(BASE)
    local = parsed(BASE + "node: {weight: 2.0, labels: {a: b}}\nlogging: {level: debug}\n")
    shared = parsed(BASE + "egress: {lease: 4s}\n")

    assert base.digests.cluster == local.digests.cluster != shared.digests.cluster
    assert len({each.digests.node for each in (base, local, shared)}) == 3


def test_a_default_that_is_written_out_is_no_difference():
    written = parsed(BASE + "egress: {lease: 3s, removal_guard: 50%}\n")

    assert written.digests.cluster == parsed(BASE).digests.cluster


def test_nodes_with_one_file_and_different_names_agree():
    one, other = parsed(BASE, hostname="n1"), parsed(BASE, hostname="n2")

    assert one.digests.cluster == other.digests.cluster
    assert one.digests.node != other.digests.node


def test_the_digests_of_today_are_those_of_tomorrow():
    # Members of two versions compare them during an upgrade.
    settings = parsed(BASE + "egress: {egresses: {a: {egress_ip: 192.0.2.9}}}\n").settings

    assert Digests(settings, "").cluster == "6fe29dcb86db9739"


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        (["192.0.2.1", "192.0.2.2"], ["192.0.2.1"], ("e1",)),
        (["192.0.2.1"], ["192.0.2.7"], ()),
        (["192.0.2.1", "192.0.2.2"], ["192.0.2.2"], ()),
        (["192.0.2.1", "192.0.2.2"], [], ("e0", "e1")),
    ],
)
def test_an_egress_is_lost_when_neither_name_nor_address_is_left(old, new, lost):
    assert removed(egresses(*old).settings, egresses(*new).settings) == lost


def test_the_guard_refuses_more_than_its_share_and_no_less():
    four = egresses("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4").settings
    two, one = egresses("192.0.2.1", "192.0.2.2"), egresses("192.0.2.1")

    assert guarded(four, two.settings, two.provenance) is None
    refusal = guarded(four, one.settings, one.provenance)
    assert "drops 3 of 4 egresses (e1, e2, e3), the guard lets 50% go" in str(refusal)
    assert "--allow-removal" in str(refusal)


def test_the_guard_of_the_candidate_counts():
    old = egresses("192.0.2.1").settings
    off = parsed("version: 1\negress: {removal_guard: off, egresses: {}}\n")

    assert guarded(old, off.settings, off.provenance) is None


def test_a_reference_to_a_secret_is_shown_and_a_secret_is_not():
    path = ("gossip", "keyring_file")

    assert shown(path, "/etc/wayout/keys/gossip.keys") == "/etc/wayout/keys/gossip.keys"
    assert shown(path, "hunter2") == fingerprint("hunter2")
    assert "hunter2" not in fingerprint("hunter2")
    assert shown(("node", "zone"), "hunter2") == "hunter2"
