"""When a node holds itself for cut off."""

from agent.inputs import ContactReported
from agent.isolation import Isolation, expected_members
from agent.world import World
from support.settings import parsed


def world(*others, me="a", text=""):
    settings = parsed(f"version: 1\nnode: {{name: {me}}}\n{text}").settings
    return World(me=me, settings=settings, started=0.0, remembered=frozenset(others))


class Calls:
    def __init__(self):
        self.bursts = []
        self.knocks = 0

    def isolation(self):
        return Isolation(self.bursts.append, self._knock)

    def _knock(self):
        self.knocks += 1


def heard(isolation, at, *answered):
    asked = frozenset(at.remembered)
    isolation.contact(ContactReported(frozenset(answered), asked, 0.0), at, 1.0)
    return isolation.fenced(1.0)


def test_a_node_that_hears_less_than_half_is_fenced_until_it_hears_more():
    calls, at = Calls(), world("b", "c")
    isolation = calls.isolation()

    assert heard(isolation, at)
    assert not heard(isolation, at, "b")


def test_a_fenced_node_asks_again_and_again():
    calls, at = Calls(), world("b", "c")
    isolation = calls.isolation()
    heard(isolation, at)
    for now in (1.1, 1.6, 1.7, 2.2):
        isolation.fenced(now)

    assert calls.bursts == [1.6, 2.2]


def test_of_two_halves_without_a_gateway_the_one_with_the_lowest_name_keeps():
    low, high = Calls().isolation(), Calls().isolation()

    assert not heard(low, world("b", "c", "d"), "b")
    assert heard(high, world("a", "b", "d", me="c"), "d")


def test_an_even_split_asks_for_the_gateway_and_goes_by_it():
    calls, at = Calls(), world("b", "c", "d")
    isolation = calls.isolation()
    heard(isolation, at, "b")
    isolation.gateway(answers=False, world=at, now=1.1)

    assert calls.knocks == 1
    assert isolation.fenced(1.1)
    isolation.gateway(answers=True, world=at, now=1.2)
    assert not isolation.fenced(1.2)


def test_the_survivor_of_two_goes_on():
    assert not heard(Calls().isolation(), world("a", me="b"))


def test_members_that_were_known_before_a_restart_are_still_expected():
    assert expected_members(world("b", "c", "d", "e")) == 5
    assert expected_members(world("b", text="gossip: {expected_nodes: 7}")) == 7
