"""A plan touches only ours, releases first, and rests once applied."""

from ipaddress import ip_address

from hypothesis import given
from hypothesis import strategies as st

from egress.model import Announce, Bind, Binding, Bound, Interface, Observed, Unbind
from egress.plan import plan

LINKS = (
    Interface("eth0", 2, "02:00:00:00:00:0b", carrier=True),
    Interface("eth1", 3, "02:00:00:00:01:0b", carrier=True),
)
IPS = [ip_address(text) for text in ("192.0.2.1", "192.0.2.2", "2001:db8::1")]
binding = st.builds(Binding, ip=st.sampled_from(IPS), interface=st.sampled_from(["eth0", "eth1"]))
bindings = st.frozensets(binding)


def seen(ours, foreign=(), prefix=None):
    def bound(each, mark):
        return Bound(each, mark, 3.0 if mark else None, prefix or each.ip.max_prefixlen)

    marked = [bound(each, mark=True) for each in ours]
    return Observed(LINKS, (*marked, *(bound(each, mark=False) for each in foreign)))


def carried_out(steps, ours):
    for step in steps:
        match step:
            case Bind(each):
                ours |= {each}
            case Unbind(each):
                ours -= {each}
            case Announce(each, _):
                assert each in ours
    return ours


@given(bindings, bindings, bindings)
def test_a_plan_arrives_and_then_rests(desired, ours, foreign):
    foreign -= ours
    after = carried_out(plan(desired, seen(ours, foreign)), ours)

    assert after == desired
    assert plan(desired, seen(after, foreign - after)) == ()


@given(bindings, bindings, bindings)
def test_releases_come_first_and_touch_only_ours(desired, ours, foreign):
    steps = plan(desired, seen(ours, foreign - ours))
    kinds = [type(step) for step in steps]

    assert Unbind not in kinds[kinds.count(Unbind) :]
    assert {step.binding for step in steps if isinstance(step, Unbind)} == ours - desired


@given(bindings)
def test_each_address_is_announced_right_after_it_is_bound(desired):
    steps = plan(desired, seen(frozenset()))

    for first, second in zip(steps[::2], steps[1::2], strict=True):
        assert second == Announce(first.binding, first=True)


def test_an_address_whose_mark_was_taken_away_is_ours_if_we_remember_it():
    mine = Binding(IPS[0], "eth0")
    stripped = seen((), [mine])

    assert plan(frozenset(), stripped) == ()
    assert plan(frozenset(), stripped, frozenset({mine})) == (Unbind(mine),)
    assert plan(frozenset({mine}), stripped, frozenset({mine}))[0] == Bind(mine)


def test_a_missing_interface_is_left_out():
    assert plan(frozenset({Binding(IPS[0], "gone0")}), seen(())) == ()
