"""The suspicion clock."""

import pytest

from gossip.suspicion import Suspicion
from gossip.tuning import SuspicionBounds

BOUNDS = SuspicionBounds(least=2.0, most=12.0, wanted=2)


def test_a_lone_accuser_waits_longest():
    assert Suspicion("b", BOUNDS, 100.0).deadline == 112.0


def test_every_other_accuser_shortens_the_wait_down_to_the_least():
    suspicion = Suspicion("b", BOUNDS, 100.0)

    deadlines = [suspicion.deadline]
    for accuser in "cd":
        assert suspicion.confirm(accuser)
        deadlines.append(suspicion.deadline)

    assert deadlines == sorted(deadlines, reverse=True)
    assert deadlines[-1] == 102.0


@pytest.mark.parametrize("accusers", [["b"], ["c", "c"], ["c", "d", "e"]])
def test_an_accuser_counts_once_and_only_as_long_as_more_are_wanted(accusers):
    suspicion = Suspicion("b", BOUNDS, 100.0)

    answers = [suspicion.confirm(accuser) for accuser in accusers]

    assert not answers[-1]


def test_nobody_is_waited_for_when_nobody_could_confirm():
    assert Suspicion("b", SuspicionBounds(2.0, 12.0, 0), 100.0).deadline == 102.0


def test_an_announced_restart_and_our_own_sleep_are_added():
    suspicion = Suspicion("b", BOUNDS, 100.0, extra=30.0)

    suspicion.postpone(7.0)
    suspicion.confirm("c")
    suspicion.confirm("d")

    assert suspicion.deadline == 100.0 + 7.0 + 30.0 + 2.0
