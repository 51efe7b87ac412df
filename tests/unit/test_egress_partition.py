"""Who lets go in a partition, and how long takers wait for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egress.partition import (
    FENCE_BY,
    MASS_LOSS_WAIT,
    Policy,
    Sight,
    expected_members,
    fenced,
    not_before,
)


def majority(seen, expected, gateway=None, lowest=None):
    return fenced(Policy.MAJORITY, Sight(seen, expected, gateway, lowest))


@given(st.integers(2, 1000), st.data())
def test_two_sides_of_a_partition_never_both_keep_without_a_tie(expected, data):
    mine = data.draw(st.integers(1, expected - 1))
    if 2 * mine != expected:
        assert majority(mine, expected) != majority(expected - mine, expected)


@pytest.mark.parametrize("expected", [4, 10])
def test_of_two_equal_halves_the_one_with_the_gateway_keeps(expected):
    assert not majority(expected // 2, expected, gateway=True)
    assert majority(expected // 2, expected, gateway=False)


def test_of_two_equal_halves_without_a_gateway_the_lowest_name_keeps():
    assert not majority(2, 4, lowest=True)
    assert majority(2, 4, lowest=False)


def test_the_survivor_of_two_nodes_without_a_gateway_is_not_fenced():
    assert not majority(1, 2, lowest=True)
    assert not majority(1, 2, lowest=False)


def test_a_lone_node_is_never_fenced():
    assert not any(fenced(policy, Sight(1, 1, None)) for policy in Policy)


def test_the_policies_keep_and_release_do_what_they_say():
    assert not fenced(Policy.KEEP, Sight(1, 5, None))
    assert fenced(Policy.RELEASE, Sight(1, 5, None))
    assert not fenced(Policy.RELEASE, Sight(2, 5, None))


def test_expected_members_are_the_most_that_anybody_says():
    assert expected_members(None, 3, 5) == 5
    assert expected_members(7, 3, 5) == 7
    assert expected_members(None, 0, 0) == 1


def test_takers_wait_longer_when_two_vanished_at_once():
    assert not_before({"a": 10.0}) == {"a": 10.0 + FENCE_BY}
    assert not_before({"a": 10.0, "b": 10.2}) == {
        "a": 10.0 + MASS_LOSS_WAIT,
        "b": 10.2 + MASS_LOSS_WAIT,
    }
    assert not_before({"a": 10.0, "b": 60.0}) == {"a": 10.5, "b": 60.5}
