"""Conditions travel to the other members, and junk does not."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import notices
from agent.notices import Notice
from egress.decision import Condition, Kind

IPS = [ip_address("192.0.2.40"), ip_address("2001:db8::40")]
CONFLICT = Condition(Kind.ADDRESS_CONFLICT, "02:00:00:00:00:63", "stranger")


def test_conditions_survive_the_wire_in_the_order_of_the_addresses():
    said = notices.of({IPS[1]: CONFLICT, IPS[0]: Condition(Kind.NO_INTERFACE, None, "no_subnet")})

    assert notices.read(notices.to_plain(said)) == said
    assert [each.ip for each in said] == IPS


def test_a_notice_reads_as_one_line():
    (said,) = notices.of({IPS[0]: CONFLICT})

    assert said.text == "AddressConflict: 02:00:00:00:00:63 answers: stranger"
    assert Notice(IPS[0], "NoInterface", "", "no_subnet").text == "NoInterface: no_subnet"


def test_a_hundred_conflicts_fit_into_one_datagram():
    many = {ip_address(f"192.0.2.{number}"): CONFLICT for number in range(1, 101)}

    assert len(notices.of(many)) == notices.NOTICES_MAX


@pytest.mark.parametrize(
    "value",
    [
        {},
        [[]] * 100,
        ["x"],
        [[b"\x0a", "k", "m", "d"]],
        [[b"\x0a\0\0\1", "k", "m"]],
        [[b"\x0a\0\0\1", "k", "m", "d" * 40]],
        [[b"\x0a\0\0\1", "k", "m", "\x1b[31m"]],
        [[b"\x0a\0\0\1", "k", 7, "d"]],
    ],
)
def test_impossible_notices_are_refused(value):
    with pytest.raises(ValueError, match="notice"):
        notices.read(value)


@given(st.recursive(st.none() | st.text() | st.binary(), st.lists, max_leaves=8))
def test_whatever_comes_is_notices_or_a_value_error(value):
    try:
        found = notices.read(value)
    except ValueError:
        return
    assert all(isinstance(each, Notice) for each in found)
