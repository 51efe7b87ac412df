"""When a lease is renewed, and when it is too late."""

from ipaddress import ip_address

from hypothesis import given
from hypothesis import strategies as st

from egress.lease import MARGIN, Renewals, Verdict, gone_after, interval, renewable
from egress.model import Binding

ONE = Binding(ip_address("192.0.2.1"), "eth0")
TWO = Binding(ip_address("192.0.2.2"), "eth0")


def holding(now=0.0):
    renewals = Renewals(3.0)
    renewals.hold([ONE], now)
    return renewals


def test_a_lease_is_renewed_four_times_in_its_length():
    assert interval(3.0) == 0.75
    assert holding().due(0.74) == ()
    assert holding().due(0.75) == (ONE,)
    assert holding().next_due() == 0.75


def test_a_stall_shorter_than_lease_less_margin_less_interval_moves_nothing():
    assert renewable(0.0, 0.75 + 1.74, 3.0)
    assert not renewable(0.0, 3.0 - MARGIN, 3.0)


def test_a_renewal_that_came_too_late_has_lapsed():
    assert holding().renewed(ONE, before=2.6, after=2.6) is Verdict.LAPSED
    assert holding().lapsed(2.6) == (ONE,)


def test_a_renewal_whose_send_crossed_the_end_is_straddled():
    assert holding().renewed(ONE, before=2.4, after=2.6) is Verdict.STRADDLED


@given(st.lists(st.floats(0.0, 2.4), min_size=1, max_size=20))
def test_renewing_in_time_keeps_for_ever(pauses):
    renewals, now = holding(), 0.0
    for pause in pauses:
        now += pause
        assert renewals.renewed(ONE, before=now, after=now) is Verdict.KEPT
    assert renewals.lapsed(now) == ()


def test_what_was_dropped_is_not_renewed_any_more():
    renewals = holding()
    renewals.hold([TWO], 0.0)
    renewals.drop([ONE])

    assert renewals.due(1.0) == (TWO,)
    assert renewals.renewed(ONE, before=0.1, after=0.1) is Verdict.LAPSED


def test_gone_leaves_the_kernel_its_slack():
    assert gone_after(3.0) == 4.3


def test_the_oldest_is_renewed_first_and_those_of_one_age_in_the_order_they_came():
    renewals = Renewals(3.0)
    renewals.hold([TWO], 1.0)
    renewals.hold([ONE], 0.5)
    renewals.hold([Binding(ip_address("192.0.2.0"), "eth0")], 0.5)

    assert [str(each.ip) for each in renewals.due(2.0)] == ["192.0.2.1", "192.0.2.0", "192.0.2.2"]


@given(
    st.lists(st.tuples(st.floats(0.0, 3.0), st.floats(0.0, 1.0)), max_size=20),
    st.sampled_from([2.0, 3.0, 10.0]),
)
def test_nothing_is_renewed_that_may_be_another_nodes_by_now(steps, lease):
    """A renewal counts only if it began, and ended, while the kernel surely had the address."""
    renewals, last, now = Renewals(lease), 0.0, 0.0
    renewals.hold([ONE], now)
    for pause, sending in steps:
        before, after = now + pause, now + pause + sending
        now = after
        verdict = renewals.renewed(ONE, before, after)
        if verdict is Verdict.KEPT:
            assert after - last < lease - MARGIN
            last = before
        else:
            assert after - last >= lease - MARGIN
            return
