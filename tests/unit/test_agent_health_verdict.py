"""Rise, fall and damping: single stories; the laws are in tests/property."""

from __future__ import annotations

import pytest

from agent.health import damping, verdict
from agent.health.damping import CLEAN, Policy
from agent.health.verdict import Threshold, Verdict, asked_anew, failed, fit, heard, passed

THRESHOLD = Threshold(rise=2, fall=3)
POLICY = Policy(half_life=60.0, suppress=3.0, reuse=1.0, longest=300.0)


def after(marks: str, start: Verdict | None = None, *, step: float = 1.0) -> Verdict:
    """The verdict after rounds that passed (+) or failed (-), one a second."""
    found = Verdict() if start is None else start
    for number, mark in enumerate(marks):
        result = passed() if mark == "+" else failed("refused")
        found = heard(found, result, THRESHOLD, POLICY, number * step)
    return found


@pytest.mark.parametrize(
    ("marks", "passing"),
    [
        ("+", True),
        ("-", False),
        ("+--", True),
        ("+---", False),
        ("+--+--", True),
        ("-+", False),
        ("-++", True),
        ("-+-+", False),
        ("+---+", False),
        ("+---++", True),
    ],
)
def test_a_verdict_changes_after_enough_rounds_in_a_row(marks: str, passing: bool) -> None:  # noqa: FBT001
    assert after(marks).passing is passing


def test_a_check_that_was_not_asked_yet_stands_in_nobodys_way() -> None:
    assert fit(Verdict(), POLICY, 0.0)


def test_a_failing_check_says_what_it_found_and_since_when() -> None:
    found = after("++---")

    assert (found.detail, found.since) == ("refused", 4.0)


def test_after_another_question_the_next_answer_decides_alone() -> None:
    assert after("-", asked_anew(after("+"))).passing is False
    assert asked_anew(after("-")).passing is False


def test_a_start_that_fails_is_no_flap() -> None:
    assert after("-").penalty == CLEAN


def test_a_check_that_fails_four_times_in_a_minute_is_not_believed() -> None:
    flap = "---++"
    calm, wild = after("+" + 3 * flap), after("+" + 4 * flap)

    assert fit(calm, POLICY, 20.0)
    assert wild.passing
    assert not fit(wild, POLICY, 20.0)


def test_what_is_not_believed_is_believed_again_at_the_time_that_was_told() -> None:
    wild = after("+" + 4 * "---++")
    at = verdict.changes_at(wild, POLICY, 20.0)

    assert not fit(wild, POLICY, at - 0.01)
    assert fit(wild, POLICY, at + 0.01)


def test_a_bad_hour_costs_no_more_than_the_longest_time() -> None:
    bad = after("+" + 500 * "---++")
    now = 500 * 5.0

    assert damping.reuse_at(bad.penalty, POLICY) - now <= POLICY.longest + 5.0


def test_one_penalty_is_half_of_it_after_the_half_life() -> None:
    one = damping.failed(CLEAN, POLICY, 0.0)

    assert damping.level(one, POLICY, 60.0) == pytest.approx(0.5)
