"""Local health."""

from hypothesis import given
from hypothesis import strategies as st

from gossip.awareness import DOUBT, LATE, Awareness


@given(st.lists(st.integers(-9, 9)), st.integers(1, 16))
def test_the_score_stays_within_its_bounds(deltas, limit):
    awareness = Awareness(limit)

    for delta in deltas:
        before = awareness.score
        assert awareness.shift(delta) == (awareness.score != before)
        assert 0 <= awareness.score < limit


def test_patience_grows_with_every_point():
    awareness = Awareness(8)

    awareness.shift(3)

    assert awareness.scale(0.5) == 2.0


def test_a_late_loop_counts_once_and_silences_us_for_a_while():
    awareness = Awareness(8)

    assert not awareness.lagged(LATE / 2, 100.0)
    assert not awareness.degraded(100.0)
    assert awareness.lagged(3.0, 100.0)
    assert not awareness.lagged(3.0, 100.01)

    assert awareness.score == 1
    assert awareness.degraded(100.0 + DOUBT / 2)
    assert not awareness.degraded(100.02 + DOUBT)


def test_half_the_scale_is_too_ill_to_accuse():
    awareness = Awareness(8)

    awareness.shift(3)
    assert not awareness.degraded(0.0)
    awareness.shift(1)

    assert awareness.degraded(0.0)
