"""What counts as exactly one answerer, before and after."""

import pytest

from agent.lab import verdict
from agent.lab.timeline import Pulse, Span, Timeline
from agent.lab.verdict import Loss, Summary

A, B, C = "02:00:00:00:00:0b", "02:00:00:00:00:0c", "02:00:00:00:00:0d"
IP = "10.77.0.201"


def seen(*spans, until=10.0):
    """A timeline of (MAC, from, to) at an answer every 10 ms."""
    timeline = Timeline(0.01)
    for mac, begin, end in spans:
        timeline.fold(Span(IP, mac, begin, begin, end, end + 0.01))
    timeline.fold(Pulse(until, 0.01))
    return timeline


def test_one_owner_who_answers_alone_is_steady():
    assert verdict.steady(seen((A, 0.0, 10.0)), {IP: A}, 1.0, 9.0) == []


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ([], "not answered by"),
        ([(B, 0.0, 10.0)], "not answered by"),
        ([(A, 0.0, 10.0), (B, 4.0, 4.1)], "beside"),
    ],
)
def test_nobody_another_or_a_second_one_is_not_steady(spans, said):
    assert any(said in each for each in verdict.steady(seen(*spans), {IP: A}, 1.0, 9.0))


def test_a_take_over_is_measured_from_the_fault_and_the_silence_from_the_last_answer():
    timeline = seen((A, 0.0, 5.2), (B, 6.0, 10.0))

    lost = verdict.loss(timeline, IP, A, 5.0, 10.0)

    assert lost.taken == pytest.approx(1.0)
    assert lost.silent == pytest.approx(0.8)
    assert lost.doubled == 0
    assert lost.by == {B}
    assert verdict.moved([lost], A) == []


def test_two_who_answer_at_once_are_found():
    timeline = seen((A, 0.0, 6.0), (B, 5.5, 10.0))

    lost = verdict.loss(timeline, IP, A, 5.0, 10.0)

    assert lost.doubled == pytest.approx(0.51)
    assert "two hosts" in verdict.moved([lost], A)[0]


@pytest.mark.parametrize(
    "lost",
    [
        Loss(IP, None, 5.0, 0.0, frozenset()),
        Loss(IP, 1.0, 1.0, 0.0, frozenset({B, C})),
        Loss(IP, 1.0, 1.0, 0.0, frozenset({A})),
        Loss(IP, 1.0, 1.0, 0.0, frozenset()),
        Loss(IP, 1.0, 1.0, 0.02, frozenset({B})),
    ],
    ids=["nobody", "two", "the old one", "gone again", "overlap"],
)
def test_anything_but_exactly_one_other_host_is_a_problem(lost):
    assert verdict.moved([lost], A)


def test_p99_of_a_hundred_is_the_second_worst():
    assert verdict.summary(range(1, 101)) == Summary(50.5, 99, 100)
    assert verdict.summary([0.3]) == Summary(0.3, 0.3, 0.3)
    assert verdict.summary([]) is None
