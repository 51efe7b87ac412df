"""Laws of what an observer concludes, over every way in which two hosts may answer."""

from hypothesis import given
from hypothesis import strategies as st

from agent.lab.recorder import Recorder
from agent.lab.timeline import BREAK, Pulse, Timeline

IP = "10.77.0.201"
MACS = ("aa", "bb", "cc")
answers = st.lists(st.frozensets(st.sampled_from(MACS), max_size=2), min_size=1, max_size=60)
EVERY = 1.0


def watched(rounds):
    timeline = Timeline(EVERY)
    book = Recorder(0.0)
    for number, macs in enumerate(rounds):
        for mac in sorted(macs):
            book.heard(IP, mac, number + 0.25)
        for change in book.asked(number + 1.0):
            timeline.fold(change)
    timeline.fold(Pulse(float(len(rounds) - 1), EVERY))
    return timeline


@given(answers)
def test_every_question_that_two_answered_is_within_an_overlap(rounds):
    found = watched(rounds).overlaps(IP, 0.0, float(len(rounds)))

    for number, macs in enumerate(rounds):
        if len(macs) > 1:
            assert any(each.since <= number and number + 1 <= each.until for each in found)


@given(answers)
def test_every_question_that_nobody_answered_is_within_a_silence_or_a_short_break(rounds):
    timeline = watched(rounds)
    found = timeline.silences(IP, 0.0, float(len(rounds) - 1))

    for number, macs in enumerate(rounds[:-1]):
        near = range(max(0, number - int(BREAK)), min(len(rounds), number + int(BREAK) + 1))
        if not any(rounds[each] for each in near):
            assert any(each.since <= number and number + 1 <= each.until for each in found), macs


@given(answers)
def test_what_one_host_alone_answers_never_overlaps(rounds):
    alone = [frozenset({"aa"}) if macs else frozenset() for macs in rounds]

    assert watched(alone).overlaps(IP, 0.0, float(len(rounds))) == ()


@given(answers)
def test_silence_and_presence_leave_nothing_out(rounds):
    timeline = watched(rounds)
    until = float(len(rounds) - 1)
    silent = sum(each.seconds for each in timeline.silences(IP, 0.0, until))
    covered = union((max(s.first, 0.0), min(s.missed, until)) for s in timeline.spans(IP))

    assert silent + covered >= until - 2 * EVERY * (1 + len(timeline.spans(IP)))
    assert silent <= until


@given(answers)
def test_moves_go_from_one_host_to_another(rounds):
    for move in watched(rounds).moves(IP, 0.0, float(len(rounds))):
        assert move.source != move.target


def union(spans):
    total, reached = 0.0, 0.0
    for start, stop in sorted(spans):
        total += max(0.0, stop - max(start, reached))
        reached = max(reached, stop)
    return total
