"""What a scrape shows after facts were told."""

import re

import pytest

from agent.metrics import PEERS_LIMIT, WORDS_LIMIT, ConfigFacts, Metrics, Peak
from gossip.peer import Address, Health, Member


class Clock:
    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now


def member(name, health=Health.ALIVE, *, rtt=0.002, unreachable=False):
    return Member(
        name=name,
        address=Address("192.0.2.11", 7955),
        health=health,
        incarnation=1,
        meta=b"",
        versions=b"",
        since=0.0,
        rtt=rtt,
        wayout=True,
        unreachable=unreachable,
    )


def samples(metrics):
    """Sample name with labels to value, of everything that is ours."""
    text = metrics.render().decode()
    found = {}
    for line in text.splitlines():
        if line.startswith("wayout_"):
            name, value = line.rsplit(" ", 1)
            found[name] = float(value)
    return found


def test_members_are_counted_by_state_and_measured_by_name():
    metrics = Metrics()

    metrics.members(
        [member("n1", rtt=None), member("n2"), member("n3", Health.DEAD, unreachable=True)]
    )

    seen = samples(metrics)
    assert seen['wayout_members{state="alive"}'] == 2
    assert seen['wayout_members{state="suspect"}'] == 0
    assert seen['wayout_members{state="dead"}'] == 1
    assert seen["wayout_members_unreachable"] == 1
    assert seen['wayout_member_rtt_seconds{peer="n2"}'] == 0.002
    assert 'wayout_member_rtt_seconds{peer="n1"}' not in seen


def test_a_member_that_is_gone_leaves_no_series_behind():
    metrics = Metrics()
    metrics.members([member("n1"), member("n2")])

    metrics.members([member("n1")])

    assert 'wayout_member_rtt_seconds{peer="n2"}' not in samples(metrics)


def test_owned_addresses_are_one_on_their_owner_and_gone_afterwards():
    metrics = Metrics()
    metrics.owned(["192.0.2.40", "2001:db8::40"], {"assigned": 2, "conflict": 1})

    seen = samples(metrics)
    assert seen["wayout_owned_ips"] == 2
    assert seen['wayout_ip_owner{ip="2001:db8::40"}'] == 1
    assert seen['wayout_egress_ips{state="conflict"}'] == 1

    metrics.owned([], {"assigned": 2})
    assert not [name for name in samples(metrics) if name.startswith("wayout_ip_owner")]


def test_a_move_counts_its_cause_and_times_its_phases():
    metrics = Metrics()

    metrics.move_finished(
        "node_dead", {"detect_seconds": 0.4, "bind": 0.004, "total_seconds": 0.7, "nap": 9.0}
    )

    seen = samples(metrics)
    assert seen['wayout_moves_total{cause="node_dead"}'] == 1
    assert seen['wayout_failover_seconds_bucket{cause="node_dead",le="0.4",phase="detect"}'] == 1
    assert seen['wayout_failover_seconds_bucket{cause="node_dead",le="0.3",phase="detect"}'] == 0
    assert seen['wayout_failover_seconds_sum{cause="node_dead",phase="total"}'] == 0.7
    assert not any("nap" in name for name in seen)


@pytest.mark.parametrize(
    ("tell", "sample"),
    [
        (
            lambda m: m.health_changed("alive", "dead"),
            'member_changes_total{now="dead",was="alive"}',
        ),
        (lambda m: m.verdict("unreachable"), 'verdicts_total{verdict="unreachable"}'),
        (lambda m: m.probe_failed("n2", "tcp"), 'probe_failures_total{kind="tcp",peer="n2"}'),
        (lambda m: m.refuted(), "refutations_total"),
        (lambda m: m.datagrams_blocked("n2"), 'datagrams_blocked_total{peer="n2"}'),
        (lambda m: m.health_score(1), "health_score"),
        (lambda m: m.dropped("too_long"), 'dropped_total{reason="too_long"}'),
        (lambda m: m.sync_failed("refused"), 'sync_failures_total{reason="refused"}'),
        (
            lambda m: m.announced(1, family=6, kind="first"),
            'announcements_total{family="6",kind="first"}',
        ),
        (lambda m: m.conflict_found(), "address_conflicts_total"),
        (lambda m: m.address_restored(), "addresses_restored_total"),
        (lambda m: m.lease_lapsed(), "leases_lapsed_total"),
        (lambda m: m.step_failed("bind"), 'step_failures_total{step="bind"}'),
        (lambda m: m.renewal_lag(1.0), "lease_renewal_lag_seconds"),
        (lambda m: m.loop_lag(1.0), "event_loop_lag_seconds"),
        (
            lambda m: m.config_reload("signal", "applied"),
            'config_reloads_total{result="applied",trigger="signal"}',
        ),
        (
            lambda m: m.config_applied("prepare", 0.004),
            'config_apply_seconds_bucket{le="0.01",phase="prepare"}',
        ),
        (
            lambda m: (m.config(ConfigFacts()), m.config_members({"ok": 1}, differing=0)),
            'config_members_by_state{state="ok"}',
        ),
    ],
)
def test_each_fact_is_one_sample(tell, sample):
    metrics = Metrics()
    assert samples(metrics).get(f"wayout_{sample}", 0.0) == 0.0

    tell(metrics)

    assert samples(metrics)[f"wayout_{sample}"] == 1.0


def test_free_text_never_becomes_a_label():
    metrics = Metrics()

    metrics.sync_failed("[Errno 111] Connect call failed ('192.0.2.12', 7955)")
    metrics.sync_failed("Timeout!")

    assert samples(metrics)['wayout_sync_failures_total{reason="other"}'] == 2


def test_labels_are_limited_whatever_the_network_says():
    metrics = Metrics()

    for number in range(WORDS_LIMIT + 10):
        metrics.dropped(f"reason_{number}")
    for number in range(PEERS_LIMIT + 10):
        metrics.datagrams_blocked(f"n{number}")

    seen = samples(metrics)
    assert sum(name.startswith("wayout_dropped_total") for name in seen) == WORDS_LIMIT + 1
    assert sum(name.startswith("wayout_datagrams_blocked") for name in seen) == PEERS_LIMIT + 1
    assert seen['wayout_dropped_total{reason="other"}'] == 10


def test_the_configuration_is_told_in_numbers():
    wall = Clock(5000.0)
    metrics = Metrics(wall=wall)
    metrics.config(
        ConfigFacts(
            generation=7,
            digest="aabbccdd00112233",
            reloaded=False,
            stale_since=4900.0,
            pending_fields=2,
            file_differs=True,
            watch_mode="poll",
            layers={"main": 4000.0},
            layer_errors=frozenset({"main"}),
        )
    )

    seen = samples(metrics)
    assert seen["wayout_config_generation"] == 7
    assert seen["wayout_config_digest"] == 0xAABBCCDD0011
    assert seen["wayout_config_last_reload_successful"] == 0
    assert (seen["wayout_config_stale"], seen["wayout_config_stale_seconds"]) == (1, 100)
    assert seen["wayout_config_pending_restart"] == 1
    assert seen["wayout_config_pending_restart_fields"] == 2
    assert seen['wayout_config_layer_age_seconds{layer="main"}'] == 1000
    assert seen['wayout_config_layer_error{layer="main"}'] == 1
    assert seen['wayout_config_watch_mode{mode="poll"}'] == 1


def test_a_peak_is_remembered_for_half_a_minute_and_forgotten_after_two_windows():
    clock = Clock()
    peak = Peak(clock)
    peak.see(0.3)
    peak.see(0.1)

    clock.now += 29
    assert peak.worst() == 0.3
    clock.now += 2
    assert peak.worst() == 0.3
    peak.see(0.2)
    clock.now += 30
    assert peak.worst() == 0.2
    clock.now += 61
    assert peak.worst() == 0.0


def test_two_daemons_in_one_process_count_apart():
    one, other = Metrics(), Metrics()

    one.refuted()

    assert samples(one)["wayout_refutations_total"] == 1
    assert samples(other)["wayout_refutations_total"] == 0


def test_names_are_ours_or_the_process_own_and_every_one_has_a_help_line():
    text = Metrics().render().decode()

    names = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
    helped = set(re.findall(r"^# HELP (\S+) \S", text, re.MULTILINE))
    assert {name.split("_")[0] for name in names} == {"process", "wayout"}
    assert names == helped
    assert "_created" not in text
    assert "process_resident_memory_bytes" in text


def test_what_the_kernel_refuses_is_told_by_error_as_it_stands_at_the_scrape():
    metrics, failures = Metrics(), {"ECONNREFUSED": 1}
    metrics.socket_failures(failures)
    failures["ENETUNREACH"] = 2

    seen = samples(metrics)
    assert seen['wayout_socket_failures_total{error="ECONNREFUSED"}'] == 1
    assert seen['wayout_socket_failures_total{error="ENETUNREACH"}'] == 2
