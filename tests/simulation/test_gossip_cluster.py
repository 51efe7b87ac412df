"""Claims about a cluster, in virtual time."""

from itertools import pairwise

import pytest

from gossip import events
from gossip.peer import Address, Health
from gossip.tuning import Tuning, memberlist_lan
from gossip.wire import own
from support.cluster import Cluster


def carry(machine, now):
    return machine.carry(carrying=True, now=now)


def put_down(machine, now):
    return machine.carry(carrying=False, now=now)


def settled(count, *, carriers=(), **network):
    cluster = Cluster(**network)
    names = cluster.gather(count)
    for name in carriers:
        cluster.do(name, carry)
    cluster.run(1.0 + cluster.random.random())
    return cluster, names


def verdict_times(cluster, names, kind, since):
    return [cluster.seen(name, kind, since)[0][0] - since for name in names]


# Joining and leaving.


def test_three_nodes_find_each_other_through_their_seeds():
    cluster = Cluster()
    cluster.add("a")
    cluster.add("b", "a")
    cluster.add("c", "b")

    assert cluster.run_until(lambda: cluster.agree("abc"), 5) < 1


def test_a_node_that_starts_before_its_seed_finds_it():
    cluster = Cluster()
    seed = Address("10.9.9.9", 7955)
    first = cluster.add("a")
    cluster.do("a", lambda machine, now: machine.set_seeds((seed,), now))
    cluster.run(20)
    assert len(first.machine.members()) == 1

    cluster.add("b", address=seed)

    assert cluster.run_until(lambda: cluster.agree("ab"), 15) < 11


def test_a_cold_start_of_thirty_at_loss_is_complete_in_seconds():
    cluster = Cluster(loss=0.02)
    names = [f"n{number}" for number in range(30)]
    for name in names:
        cluster.add(name, *names[: min(len(cluster.hosts), 2)])

    assert cluster.run_until(lambda: cluster.agree(names), 60) < 10


def test_a_departure_is_heard_at_once_and_is_no_death():
    cluster, names = settled(8)

    cluster.do("n3", lambda machine, now: machine.leave(now))
    rest = [name for name in names if name != "n3"]
    cluster.run_until(lambda: all(cluster.health(name, "n3") is Health.LEFT for name in rest), 0.1)

    assert cluster.run_until(lambda: cluster.hosts["n3"].machine.left, 3) < 2
    cluster.crash("n3")
    cluster.run(60)
    assert all(cluster.seen(name, events.SyncFailed) == [] for name in rest)
    assert all(cluster.hosts[name].machine.member("n3") is None for name in rest)


@pytest.mark.parametrize("absence", [1.0, 60.0])
def test_a_node_that_comes_back_under_its_name_is_taken_for_alive(absence):
    cluster, names = settled(4)
    cluster.crash("n2")
    cluster.run(absence)

    cluster.restart("n2", "n0")

    assert cluster.run_until(lambda: cluster.agree(names), 20) < 2


def test_a_dead_name_comes_back_with_another_address():
    cluster, names = settled(4)
    cluster.crash("n2")
    cluster.run_until(lambda: cluster.health("n0", "n2") is Health.DEAD, 30)

    cluster.restart("n2", "n0", address=Address("10.7.7.7", 7955))

    assert cluster.run_until(lambda: cluster.agree(names), 20) < 2
    assert cluster.hosts["n1"].machine.member("n2").address == Address("10.7.7.7", 7955)


def test_a_living_name_with_another_address_is_taken_once_the_old_one_died():
    cluster, names = settled(4)
    cluster.crash("n2")

    cluster.restart("n2", "n0", address=Address("10.7.7.7", 7955))

    cluster.run_until(lambda: cluster.agree(names) and _moved(cluster), 30)
    assert cluster.seen("n0", events.NameConflict)


def _moved(cluster):
    new = Address("10.7.7.7", 7955)
    viewers = [cluster.hosts[name].machine for name in ("n0", "n1", "n3")]
    return all(machine.member("n2").address == new for machine in viewers)


# Death.


def test_a_death_is_noticed_by_everybody_and_by_gossip_alone():
    cluster, names = settled(5)

    cluster.crash("n4")

    rest = names[:4]
    cluster.run_until(lambda: all(cluster.health(name, "n4") is Health.DEAD for name in rest), 20)
    assert all(cluster.seen(name, events.Unreachable) == [] for name in rest)


@pytest.mark.parametrize("count", [3, 10, pytest.param(40, marks=pytest.mark.slow)])
def test_the_death_of_a_carrier_is_known_within_the_promised_time(count):
    times = []
    for seed in range(6):
        cluster, names = settled(count, carriers=["n1"], seed=seed, loss=0.02)
        died = cluster.now
        cluster.crash("n1")
        cluster.run(2)
        rest = [name for name in names if name != "n1"]
        times += verdict_times(cluster, rest, events.Unreachable, died)
        silent = verdict_times(cluster, rest, events.Silent, died)
        assert max(silent) < 0.65

    times.sort()
    assert times[len(times) // 2] <= 0.51
    assert times[int(len(times) * 0.99)] <= 0.9


def test_a_verdict_says_since_when():
    cluster, _ = settled(3, carriers=["n1"])
    died = cluster.now

    cluster.crash("n1")
    cluster.run(2)

    for name in ("n0", "n2"):
        (_, verdict), *_ = cluster.seen(name, events.Unreachable, died)
        assert died - 0.11 <= verdict.since <= died + 0.01
        assert cluster.hosts[name].machine.member("n1").unreachable


def test_a_process_that_is_gone_while_its_host_lives_is_told_apart():
    cluster, _ = settled(3, carriers=["n1"])
    died = cluster.now

    cluster.crash("n1", power=False)
    cluster.run(2)

    gone = cluster.seen("n0", events.ProcessGone, died) + cluster.seen(
        "n2", events.ProcessGone, died
    )
    assert gone
    assert max(verdict_times(cluster, ["n0", "n2"], events.Unreachable, died)) <= 0.6


def test_the_death_of_one_who_carries_nothing_is_no_verdict():
    cluster, _ = settled(3, carriers=["n1"])
    cluster.do("n1", put_down)
    cluster.run(1)

    cluster.crash("n1")
    cluster.run(3)

    assert cluster.seen("n0", events.Unreachable) == cluster.seen("n0", events.Silent) == []


def test_an_announced_restart_is_no_verdict():
    cluster, names = settled(3, carriers=["n1"])

    cluster.do("n1", lambda machine, now: machine.set_meta({"restarting": 20.0}, now))
    cluster.run(0.3)
    cluster.crash("n1", power=False)
    cluster.run(15)

    for name in ("n0", "n2"):
        assert cluster.seen(name, events.Unreachable) == []
        assert cluster.seen(name, events.ProcessGone) == []
        assert cluster.health(name, "n1") is not Health.DEAD
    cluster.restart("n1", "n0")
    assert cluster.run_until(lambda: cluster.agree(names), 10) < 2


def test_a_departure_of_a_carrier_is_no_verdict():
    cluster, _ = settled(3, carriers=["n1"])

    cluster.do("n1", lambda machine, now: machine.leave(now))
    cluster.run(0.5)
    cluster.crash("n1")
    cluster.run(3)

    assert cluster.seen("n0", events.Silent) == cluster.seen("n2", events.Silent) == []


# Stalls and loss.


def test_a_paused_carrier_is_reachable_the_moment_it_goes_on():
    cluster, names = settled(4, carriers=["n1"])
    cluster.pause("n1")
    cluster.run(1.5)
    assert all(cluster.hosts[name].machine.member("n1").unreachable for name in ("n0", "n2", "n3"))

    resumed = cluster.now
    cluster.resume("n1")
    cluster.run(0.2)

    for name in ("n0", "n2", "n3"):
        assert cluster.seen(name, events.Reachable, resumed)
        assert not cluster.hosts[name].machine.member("n1").unreachable
    assert cluster.agree(names)


@pytest.mark.parametrize("length", [3.0, 40.0])
def test_a_paused_node_refutes_when_it_goes_on_and_accuses_nobody(length):
    cluster, names = settled(5)
    cluster.pause("n1")
    cluster.run(length)
    resumed = cluster.now

    cluster.resume("n1")

    assert cluster.run_until(lambda: cluster.agree(names), 10) < 2
    cluster.run(10)
    blamed = {
        each.member.name
        for name in names
        for _, each in cluster.seen(name, events.HealthChanged, resumed)
        if each.member.health is not Health.ALIVE
    }
    assert blamed == set()


def test_a_watcher_that_sleeps_accuses_nobody():
    cluster, names = settled(3, carriers=["n1"])

    for _ in range(5):
        cluster.pause("n0")
        cluster.run(1.0)
        cluster.resume("n0")
        cluster.run(2.0)

    assert all(cluster.seen(name, events.Unreachable) == [] for name in names)
    assert all(cluster.seen(name, events.Silent) == [] for name in names)


@pytest.mark.parametrize("seconds", [60, pytest.param(900, marks=pytest.mark.slow)])
def test_at_five_per_cent_loss_nobody_dies_and_no_verdict_falls(seconds):
    cluster = Cluster(loss=0.05)
    names = cluster.gather(8)
    for name in names[:3]:
        cluster.do(name, carry)
    start = cluster.now

    cluster.run(seconds)

    for name in names:
        assert cluster.seen(name, events.Unreachable, start) == []
        assert [
            each
            for _, each in cluster.seen(name, events.HealthChanged, start)
            if each.member.health is Health.DEAD
        ] == []


def test_a_verdict_is_taken_back_when_one_way_is_left():
    cluster, _ = settled(4, carriers=["n1"])
    watchers = [name for name in ("n0", "n2", "n3") if cluster.watches(name, "n1")]
    cluster.block("n1", watchers[0])

    cluster.run(10)

    for name in ("n0", "n2", "n3"):
        assert not cluster.hosts[name].machine.member("n1").unreachable
        assert len(cluster.seen(name, events.Unreachable)) == 0
        assert len(cluster.seen(name, events.Silent)) < 12


# Partitions.


@pytest.mark.parametrize("length", [20, 120, pytest.param(600, marks=pytest.mark.slow)])
def test_a_partition_heals_by_itself_although_nobody_is_a_seed(length):
    cluster, names = settled(5)
    for name in names:
        cluster.do(name, lambda machine, now: machine.set_seeds((), now))
    cluster.part("n0", "n1")
    cluster.run(length)
    assert cluster.health("n0", "n1") is Health.ALIVE
    assert cluster.health("n0", "n2") is cluster.health("n2", "n0") is Health.DEAD

    cluster.heal()

    assert cluster.run_until(lambda: cluster.agree(names), 30) < 5


def test_a_ring_of_seeds_heals_as_well():
    cluster = Cluster()
    cluster.add("a")
    cluster.add("b", "a")
    cluster.add("c", "b")
    cluster.run(3)
    cluster.part("a")
    cluster.run(120)

    cluster.heal()

    assert cluster.run_until(lambda: cluster.agree("abc"), 30) < 5


@pytest.mark.parametrize(("count", "small"), [(3, 1), (5, 2), (7, 3)])
def test_the_small_side_learns_how_small_it_is_before_others_may_bind(count, small):
    for seed in range(6):
        cluster, names = settled(count, carriers=["n0"], seed=seed, loss=0.02)
        parted = cluster.now
        cluster.part(*names[:small])
        cluster.run(1)

        reports = [
            at - parted
            for at, each in cluster.seen("n0", events.Contact, parted)
            if 2 * (1 + len(each.answered)) < count and len(each.asked) == count - 1
        ]
        assert min(reports) <= 0.5


def test_contact_is_reported_again_while_silence_lasts_but_not_too_often():
    cluster, _ = settled(3, carriers=["n0"])
    parted = cluster.now
    cluster.part("n0")
    cluster.run(10)

    times = [at for at, _ in cluster.seen("n0", events.Contact, parted)]

    assert 10 <= len(times) <= 20
    assert min(later - earlier for earlier, later in pairwise(times)) >= 0.499


def test_a_healthy_carrier_asks_nobody():
    cluster, _ = settled(5, carriers=["n0", "n1"])
    start = cluster.now

    cluster.run(30)

    assert cluster.seen("n0", events.Contact, start) == []


def test_a_carrier_alone_in_the_world_asks_nobody():
    cluster = Cluster()
    cluster.add("a")
    cluster.do("a", carry)

    cluster.run(10)

    assert cluster.seen("a", events.Contact) == []


def test_silence_starts_a_burst_at_the_watchers_too():
    cluster, _ = settled(5, carriers=["n1"])
    died = cluster.now
    cluster.crash("n1")
    cluster.run(2)

    reports = [
        each for name in cluster.hosts for _, each in cluster.seen(name, events.Contact, died)
    ]

    assert reports
    assert all(each.asked - each.answered == {"n1"} for each in reports)


# The application's messages.


def test_a_broadcast_reaches_everybody_at_once_and_once():
    cluster, names = settled(20)
    start = cluster.now

    cluster.do("n5", lambda machine, now: machine.broadcast(40, {"x": 1}, now))
    cluster.run(5)

    for name in names[:5]:
        ((at, message),) = cluster.seen(name, events.UserMessage)
        assert message == events.UserMessage("n5", 40, {"x": 1})
        assert at - start < 0.5


def test_metadata_is_everywhere_within_a_gossip_round():
    cluster, names = settled(20)
    start = cluster.now

    cluster.do("n5", lambda machine, now: machine.set_meta({"unfit": True}, now))
    meta = own.pack(own.META, {"unfit": True})
    cluster.run_until(
        lambda: all(cluster.hosts[name].machine.member("n5").meta == meta for name in names), 3
    )

    assert cluster.now - start < 0.6


# The comparison.


def test_plain_memberlist_takes_seconds_for_the_same_death():
    cluster = Cluster(tuning=memberlist_lan())
    names = cluster.gather(5)
    died = cluster.now

    cluster.crash("n4")
    cluster.run_until(lambda: all(cluster.health(n, "n4") is Health.DEAD for n in names[:4]), 60)

    assert cluster.now - died > 4


def test_a_seed_is_a_history():
    def history(seed):
        cluster, _ = settled(6, carriers=["n1"], seed=seed, loss=0.1)
        cluster.crash("n1")
        cluster.run(10)
        return cluster.history()

    assert history(1) == history(1)
    assert history(1) != history(2)


def test_faster_tuning_is_faster():
    cluster, _ = settled(3, carriers=["n1"], tuning=Tuning(watch_interval=0.05, probe_timeout=0.1))
    died = cluster.now

    cluster.crash("n1")
    cluster.run(2)

    assert max(verdict_times(cluster, ["n0", "n2"], events.Unreachable, died)) < 0.3


def test_an_owner_sends_and_gets_twenty_packets_a_second_in_a_cluster_of_any_size():
    for count in (3, 12):
        cluster, names = settled(count, carriers=[f"n{number}" for number in range(count)])
        cluster.run(5.0)
        before = {name: cluster.hosts[name].sent for name in names}
        probes = cluster.hosts["n0"].machine._local.tuning.probe_interval

        cluster.run(10.0)

        rates = {name: (cluster.hosts[name].sent - before[name]) / 10.0 for name in names}
        for name, rate in rates.items():
            # Heartbeats, and the ping and the ack of each round of probing.
            assert 20.0 <= rate <= 20.6 + 2.5 / probes, (name, rate)
            watched = {cluster.hosts[each].machine._local.address for each in names if each != name}
            assert set(cluster.hosts[name].machine.watching) <= watched
            assert len(cluster.hosts[name].machine.watching) == 2
