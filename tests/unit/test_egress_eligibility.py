"""Who may carry an egress, and the word for it when not."""

from ipaddress import ip_address, ip_network

import pytest

from egress.eligibility import Refusal, keeps, refusal, selects, tally
from egress.model import Candidate, Egress, Expression, Selector

V4, V6 = ip_address("192.0.2.1"), ip_address("2001:db8::1")
PLAIN = Egress("e", (V4,))
RACK = Egress("e", (V4,), Selector(labels=(("rack", "r1"),)))


def node(**fields):
    return Candidate("node-a", **fields)


@pytest.mark.parametrize(
    ("candidate", "word"),
    [
        (node(), None),
        (node(present=False), "gone"),
        (node(present=False, left=True), "left"),
        (node(unreachable=True), "unreachable"),
        (node(restarting=True), "restarting"),
        (node(reasons=("draining", "starting")), "draining"),
        (node(reasons=("a word from the future",)), "unfit"),
        (node(weight=0.0), "not_eligible"),
        (node(networks=(ip_network("10.0.0.0/8"),)), "no_subnet"),
        (node(networks=(ip_network("10.0.0.0/8"), ip_network("192.0.2.0/24"))), None),
    ],
)
def test_every_refusal_has_its_word(candidate, word):
    assert refusal(candidate, PLAIN) == word


def test_a_selector_refuses_by_its_word():
    assert refusal(node(), RACK) is Refusal.SELECTOR
    assert refusal(node(labels=(("rack", "r1"),)), RACK) is None


def test_a_dual_stack_egress_needs_a_subnet_for_each_family():
    both = Egress("e", (V4, V6))

    assert refusal(node(networks=(ip_network("192.0.2.0/24"),)), both) is Refusal.NO_SUBNET
    nets = (ip_network("192.0.2.0/24"), ip_network("2001:db8::/64"))
    assert refusal(node(networks=nets), both) is None


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        (Expression("rack", "In", ("r1", "r2")), True),
        (Expression("rack", "In", ("r2",)), False),
        (Expression("zone", "In", ("r1",)), False),
        (Expression("rack", "NotIn", ("r1",)), False),
        (Expression("zone", "NotIn", ("r1",)), True),
        (Expression("rack", "Exists"), True),
        (Expression("zone", "Exists"), False),
        (Expression("rack", "DoesNotExist"), False),
        (Expression("zone", "DoesNotExist"), True),
    ],
)
def test_match_expressions_are_those_of_kubernetes(expression, holds):
    assert selects(Selector(expressions=(expression,)), {"rack": "r1"}) is holds


def test_an_operator_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match="Near"):
        selects(Selector(expressions=(Expression("rack", "Near"),)), {})


@pytest.mark.parametrize(
    ("candidate", "stays"),
    [
        (node(), True),
        (node(present=False), False),
        (node(unreachable=True), False),
        (node(unreachable=True, restarting=True), True),
        (node(reasons=("starting",)), True),
        (node(reasons=("starting",), unreachable=True), False),
        (node(reasons=("draining",)), False),
        (node(networks=(ip_network("10.0.0.0/8"),)), False),
        (node(left=True), False),
    ],
)
def test_what_ends_a_tenure(candidate, stays):
    assert keeps(candidate, PLAIN) is stays


def test_a_vacancy_is_told_by_its_most_frequent_reason_first():
    here = Egress("e", (ip_address("192.0.2.9"),), interface="nope0")
    candidates = [
        Candidate("a", lacks=frozenset({"nope0"})),
        Candidate("b", lacks=frozenset({"nope0"})),
        Candidate("c", reasons=("draining",)),
        Candidate("d"),
    ]

    assert tally(candidates, here) == "no_interface 2, draining 1"
    assert tally([], here) == "no member"
