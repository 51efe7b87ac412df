"""From answers to silences, overlaps and moves."""

import pytest

from agent.lab import recorder
from agent.lab.recorder import Recorder
from agent.lab.timeline import FOREVER, Announcement, Pulse, Span, Timeline

A, B, IP = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "10.77.0.201"
EVERY = 0.01


def watched(*answerers, every=EVERY):
    """A timeline of questions at 0, 0.01, …, each answered at once by the MACs given."""
    timeline = Timeline(every)
    book = Recorder(0.0)
    for number, macs in enumerate(answerers):
        for mac in macs:
            book.heard(IP, mac, number * every + 0.001)
        for change in book.asked((number + 1) * every):
            timeline.fold(change)
    timeline.fold(Pulse((len(answerers) - 1) * every, every))
    return timeline


def test_a_cluster_at_rest_is_one_span_and_no_more_changes():
    timeline = watched(*[[A]] * 500)

    assert timeline.closed == []
    assert timeline.spans(IP) == (Span(IP, A, 0.0, 0.001, pytest.approx(4.99)),)
    assert timeline.silences(IP, 0.0, 4.99) == ()
    assert timeline.overlaps(IP, 0.0, 4.99) == ()


def test_a_silence_lasts_from_the_last_answer_to_the_next_one():
    timeline = watched(*[[A]] * 10, *[[]] * 50, *[[B]] * 10)

    (silence,) = timeline.silences(IP, 0.0, timeline.until)

    assert silence.since == pytest.approx(0.091)
    assert silence.seconds == pytest.approx(0.51)


def test_a_silence_that_has_not_ended_counts():
    timeline = watched(*[[A]] * 10, *[[]] * 50)

    (silence,) = timeline.silences(IP, 0.0, timeline.until)

    assert silence.until == timeline.until
    assert silence.seconds == pytest.approx(0.499)


def test_an_address_that_nobody_ever_had_is_silent_all_the_time():
    timeline = watched(*[[]] * 50)

    (silence,) = timeline.silences(IP, 0.1, 0.4)

    assert silence.seconds == pytest.approx(0.3)


def test_a_change_between_two_questions_is_neither_silence_nor_overlap():
    timeline = watched(*[[A]] * 10, *[[B]] * 10)

    assert timeline.silences(IP, 0.0, timeline.until) == ()
    assert timeline.overlaps(IP, 0.0, timeline.until) == ()
    (move,) = timeline.moves(IP, 0.0, timeline.until)
    assert (move.source, move.target, move.at) == (A, B, pytest.approx(0.101))


def test_two_answers_to_one_question_are_an_overlap_until_the_next_one():
    timeline = watched(*[[A]] * 10, [A, B], *[[B]] * 10)

    (overlap,) = timeline.overlaps(IP, 0.0, timeline.until)

    assert overlap.macs == (A, B)
    assert overlap.seconds == pytest.approx(EVERY)


def test_two_that_answer_in_turn_are_both_there():
    timeline = watched(*[[A], [B]] * 20)

    (overlap,) = timeline.overlaps(IP, 0.0, timeline.until)

    assert overlap.seconds > 0.35


def test_one_lost_answer_is_a_silence_and_not_the_end_of_a_span():
    timeline = watched(*[[A]] * 10, [], *[[A]] * 10)

    assert len(timeline.spans(IP)) == 1
    assert timeline.moves(IP, 0.0, timeline.until) == ()


def test_the_takeover_is_the_first_answer_of_another_after_the_fault():
    timeline = watched(*[[A]] * 10, *[[]] * 40, *[[B]] * 10)

    assert timeline.taken(IP, 0.05, A) == pytest.approx(0.501)
    assert timeline.taken(IP, 0.05, B) == pytest.approx(0.05)


def test_whoever_answers_beside_the_old_one_has_taken_over_already():
    timeline = watched(*[[A, B]] * 10)

    assert timeline.taken(IP, 0.05, A) == pytest.approx(0.05)


def test_no_takeover_is_none():
    assert watched(*[[A]] * 10).taken(IP, 0.0, A) is None


def test_only_those_who_answered_within_a_time_count():
    timeline = watched(*[[A]] * 10, *[[B]] * 10)

    assert timeline.macs(IP, 0.0, 0.05) == {A}
    assert timeline.macs(IP, 0.15, 0.2) == {B}
    assert timeline.macs(IP, 0.0, 0.2) == {A, B}


def test_an_answer_that_comes_after_the_next_question_belongs_to_the_one_before():
    book = Recorder(0.0)
    book.heard(IP, A, 0.001)
    book.asked(0.01)
    book.heard(IP, B, 0.009)

    (span,) = [each for each in book.asked(0.02) if each.mac == B and each.missed == FOREVER]

    assert span.asked == 0.0


def test_changes_survive_the_way_over_a_pipe():
    for change in (
        Span(IP, A, 1.0, 1.5, 2.0),
        Span(IP, A, 1.0, 1.5, 2.0, 3.25),
        Announcement(IP, B, 4.0),
        Pulse(5.0, 0.01),
    ):
        assert recorder.read(recorder.line(change)) == change


@pytest.mark.parametrize("text", ["", "[]", "{}", '["span", 1]', '["pulse", "x", 0.0]'])
def test_a_line_of_another_kind_is_refused(text):
    with pytest.raises(ValueError, match=r".*"):
        recorder.read(text)


def test_the_document_names_every_span():
    timeline = watched(*[[A]] * 10, *[[B]] * 10)
    timeline.fold(Announcement(IP, B, 0.1))

    document = timeline.document([IP])

    assert [each["mac"] for each in document["answers"][IP]] == [A, B]
    assert document["answers"][IP][1]["missed"] is None
    assert document["announcements"] == [{"ip": IP, "mac": B, "at": 0.1}]
