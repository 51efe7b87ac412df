"""Two writers who undo each other are told apart from one who goes back once."""

from hypothesis import given
from hypothesis import strategies as st

from config.flipflop import LONGEST, RETURNS, WINDOW, FlipFlop


def quarrel(flips, changes, *, start=0.0, gap=10.0):
    """Contents A and B in turn; the changes at which a warning came."""
    return [at for at in range(changes) if flips.taken("AB"[at % 2], start + at * gap)]


def test_a_quarrel_is_warned_of_once_and_earns_rest():
    flips = FlipFlop()

    assert quarrel(flips, 20) == [RETURNS + 1]
    assert flips.rest(5.0, 200.0) == LONGEST


def test_going_back_once_is_no_quarrel():
    flips = FlipFlop()

    assert quarrel(flips, 3) == []
    assert flips.rest(5.0, 30.0) == 5.0


def test_new_contents_are_no_quarrel_however_many():
    flips = FlipFlop()

    assert not any(flips.taken(str(each), each * 5.0) for each in range(100))


def test_a_quarrel_is_forgotten_after_the_window():
    flips = FlipFlop()
    quarrel(flips, 20)

    assert flips.rest(5.0, 200.0 + WINDOW) == 5.0
    assert quarrel(flips, 20, start=200.0 + 2 * WINDOW) == [RETURNS + 1]


@given(st.lists(st.tuples(st.sampled_from("ABCD"), st.floats(0.1, 100.0)), max_size=60))
def test_the_rest_is_never_shorter_than_asked_and_bounded(changes):
    flips, now = FlipFlop(), 0.0
    for content, pause in changes:
        now += pause
        flips.taken(content, now)
        assert 5.0 <= flips.rest(5.0, now) <= LONGEST
