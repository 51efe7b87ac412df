"""The simulator as others use it: faults do what they say, figures are right, runs replay."""

import os
import subprocess
import sys
from random import Random

import pytest

from gossip.events import HealthChanged
from gossip.peer import Address, Health
from gossip.simulator.link import Link, combined
from gossip.simulator.network import Network, gather
from gossip.simulator.scenario import PRESETS, Run, Scenario, ScenarioError, Stall, run

RUN = """
from random import Random
from gossip.simulator.link import Link
from gossip.simulator.scenario import Scenario, Stall, run
link = Link(loss=0.1, duplicate=0.1, reorder=0.1)
stall = Stall(nodes=2, seconds=0.4, every=3.0)
print(run(Scenario(nodes=8, owners=2, kill=2, duration=12, link=link, stall=stall), Random).digest)
"""


def digest(hash_seed):
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def test_a_run_is_the_same_to_the_bit_in_another_process():
    assert digest(1) == digest(2) != ""


def test_another_seed_is_another_run():
    runs = [run(Scenario(nodes=4, duration=2, seed=seed), Random).digest for seed in (1, 2)]
    assert runs[0] != runs[1]


def test_the_death_of_an_owner_is_noticed_within_its_limit():
    result = run(Scenario(nodes=10, owners=2, kill=2, duration=10), Random)
    assert result.undetected == 0
    assert 0.2 < result.detection.p50 <= result.detection.max <= 0.9
    assert result.known_by(0.99).max - result.detection.p50 <= 0.5
    assert result.alarms.deaths == 0


def network(count=4):
    made = Network(1, Random)
    gather(made, [f"n{number}" for number in range(count)])
    made.run(5)
    return made


def health(made, viewer, subject):
    return made.hosts[viewer].machine.member(subject).health


def test_views_are_one_when_settled_and_two_when_parted():
    made = network()
    assert made.views() == 1
    made.part("n0", "n1")
    made.run(40)
    assert made.views() == 2
    made.heal()
    made.run(15)
    assert made.views() == 1


def test_who_is_not_heard_in_one_direction_alone_is_reached_through_others():
    made = network()
    made.cut("n0", "n1")
    made.run(30)
    assert health(made, "n0", "n1") is health(made, "n1", "n0") is Health.ALIVE


def test_a_name_comes_back_at_another_address():
    made = network()
    made.crash("n3")
    made.run(30)
    assert health(made, "n0", "n3") is Health.DEAD
    moved = Address("10.9.9.9", 7955)
    made.restart("n3", "n0", address=moved)
    made.run(10)
    member = made.hosts["n0"].machine.member("n3")
    assert (member.health, member.address) == (Health.ALIVE, moved)


def test_a_slow_process_is_behind_with_its_answers():
    def rtt(cost):
        made = network()
        made.slow("n1", cost)
        made.run(5)
        return made.hosts["n0"].machine.member("n1").rtt

    assert rtt(0.0) < 0.003
    assert rtt(0.02) >= 0.02


def test_loss_thins_and_duplicates_double():
    dice = Random(1)
    thin = [len(Link().arrivals(dice, 0.3)) for _ in range(2000)]
    assert sum(thin) / 2000 == pytest.approx(0.7, abs=0.05)
    assert len(Link(duplicate=1.0).arrivals(dice, 0.0)) == 2
    assert combined(0.5, 0.5, 0.0) == 0.75


def test_streams_take_long_on_a_lossy_link_and_give_up():
    delays = [Link().stream_delay(Random(seed), 0.9, 5.0) for seed in range(200)]
    assert max(delays) == 5.0
    assert any(1.0 < delay < 5.0 for delay in delays)


@pytest.mark.parametrize(
    "wrong",
    [
        {"nodes": 1},
        {"nodes": 3, "kill": 3},
        {"nodes": 3, "owners": 4},
        {"nodes": 3, "duration": 0},
        {"nodes": 3, "stall": Stall(nodes=4, seconds=1, every=2)},
        {"nodes": 3, "stall": Stall(nodes=1, seconds=2, every=2)},
    ],
)
def test_what_cannot_be_run_is_refused(wrong):
    with pytest.raises(ScenarioError):
        Scenario(**wrong)


def test_half_a_run_tells_what_is_known():
    under_way = Run(Scenario(nodes=3, duration=20), Random)
    assert under_way.result().seconds == 0.0
    under_way.advance(100)
    assert under_way.done
    assert under_way.share == 1.0


def memberlist_death(size, seed):
    """Seconds until the first suspicion and until the first verdict dead."""
    tuning = PRESETS["memberlist-lan"]()
    under_way = Run(
        Scenario(nodes=size, owners=0, kill=1, duration=80, seed=seed, tuning=tuning), Random
    )
    while not under_way.done:
        under_way.advance(80)
    (death,) = under_way.result().deaths
    suspected = min(
        at - death.at
        for host in under_way.network.running()
        for at, event in host.events
        if isinstance(event, HealthChanged) and event.member.health is Health.SUSPECT
        if event.member.name == death.name and at >= death.at
    )
    return suspected, death.detected


@pytest.mark.parametrize(("size", "suspect", "dead"), [(3, 1.78, 5.98), (5, 3.40, 7.59)])
def test_memberlist_lan_takes_as_long_as_memberlist_did(size, suspect, dead):
    # Measured on hashicorp/memberlist with its LAN defaults, kill -9, once each.
    runs = [memberlist_death(size, seed) for seed in range(1, 13)]
    firsts = [first for first, _ in runs]
    waits = sorted(last - first for first, last in runs)
    assert min(firsts) - 0.5 <= suspect <= max(firsts) + 0.5
    assert waits[len(waits) // 2] == pytest.approx(dead - suspect, abs=0.5)
