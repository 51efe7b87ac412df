"""The broadcast queue."""

from hypothesis import given
from hypothesis import strategies as st

from gossip.rumors import FRAMING, Rumors


def queue(*pairs, longest=1400):
    rumors = Rumors(longest=longest)
    for subject, data in pairs:
        rumors.add(subject, data)
    return rumors


def test_the_rarest_goes_first_then_the_longest_then_the_newest():
    rumors = queue(("old", b"1" * 30), ("long", b"2" * 40), ("new", b"3" * 30))

    assert rumors.draw(1000, 9, ours=False) == [b"2" * 40, b"3" * 30, b"1" * 30]
    rumors.add("rare", b"4" * 20)
    assert rumors.draw(40, 9, ours=False) == [b"4" * 20]


def test_what_does_not_fit_lets_shorter_ones_pass():
    rumors = queue(("long", b"2" * 90), ("short", b"1" * 30))

    assert rumors.draw(60, 9, ours=False) == [b"1" * 30]


def test_a_rumor_retires_after_its_number_of_transmissions():
    rumors = queue(("x", b"1" * 30))

    sent = [rumors.draw(100, 4, ours=False) for _ in range(6)]

    assert [len(each) for each in sent] == [1, 1, 1, 1, 0, 0]
    assert len(rumors) == 0


def test_news_of_the_same_subject_replaces_what_was_queued():
    rumors = queue(("x", b"1" * 30), ("x", b"2" * 30))

    assert rumors.draw(1000, 9, ours=False) == [b"2" * 30]


def test_our_own_messages_stay_among_us():
    rumors = queue(("x", b"1" * 30))
    rumors.add("mine", b"2" * 30, ours=True)

    assert rumors.draw(1000, 9, ours=False) == [b"1" * 30]
    assert sorted(rumors.draw(1000, 9, ours=True)) == [b"1" * 30, b"2" * 30]


def test_our_own_messages_do_not_starve_behind_a_thousand_members():
    rumors = queue(*((f"n{number}", b"1" * 100) for number in range(1000)))
    rumors.add("mine", b"2" * 100, ours=True)

    assert b"2" * 100 in rumors.draw(1000, 9, ours=True)


def test_what_fits_no_packet_is_not_kept_for_ever():
    rumors = queue(("x", b"1" * 30), ("x", b"2" * 2000))

    assert len(rumors) == 0


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(16, 200), st.booleans()), max_size=40),
    st.lists(st.tuples(st.integers(0, 500), st.booleans()), max_size=40),
    st.integers(1, 8),
)
def test_no_packet_is_overfull_and_every_rumor_ends(added, draws, limit):
    rumors = Rumors(longest=200)
    for number, (subject, size, ours) in enumerate(added):
        rumors.add(subject, number.to_bytes(2, "big") + bytes(size - 2), ours=ours)

    times: dict[bytes, int] = {}
    for budget, ours in draws:
        drawn = rumors.draw(budget, limit, ours=ours)
        assert sum(len(each) + FRAMING for each in drawn) <= budget
        assert len(set(drawn)) == len(drawn)
        for each in drawn:
            times[each] = times.get(each, 0) + 1
    for _ in range(limit * (len(added) + 1)):
        rumors.draw(1400, limit, ours=True)

    assert all(count <= limit for count in times.values())
    assert len(rumors) == 0
