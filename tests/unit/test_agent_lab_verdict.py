"""What counts as a kept promise, and what the figures of many trials are."""

import pytest

from agent.lab.timeline import Pulse, Span, Timeline
from agent.lab.verdict import loss, moved, steady, summary

A, B, C, IP = "aa", "bb", "cc", "10.77.0.201"


def timeline(*spans, until=10.0):
    made = Timeline(0.01)
    for mac, first, last in spans:
        made.fold(Span(IP, mac, first - 0.001, first, last, last + 0.01))
    made.fold(Pulse(until, 0.01))
    return made


def test_a_failover_is_the_time_to_the_first_answer_of_another():
    seen = timeline((A, 0.0, 5.0), (B, 5.6, 10.0))

    told = loss(seen, IP, A, 5.0, 10.0)

    assert told.taken == pytest.approx(0.6)
    assert told.silent == pytest.approx(0.6)
    assert told.doubled == 0
    assert told.by == {B}
    assert moved([told], A) == []


def test_nobody_taking_over_is_a_broken_promise():
    told = loss(timeline((A, 0.0, 5.0)), IP, A, 5.0, 10.0)

    assert told.taken is None
    assert moved([told], A) == [f"{IP} was taken over by nobody"]


def test_two_answerers_are_a_broken_promise():
    told = loss(timeline((A, 0.0, 5.5), (B, 5.0, 10.0)), IP, A, 4.0, 10.0)

    assert told.doubled == pytest.approx(0.51, abs=0.01)
    assert any("two hosts" in each for each in moved([told], A))


def test_an_old_owner_that_comes_back_is_a_broken_promise():
    told = loss(timeline((A, 0.0, 5.0), (B, 5.6, 8.0), (A, 8.1, 10.0)), IP, A, 5.0, 10.0)

    assert moved([told], A) == [f"{IP} was answered by {A} again after the failover"]


def test_an_owner_must_answer_and_nobody_else():
    seen = timeline((A, 0.0, 10.0), (B, 3.0, 3.5))

    assert steady(seen, {IP: A}, 5.0, 10.0) == []
    assert steady(seen, {IP: A}, 0.0, 10.0) == [f"{IP} was answered by {B} beside {A}"]
    assert len(steady(seen, {IP: C}, 5.0, 10.0)) == 2


def test_the_worst_of_few_is_their_99th_percentile():
    told = summary([3.0, 1.0, 2.0])

    assert (told.median, told.p99, told.worst) == (2.0, 3.0, 3.0)


def test_one_of_a_hundred_may_exceed_the_99th_percentile():
    told = summary(float(number) for number in range(1, 101))

    assert (told.p99, told.worst) == (99.0, 100.0)


def test_of_nothing_there_is_no_summary():
    assert summary([]) is None
