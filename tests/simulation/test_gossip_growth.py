"""The thread by number: a cluster that grows by itself, and timers that are changed under it."""

from itertools import pairwise

import pytest

from gossip.events import HealthChanged, Unreachable
from gossip.peer import Health
from gossip.tuning import Tuning, suspicion_bounds
from gossip.wire.messages import Alive, Ping
from gossip.wire.packet import Envelope
from support.cluster import Cluster
from support.talk import OURS, VERSIONS, Talk

STALL = 0.3
MINUTE = 60.0


def known(talk, count):
    """The members up to so many are heard of."""
    have = len(talk.machine.members())
    told = [
        Alive(1, f"m{n}", bytes((10, 1, n >> 8, n & 255)), 7955, OURS, VERSIONS)
        for n in range(have, count)
    ]
    for at in range(0, len(told), 20):
        talk.hear(*told[at : at + 20])


def least(talk):
    members, of_late = talk.machine.sizes(talk.now)
    return suspicion_bounds(Tuning(), members, of_late).least


def grown(cluster, count, per_second):
    """So many more hosts, which join by the first; those who run stall now and then."""
    names = [*cluster.hosts]
    for number in range(len(names), count):
        name = f"n{number}"
        cluster.add(name, "n0")
        if not number % per_second:
            stalled(cluster)
    return [*cluster.hosts]


def stalled(cluster):
    """Somebody's loop stands still for a while."""
    name = cluster.random.choice([*cluster.hosts])
    cluster.pause(name)
    cluster.run(STALL)
    cluster.resume(name)
    cluster.run(1.0 - STALL)


def deaths(cluster, *but):
    return [
        (host.name, event.member.name)
        for host in cluster.hosts.values()
        for _, event in host.events
        if isinstance(event, HealthChanged)
        and event.member.health is Health.DEAD
        and event.member.name not in but
    ]


def test_t14_the_time_to_refute_follows_the_size_without_a_leap_either_way():
    talk = Talk(tuning=Tuning(probe_interval=1e6, gossip_interval=1e6))
    seen = []
    for count in (10, 20, 40, 80, 160, 320, 600):
        known(talk, count)
        talk.run(1.0)
        assert least(talk) == suspicion_bounds(Tuning(), count, count).least
        seen.append(least(talk))
        talk.run(MINUTE - 1.0)
    assert all(1.0 <= after / before <= 1.5 for before, after in pairwise(seen))
    assert seen[-1] / seen[0] == pytest.approx(2.778, abs=0.001)


@pytest.mark.slow
def test_t14_nobody_dies_by_a_stall_while_the_cluster_grows():
    cluster = Cluster(seed=14)
    cluster.gather(10)
    names = grown(cluster, 100, 3)
    for _ in range(15):
        stalled(cluster)

    assert cluster.agree(names)
    assert deaths(cluster) == []


@pytest.mark.slow
def test_t41_three_nodes_or_a_hundred_notice_a_lost_owner_alike_and_nobody_set_anything():
    cluster = Cluster(seed=41)
    cluster.gather(3)
    lost = []
    for count in (3, 30, 100):
        names = grown(cluster, count, 1000)
        cluster.run_until(
            lambda names=names: cluster.agree([x for x in names if x not in lost]), 30
        )
        owner = names[-1]
        cluster.do(owner, lambda machine, now: machine.carry(carrying=True, now=now))
        cluster.run(2.0)
        cluster.crash(owner)
        lost.append(owner)
        began = cluster.now
        cluster.run(1.5)
        first = min(
            at
            for name in names
            for at, event in cluster.seen(name, Unreachable, began)
            if event.name == owner
        )
        assert first - began < 0.8, count
    assert deaths(cluster, *lost) == []


class Overheard(Cluster):
    """Keeps the times at which `n0` asks somebody whether it is there."""

    pings = ()

    def _perform(self, host, effects):
        if host.name == "n0":
            asked = [x for each in effects.datagrams for x in Envelope().open(each.data)]
            self.pings = (*self.pings, *(self.now for x in asked if isinstance(x, Ping)))
        super()._perform(host, effects)


@pytest.mark.parametrize(("before", "after"), [(2.0, 0.5), (0.5, 2.0), (30.0, 1.0)])
def test_t28_timers_are_armed_anew_without_a_burst_or_a_long_gap(before, after):
    cluster = Overheard(tuning=Tuning(probe_interval=before))
    cluster.gather(5)
    cluster.run(before * 1.3)
    changed, cluster.pings = cluster.now, ()

    cluster.do("n0", lambda machine, now: machine.set_tuning(Tuning(probe_interval=after), now))
    cluster.run(20 * after)

    gaps = [late - early for early, late in pairwise([changed, *cluster.pings])]
    assert max(gaps) <= 2 * after
    assert 18 <= len(cluster.pings) <= 21
