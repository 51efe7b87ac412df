"""Moves in the words of the contract: phases add up, and only what is an entry is read back."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import history
from egress.decision import Move
from egress.model import Cause

IP = ip_address("192.0.2.40")
marks = st.none() | st.floats(0, 1e6)


def move(**parts):
    times = {"lost": 10.0, "detected": 10.4, "elected": 10.41, "bound": 10.5, "announced": 10.501}
    fields = {"ip": IP, "name": "e", "origin": "b", "to": "a", "cause": Cause.NODE_DEAD}
    return Move(**{**fields, **times, **parts})


def test_phases_follow_each_other_from_the_loss_to_the_announcement():
    found = history.phases(move(checked=10.45))

    assert found == pytest.approx(
        {"detect": 0.4, "elect": 0.01, "check": 0.04, "bind": 0.05, "announce": 0.001}
    )
    assert history.entry(move(checked=10.45), 11.0, 1e9)["total_seconds"] == pytest.approx(0.501)


def test_a_check_that_was_over_before_the_election_took_no_time():
    found = history.phases(move(checked=10.3))

    assert found["check"] == 0.0
    assert sum(found.values()) == pytest.approx(0.501)


@given(st.tuples(*[marks] * 5, st.floats(0, 1e6)))
def test_times_in_whatever_order_never_give_a_negative_phase(times):
    lost, detected, elected, checked, announced, bound = times
    told = move(
        lost=lost,
        detected=detected,
        elected=elected,
        checked=checked,
        announced=announced,
        bound=bound,
    )

    found = history.entry(told, 2e6, 1.7e9)

    assert all(each >= 0 for each in found["phases"].values())
    assert found["total_seconds"] == pytest.approx(sum(found["phases"].values()), abs=1e-5)
    assert history.read(history.line(found)) == found


def test_an_entry_is_dated_when_the_move_ended():
    told = history.entry(move(), now=12.501, wall=1_700_000_002.0)

    assert told["at"] == "2023-11-14T22:13:20.000Z"
    assert list(told) == ["at", "ip", "name", "from", "to", "cause", "phases", "total_seconds"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[" * 5000,
        b"x" * 5000,
        history.line(history.entry(move(), 11.0, 1e9))[:-1],
        history.line({**history.entry(move(), 11.0, 1e9), "cause": "boredom"}),
        history.line({**history.entry(move(), 11.0, 1e9), "ip": None}),
        history.line({**history.entry(move(), 11.0, 1e9), "total_seconds": -1}),
        history.line({**history.entry(move(), 11.0, 1e9), "total_seconds": True}),
        history.line({**history.entry(move(), 11.0, 1e9), "phases": {}}),
    ],
)
def test_what_is_no_entry_is_refused(raw):
    with pytest.raises(ValueError):  # noqa: PT011 - whatever the reason
        history.read(raw)
