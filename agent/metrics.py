"""What is counted: the only place that knows prometheus-client.

Methods are named for facts and take plain values; metric names and labels are decided here.
Labels come from closed sets, node names and IPs. Pictures (members, addresses, configuration) are
kept as they are told and turned into samples only when somebody scrapes.
"""

from __future__ import annotations

import re
import time
from collections import Counter as Tally
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from agent import release

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from gossip.peer import Member

CONTENT_TYPE = prometheus_client.CONTENT_TYPE_LATEST
WORDS_LIMIT = 64
PEERS_LIMIT = 4096
"""Different values that a label may take before the rest becomes `other`."""
PHASES = ("detect", "elect", "check", "bind", "announce", "total")
FAILOVER_BUCKETS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 5.0, 15.0)
APPLY_BUCKETS = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
PEAK_WINDOW = 30.0
DIGEST_BITS = 48

_WORD = re.compile(r"[a-z0-9_]{1,40}")


@dataclass(frozen=True, slots=True)
class ConfigFacts:
    """The state of the configuration; `stale_since` and `layers` (last success) in Unix time."""

    generation: int = 0
    digest: str = ""
    reloaded: bool = True
    reloaded_at: float = 0.0
    stale_since: float | None = None
    pending_fields: int = 0
    file_differs: bool = False
    inconsistent: bool = False
    warnings: int = 0
    watch_mode: str = ""
    layers: Mapping[str, float] = field(default_factory=dict)
    layer_errors: frozenset[str] = frozenset()


class Peak:
    """The worst value of the last half to whole minute, which no scrape in that time misses."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._turned = clock()
        self._before = self._now = 0.0

    def see(self, value: float) -> None:
        """One measurement."""
        self._turn()
        self._now = max(self._now, value)

    def worst(self) -> float:
        """The worst that is still remembered."""
        self._turn()
        return max(self._before, self._now)

    def _turn(self) -> None:
        elapsed = self._clock() - self._turned
        if elapsed >= PEAK_WINDOW:
            self._before = self._now if elapsed < 2 * PEAK_WINDOW else 0.0
            self._now = 0.0
            self._turned = self._clock()


class Metrics:
    """One registry for one daemon."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        # The time at which a counter was made doubles its samples and serves no rule of ours.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # theirs
        self._registry = CollectorRegistry(auto_describe=False)
        self._words: dict[str, set[str]] = {}
        self._peers: set[str] = set()
        self._picture = _Picture(clock, wall)
        self._registry.register(self._picture)
        ProcessCollector(registry=self._registry)
        self._gossip()
        self._egress()
        self._health()
        self._config()

    def render(self) -> bytes:
        """Everything in Prometheus' text format."""
        return prometheus_client.generate_latest(self._registry)

    def _gossip(self) -> None:
        count, gauge = self._counter, self._gauge
        self._health_changes = count("member_changes", "Changes of a member's state.", "was", "now")
        self._verdicts = count("verdicts", "What watchers said of members.", "verdict")
        self._probe_failures = count("probe_failures", "Failed probes.", "peer", "kind")
        self._refutations = count("refutations", "How often we were held for dead or suspect.")
        self._blocked = count("datagrams_blocked", "TCP answered, UDP did not.", "peer")
        self._score = gauge("health_score", "Local health score; 0 is well.")
        self._dropped = count("dropped", "Messages from the network that were refused.", "reason")
        self._sync_failures = count("sync_failures", "Push/pulls that failed.", "reason")

    def _egress(self) -> None:
        count = self._counter
        self._moves = count("moves", "Addresses that changed hands.", "cause")
        self._failover = Histogram(
            "wayout_failover_seconds",
            "Time that each phase of a move to this node took.",
            ["phase", "cause"],
            registry=self._registry,
            buckets=FAILOVER_BUCKETS,
        )
        self._announcements = count(
            "announcements", "Gratuitous ARP and unsolicited NA sent.", "family", "kind"
        )
        self._conflicts = count("address_conflicts", "Times that a stranger answered.")
        self._restored = count("addresses_restored", "Addresses put back after others took them.")
        self._lapsed = count("leases_lapsed", "Leases that ran out before they were renewed.")
        self._step_failures = count("step_failures", "Steps that the kernel refused.", "step")

    def _health(self) -> None:
        count = self._counter
        self._rounds = count("health_check_rounds", "Rounds of health checks.", "check", "result")
        self._took = self._gauge("health_check_seconds", "What the last round took.", "check")

    def _config(self) -> None:
        self._reloads = self._counter("config_reloads", "Reloads.", "trigger", "result")
        self._apply = Histogram(
            "wayout_config_apply_seconds",
            "Time that each phase of a reload took.",
            ["phase"],
            registry=self._registry,
            buckets=APPLY_BUCKETS,
        )

    def members(self, members: Iterable[Member]) -> None:
        """Everybody that gossip knows now."""
        self._picture.members = tuple(members)

    def socket_failures(self, failures: Mapping[str, int]) -> None:
        """What the kernel refused on the gossip socket, by errno name; looked at when scraped."""
        self._picture.failures = failures

    def health_changed(self, was: str, now: str) -> None:
        """A member changed its state."""
        self._health_changes.labels(self._word("was", was), self._word("now", now)).inc()

    def verdict(self, verdict: str) -> None:
        """Watchers called a member silent, unreachable or reachable."""
        self._verdicts.labels(self._word("verdict", verdict)).inc()

    def probe_failed(self, peer: str, kind: str) -> None:
        """A probe of `peer` failed; `kind` is direct, indirect or tcp."""
        self._probe_failures.labels(self._peer(peer), self._word("kind", kind)).inc()

    def refuted(self) -> None:
        """Somebody held us for suspect or dead, and we said otherwise."""
        self._refutations.inc()

    def datagrams_blocked(self, peer: str) -> None:
        """`peer` answers over TCP alone."""
        self._blocked.labels(self._peer(peer)).inc()

    def health_score(self, score: int) -> None:
        """Our own health score changed."""
        self._score.set(score)

    def dropped(self, reason: str) -> None:
        """Something from the network was refused."""
        self._dropped.labels(self._word("dropped", reason)).inc()

    def sync_failed(self, reason: str) -> None:
        """A push/pull failed."""
        self._sync_failures.labels(self._word("sync", reason)).inc()

    def owned(self, ips: Collection[str], states: Mapping[str, int]) -> None:
        """The addresses that this node carries, and how many of all are in each state."""
        self._picture.owned = frozenset(ips)
        self._picture.states = dict(states)

    def move_finished(self, cause: str, phases: Mapping[str, float]) -> None:
        """An address changed hands; `phases` as in history, with or without `_seconds`."""
        word = self._word("cause", cause)
        self._moves.labels(word).inc()
        for name, seconds in phases.items():
            phase = name.removesuffix("_seconds")
            if phase in PHASES:
                self._failover.labels(phase, word).observe(seconds)

    def announced(self, count: int, *, family: int, kind: str) -> None:
        """`count` announcements went out; `kind` is first or repeat."""
        self._announcements.labels(str(family), self._word("announced", kind)).inc(count)

    def conflict_found(self) -> None:
        """A stranger answers for an address."""
        self._conflicts.inc()

    def address_restored(self) -> None:
        """An address that somebody removed was put back."""
        self._restored.inc()

    def lease_lapsed(self, count: int = 1) -> None:
        """Leases ran out before they could be renewed."""
        self._lapsed.inc(count)

    def step_failed(self, step: str) -> None:
        """The kernel refused a step."""
        self._step_failures.labels(self._word("step", step)).inc()

    def renewal_lag(self, seconds: float) -> None:
        """How late a renewal was."""
        self._picture.renewal.see(seconds)

    def loop_lag(self, seconds: float) -> None:
        """How late the event loop woke up."""
        self._picture.loop.see(seconds)

    def check_asked(self, check: str, *, passed: bool, seconds: float) -> None:
        """A health check had its turn; names come from the configuration, so there are few."""
        self._rounds.labels(check, "passed" if passed else "failed").inc()
        self._took.labels(check).set(seconds)

    def checks(self, states: Mapping[str, str]) -> None:
        """The state of every health check: unknown, passing, failing or damped."""
        self._picture.checks = dict(states)

    def config_reload(self, trigger: str, result: str) -> None:
        """A reload came to its end."""
        self._reloads.labels(self._word("trigger", trigger), self._word("result", result)).inc()

    def config_applied(self, phase: str, seconds: float) -> None:
        """A phase of a reload took `seconds`."""
        self._apply.labels(self._word("apply", phase)).observe(seconds)

    def config(self, facts: ConfigFacts) -> None:
        """The configuration is in another state."""
        self._picture.config = facts

    def config_members(self, states: Mapping[str, int], *, differing: int) -> None:
        """Members by the state of their configuration, and how many differ from ours."""
        self._picture.config_members = dict(states)
        self._picture.differing = differing

    def _counter(self, name: str, says: str, *labels: str) -> Counter:
        return Counter(f"wayout_{name}", says, labels, registry=self._registry)

    def _gauge(self, name: str, says: str, *labels: str) -> Gauge:
        return Gauge(f"wayout_{name}", says, labels, registry=self._registry)

    def _word(self, where: str, word: str) -> str:
        """`word` if it may become a label: a plain word, and not one too many."""
        seen = self._words.setdefault(where, set())
        if word in seen:
            return word
        if len(seen) >= WORDS_LIMIT or not _WORD.fullmatch(word):
            return "other"
        seen.add(word)
        return word

    def _peer(self, name: str) -> str:
        if name not in self._peers and len(self._peers) >= PEERS_LIMIT:
            return "other"
        self._peers.add(name)
        return name


class _Picture:
    """What is told as a whole; samples are made at the scrape, outside the loop's busy paths."""

    def __init__(self, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        self._wall = wall
        self.members: tuple[Member, ...] = ()
        self.owned: frozenset[str] = frozenset()
        self.states: dict[str, int] = {}
        self.checks: dict[str, str] = {}
        self.config: ConfigFacts | None = None
        self.config_members: dict[str, int] = {}
        self.differing = 0
        self.failures: Mapping[str, int] = {}
        self.loop = Peak(clock)
        self.renewal = Peak(clock)

    def collect(self) -> Iterator[Metric]:
        """All samples of this moment."""
        info = _family("build_info", "Which wayout this is.", "version")
        info.add_metric([release.VERSION], 1)
        yield info
        lags = {"event_loop": self.loop, "lease_renewal": self.renewal}
        for name, peak in lags.items():
            yield _single(f"{name}_lag_seconds", "Worst lag of the last minute.", peak.worst())
        yield from self._members()
        says = "Datagrams that the kernel refused to send or receive."
        failures = CounterMetricFamily("wayout_socket_failures", says, labels=["error"])
        for name, count in sorted(self.failures.items()):
            failures.add_metric([name], count)
        yield failures
        yield from self._egress()
        if self.config is not None:
            yield from self._config(self.config)

    def _members(self) -> Iterator[GaugeMetricFamily]:
        tally = Tally(member.health.name.lower() for member in self.members)
        states = ("alive", "suspect", "dead", "left")
        yield _by("members", "Members by state.", "state", {each: tally[each] for each in states})
        rtts = {each.name: each.rtt for each in self.members if each.rtt is not None}
        yield _by("member_rtt_seconds", "Last measured round trip.", "peer", rtts)
        unreachable = sum(each.unreachable for each in self.members)
        yield _single("members_unreachable", "Members that nobody reaches.", unreachable)

    def _egress(self) -> Iterator[GaugeMetricFamily]:
        yield _single("owned_ips", "Addresses that this node carries.", len(self.owned))
        yield _by("ip_owner", "1 on the owner.", "ip", dict.fromkeys(sorted(self.owned), 1))
        yield _by("egress_ips", "Addresses of all egresses by state.", "state", self.states)
        # One that was not asked yet stands in nobody's way, and is no reason for an alert.
        fit = {name: state not in {"failing", "damped"} for name, state in self.checks.items()}
        yield _by("health_check_up", "0 while a check fails or is damped.", "check", fit)

    def _config(self, facts: ConfigFacts) -> Iterator[GaugeMetricFamily]:
        now = self._wall()
        stale = now - facts.stale_since if facts.stale_since is not None else 0.0
        numbers: dict[str, tuple[str, float]] = {
            "last_reload_successful": ("1 if the last reload was applied.", facts.reloaded),
            "last_reload_success_timestamp_seconds": ("When that was.", facts.reloaded_at),
            "generation": ("Applied changes since the start.", facts.generation),
            "digest": ("First 48 bits of the digest.", _number(facts.digest)),
            "stale": ("1 if the files say something that is not applied.", stale > 0),
            "stale_seconds": ("For how long.", max(stale, 0.0)),
            "pending_restart": ("1 if a restart is needed.", facts.pending_fields > 0),
            "pending_restart_fields": ("Options that wait for it.", facts.pending_fields),
            "file_differs": ("1 if a file was edited and not loaded.", facts.file_differs),
            "apply_inconsistent": ("1 if a roll-back failed.", facts.inconsistent),
            "warnings": ("Warnings of the running configuration.", facts.warnings),
            "digest_mismatch_peers": ("Members with other cluster settings.", self.differing),
        }
        for name, (says, value) in numbers.items():
            yield _single(f"config_{name}", says, value)
        ages = {layer: now - at for layer, at in facts.layers.items()}
        yield _by("config_layer_age_seconds", "Age of each layer.", "layer", ages)
        errors = {layer: layer in facts.layer_errors for layer in facts.layers}
        yield _by("config_layer_error", "1 if a layer is unusable.", "layer", errors)
        mode = {facts.watch_mode: 1} if facts.watch_mode else {}
        yield _by("config_watch_mode", "How files are watched.", "mode", mode)
        states = self.config_members
        yield _by("config_members_by_state", "Members by configuration.", "state", states)


def _family(name: str, says: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"wayout_{name}", says, labels=labels)


def _single(name: str, says: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"wayout_{name}", says, value=value)


def _by(name: str, says: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = _family(name, says, label)
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _number(digest: str) -> int:
    """A number and not a label: a label that changes would leave a series behind each time."""
    digits = digest[: DIGEST_BITS // 4]
    return int(digits, 16) if re.fullmatch(r"[0-9a-f]+", digits) else 0
