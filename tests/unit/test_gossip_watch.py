"""Watching and being watched, one machine against peers played by hand."""

import pytest

from gossip import events
from gossip.beat import Beat
from gossip.peer import Health, Identity
from gossip.pulse import RING
from gossip.pulse import place as ring_place
from gossip.tuning import NEVER, Tuning, memberlist_lan
from gossip.wire import codec, own
from gossip.wire.messages import Ack, Dead, IndirectPing, Nack, Ping, User
from support.talk import ME, OURS, Talk, alive, origin, place

QUIET = Tuning(probe_interval=3600.0, knock_interval=NEVER, push_pull_interval=3600.0)


def beat(number, *, incarnation=1, stop=False, hears=False):
    return User(Beat(f"n{number}", incarnation, stop, hears).packed())


def ring(*numbers):
    """The peers in the order in which they stand after `me`."""
    return sorted(numbers, key=lambda each: (ring_place(f"n{each}") - ring_place("me")) % RING)


def word(kind, number, *, incarnation=1, episode=1, age=0.3):
    name = "me" if number is None else f"n{number}"
    return User(own.pack(kind, [name.encode(), incarnation, episode, age]))


def watching(*peers, tuning=QUIET):
    talk = Talk(tuning=tuning, peers=peers)
    talk.hear(beat(1))
    talk.run(0.1)
    talk.hear(beat(1))
    talk.effects.clear()
    return talk


def floods(talk, kind):
    return [each for each in talk.said(User) if each.payload[2] == kind]


def kinds(talk, to):
    return {each.payload[2] for each in talk.said(User, to=to)}


def beats(talk, to):
    return [own.unpack(each.payload)[1] for each in talk.said(User, to=to) if each.payload[2] == 1]


# The watcher.


def test_three_missed_beats_start_a_check_on_every_way_and_a_word_to_everybody():
    talk = watching(1, 2, 3, 4)
    last = talk.now

    talk.run(0.29)
    assert talk.told(events.Silent) == []
    talk.run(0.02)

    assert talk.told(events.Silent) == [events.Silent("n1", last)]
    assert {each.node for each in talk.said(IndirectPing)} == {"n1"}
    assert [(dial.to, message.node) for dial, message in talk.dialled()] == [(place(1), "n1")]
    assert talk.said(Ping, to=1)
    assert all(own.SILENT in kinds(talk, number) for number in (1, 2, 3, 4))


def test_a_check_that_nobody_answers_is_a_verdict():
    talk = watching(1, 2, 3, 4)
    last = talk.now
    talk.run(0.31)

    talk.hear(Nack(talk.said(IndirectPing)[0].seq), source=2)
    talk.run(0.2)

    assert talk.told(events.Unreachable) == [events.Unreachable("n1", last)]
    assert floods(talk, own.UNREACHABLE)
    assert talk.member(1).unreachable
    assert talk.member(1).health is Health.ALIVE


def test_mute_relays_make_us_ask_once_more_before_we_speak():
    talk = watching(1, 2, 3, 4)

    talk.run(0.31 + 0.21)
    assert talk.told(events.Unreachable) == []
    talk.run(0.21)

    assert len(talk.told(events.Unreachable)) == 1


@pytest.mark.parametrize("way", ["relay", "stream", "datagram"])
def test_one_way_is_enough_to_be_reachable(way):
    talk = watching(1, 2, 3)
    talk.run(0.31)

    seq = talk.said(IndirectPing)[0].seq
    if way == "stream":
        dial, _ = talk.dialled()[0]
        talk.keep(talk.machine.replied(dial.token, Ack(seq), talk.now))
    else:
        talk.hear(Ack(seq), source=2 if way == "relay" else 1)

    assert talk.told(events.Reachable) == [events.Reachable("n1")]
    assert floods(talk, own.REACHABLE)
    talk.run(0.25)
    assert talk.told(events.Unreachable) == []


def test_a_refused_stream_is_no_way():
    talk = watching(1, 2)
    talk.run(0.31)
    talk.hear(Nack(talk.said(IndirectPing)[0].seq), source=2)

    dial, _ = talk.dialled()[0]
    talk.keep(talk.machine.replied(dial.token, None, talk.now))
    talk.run(0.2)

    assert len(talk.told(events.Unreachable)) == 1


def test_a_refused_datagram_starts_the_check_at_once():
    talk = watching(1, 2)

    talk.keep(talk.machine.refused(place(1), talk.now))

    assert talk.told(events.ProcessGone) == [events.ProcessGone("n1")]
    assert len(talk.told(events.Silent)) == 1


@pytest.mark.parametrize(
    "farewell",
    [
        beat(1, stop=True),
        alive(1, 2, meta=own.pack(own.META, {"restarting": 30.0})),
    ],
)
def test_the_duty_ends_when_the_member_says_so(farewell):
    talk = watching(1, 2)

    talk.hear(farewell)
    talk.run(2.0)

    assert talk.told(events.Silent) == []


def test_only_wayout_members_are_watched():
    talk = Talk(tuning=QUIET)
    talk.hear(alive(1, meta=b""))

    talk.hear(beat(1), beat(9))
    talk.run(2.0)

    assert talk.told(events.Silent) == []


def test_a_late_watcher_has_seen_no_silence():
    talk = watching(1, 2)

    talk.now += 3.0
    talk.keep(talk.machine.advance(talk.now))
    talk.run(0.15)
    assert talk.told(events.Silent) == []
    talk.hear(beat(1))
    talk.run(0.2)

    assert talk.told(events.Silent) == []


def test_a_watcher_that_doubts_itself_says_nothing():
    talk = watching(1, 2)

    talk.keep(talk.machine.lag(0.4, talk.now))
    talk.run(1.5)

    assert talk.told(events.Silent) == []


def test_a_member_that_is_reached_time_and_again_without_a_beat_has_put_its_load_down():
    talk = watching(1, 2)

    answered = set()
    for _ in range(1000):
        talk.run(0.01)
        for ping in talk.said(Ping, to=1):
            if ping.seq not in answered:
                answered.add(ping.seq)
                talk.hear(Ack(ping.seq), source=1)

    assert talk.machine.watching == ()
    assert len(talk.told(events.Silent)) <= 4
    assert talk.told(events.Unreachable) == []


def test_many_false_alarms_make_the_word_silent_too_cheap_to_spread():
    talk = watching(1, 2)

    for _ in range(10):
        talk.run(0.32)
        talk.hear(beat(1))
    assert len(talk.told(events.Silent)) == 3
    talk.run(0.31)
    talk.hear(Nack(talk.said(IndirectPing)[-1].seq), source=2)
    talk.run(0.25)

    assert len(talk.told(events.Unreachable)) == 1


# Everybody.


def test_a_verdict_is_passed_on_once_and_told():
    talk = Talk(tuning=QUIET, peers=(1, 2, 3))

    for _ in range(3):
        talk.hear(word(own.UNREACHABLE, 1), source=2)

    assert talk.told(events.Unreachable) == [events.Unreachable("n1", talk.now - 0.3)]
    assert len(floods(talk, own.UNREACHABLE)) == 3


def test_words_of_an_episode_count_in_their_order_whatever_order_they_arrive_in():
    talk = Talk(tuning=QUIET, peers=(1, 2))

    for kind in (own.UNREACHABLE, own.SILENT, own.REACHABLE, own.UNREACHABLE):
        talk.hear(word(kind, 1), source=2)

    assert len(talk.told(events.Unreachable)) == 1
    assert talk.told(events.Silent) == []
    assert not talk.member(1).unreachable


@pytest.mark.parametrize(
    "sign", [Ping(3, "me", origin(1)), alive(1, 2), word(own.REACHABLE, 1), Ack(999)]
)
def test_any_sign_of_life_takes_the_verdict_back(sign):
    talk = Talk(tuning=QUIET, peers=(1, 2))
    talk.hear(word(own.UNREACHABLE, 1), source=2)

    talk.hear(sign, source=1)

    assert talk.told(events.Reachable) == [events.Reachable("n1")]
    assert not talk.member(1).unreachable


def test_a_verdict_about_a_former_life_is_void():
    talk = Talk(tuning=QUIET, peers=(1, 2))
    talk.hear(alive(1, 5))

    talk.hear(word(own.UNREACHABLE, 1, incarnation=4), source=2)

    assert talk.told(events.Unreachable) == []


@pytest.mark.parametrize("kind", [own.SILENT, own.UNREACHABLE])
def test_whoever_hears_itself_called_missing_contradicts_at_once(kind):
    talk = Talk(tuning=QUIET, peers=(1, 2))

    talk.hear(word(kind, None, episode=4), source=2)

    (answer, *_) = floods(talk, own.REACHABLE)
    assert own.unpack(answer.payload)[1][:3] == [b"me", 1, 4]
    assert talk.told(events.Unreachable) == talk.told(events.Silent) == []


def test_whoever_heard_a_beat_just_now_vouches():
    talk = watching(1, 2, 3)

    talk.hear(word(own.SILENT, 1), source=2)

    assert talk.told(events.Silent) == []
    assert floods(talk, own.REACHABLE)
    assert floods(talk, own.SILENT) == []


def test_a_word_about_nobody_we_know_goes_no_further():
    talk = Talk(tuning=QUIET, peers=(1, 2))

    talk.hear(word(own.UNREACHABLE, 9), source=2)

    assert talk.said(User) == []


# The carrier.


def test_a_carrier_beats_to_its_two_neighbours_on_the_ring_of_names():
    talk = Talk(tuning=QUIET, peers=(1, 2, 3, 4, 5))

    talk.keep(talk.machine.carry(carrying=True, now=talk.now))
    talk.run(0.95)

    after, *others, before = ring(1, 2, 3, 4, 5)
    assert len(beats(talk, after)) >= 10
    assert len(beats(talk, before)) >= 10
    assert beats(talk, after)[0] == [b"me", 1, False, False]
    assert not any(beats(talk, number) for number in others)


def test_places_on_the_ring_are_wire_format():
    assert f"{ring_place('a'):016x}" == "40f89e395b66422f"


def pair(me_first, *, peers=(1, 2)):
    """We carry and hear beats of a pair whose name is smaller than ours, or greater."""
    talk = Talk(tuning=QUIET, identity=Identity("z" if me_first else "a", ME), peers=peers)
    talk.keep(talk.machine.carry(carrying=True, now=talk.now))
    return talk


def exchange(talk, seconds, *, hears=True):
    """Member 1 beats for so long, and member 2 answers what it is asked."""
    for step in range(round(seconds * 100)):
        for ping in talk.said(Ping, to=2)[-1:]:
            talk.hear(Ack(ping.seq), source=2)
        if step % 10 == 0:
            talk.hear(beat(1, hears=hears), source=1)
        talk.run(0.01)


def test_a_pair_asks_nothing_since_every_beat_says_whether_it_hears_the_other():
    talk = pair(me_first=False)
    exchange(talk, 0.3)
    talk.effects.clear()

    exchange(talk, 2.0)

    assert talk.said(Ping, to=1) == []
    assert {hears for *_, hears in beats(talk, 1)} == {True}
    assert talk.told(events.Contact) == []


def test_a_pair_that_no_longer_hears_us_makes_us_ask_everybody_within_a_third_of_a_second():
    talk = pair(me_first=False)
    exchange(talk, 1.0)
    talk.effects.clear()

    exchange(talk, 0.34, hears=False)

    assert talk.said(Ping, to=1)
    assert len(talk.said(Ping, to=2)) >= 2


def test_a_pair_that_says_farewell_starts_no_alarm():
    talk = pair(me_first=False)
    exchange(talk, 1.0)
    talk.hear(beat(1, stop=True), source=1)
    talk.effects.clear()

    for _ in range(100):
        for number in (1, 2):
            for ping in talk.said(Ping, to=number)[-1:]:
                talk.hear(Ack(ping.seq), source=number)
        talk.run(0.01)

    assert talk.told(events.Contact) == []
    assert not any(hears for *_, hears in beats(talk, 1))


def test_heartbeats_may_wait_while_nobody_is_missed_and_we_look_again_in_time():
    talk = Talk(tuning=QUIET, peers=(1, 2))
    assert not talk.machine.calm  # nothing would make us look

    talk.hear(beat(1), source=1)
    assert talk.machine.calm
    assert talk.machine.deadline <= talk.now + 0.31

    talk.run(0.32)
    assert not talk.machine.calm  # it is missed: whatever comes matters at once

    talk.hear(beat(1), source=1)
    talk.hear(word(own.SILENT, 2), source=1)
    assert not talk.machine.calm


def test_a_heartbeat_counts_from_when_it_came_and_not_from_when_it_was_read():
    talk = watching(1, 2, 3, 4)
    last = talk.now
    talk.run(0.1)

    data = codec.encode(beat(1))
    talk.keep(talk.machine.receive_all([(data, place(1), 0.09)], talk.now))
    talk.run(0.3)

    assert talk.told(events.Silent) == [events.Silent("n1", pytest.approx(last + 0.01))]


def test_an_old_heartbeat_read_late_takes_nothing_back():
    talk = watching(1, 2)
    last = talk.now

    talk.keep(talk.machine.receive_all([(codec.encode(beat(1)), place(1), 0.2)], talk.now))
    talk.run(0.31)

    assert talk.told(events.Silent) == [events.Silent("n1", last)]


def test_every_second_beat_asks_for_an_answer_and_the_watchers_take_turns():
    talk = Talk(tuning=QUIET, peers=(1, 2))
    talk.keep(talk.machine.carry(carrying=True, now=talk.now))

    for _ in range(100):
        for number in (1, 2):
            for ping in talk.said(Ping, to=number)[-1:]:
                talk.hear(Ack(ping.seq), source=number)
        talk.run(0.01)

    for number in (1, 2):
        assert len(beats(talk, number)) in {10, 11}
        assert len(talk.said(Ping, to=number)) in {5, 6}
    assert talk.told(events.Contact) == []


def test_a_mute_watcher_is_asked_again_and_then_everybody_is():
    talk = Talk(tuning=QUIET, peers=(1, 2, 3))
    talk.keep(talk.machine.carry(carrying=True, now=talk.now))

    mute = ring(1, 2, 3)[0]

    for _ in range(60):
        for number in {1, 2, 3} - {mute}:
            for ping in talk.said(Ping, to=number)[-1:]:
                talk.hear(Ack(ping.seq), source=number)
        talk.run(0.01)

    (report, *_) = talk.told(events.Contact)
    assert report.asked == {"n1", "n2", "n3"}
    assert report.asked - report.answered == {f"n{mute}"}


def test_putting_the_load_down_is_said_twice_and_then_there_is_silence():
    talk = Talk(tuning=QUIET, peers=(1, 2))
    talk.keep(talk.machine.carry(carrying=True, now=talk.now))
    talk.run(0.5)
    talk.effects.clear()

    talk.keep(talk.machine.carry(carrying=False, now=talk.now))
    talk.run(2.0)

    for number in (1, 2):
        assert [stop for _, _, stop, _ in beats(talk, number)] == [True, True]


def test_a_watcher_that_dies_is_replaced():
    talk = Talk(tuning=QUIET, peers=(1, 2, 3))
    talk.keep(talk.machine.carry(carrying=True, now=talk.now))
    first, spare, second = ring(1, 2, 3)

    talk.hear(word(own.UNREACHABLE, first), source=second)
    talk.effects.clear()
    talk.run(0.3)

    assert beats(talk, spare)
    assert beats(talk, second)


def test_plain_memberlist_has_no_heartbeat():
    talk = Talk(tuning=memberlist_lan(), peers=(1, 2))

    talk.keep(talk.machine.carry(carrying=True, now=talk.now))
    talk.run(3.0)

    assert beats(talk, 1) == beats(talk, 2) == []


# Contact.


def test_a_burst_is_three_pings_to_everybody_and_a_report():
    talk = Talk(tuning=QUIET, peers=(1, 2, 3))
    heard = talk.now
    talk.run(1.0)
    talk.effects.clear()
    began = talk.now

    talk.keep(talk.machine.burst(talk.now))
    talk.run(0.01)
    talk.keep(talk.machine.receive(b"\xff", place(2), talk.now))
    seq = talk.said(Ping, to=2)[0].seq
    talk.hear(Ack(seq), source=2)
    talk.run(0.2)

    assert talk.told(events.Contact) == [
        events.Contact(frozenset({"n2"}), frozenset({"n1", "n2", "n3"}), heard)
    ]
    assert [len(talk.said(Ping, to=number)) for number in (1, 2, 3)] == [3, 1, 3]
    assert talk.now - began < 0.22


def test_a_burst_in_a_large_cluster_asks_eight():
    talk = Talk(tuning=QUIET, peers=range(1, 40))

    talk.keep(talk.machine.burst(talk.now))
    talk.run(0.3)

    (report,) = talk.told(events.Contact)
    assert len(report.asked) == 8
    assert report.answered == frozenset()


def test_the_dead_are_asked_too_and_those_who_left_are_not():
    talk = Talk(tuning=QUIET, peers=(1, 2))
    talk.hear(beat(1))
    talk.hear(alive(3), Dead(1, "n1", "n2"), Dead(1, "n3", "n3"))
    talk.keep(talk.machine.burst(talk.now))
    talk.run(0.3)

    assert talk.told(events.Contact)[0].asked == {"n1", "n2"}


def test_a_carrier_whom_everybody_left_does_not_spin():
    talk = Talk(tuning=QUIET, peers=(1, 2))
    talk.keep(talk.machine.carry(carrying=True, now=talk.now))

    talk.hear(Dead(1, "n1", "n1"), Dead(1, "n2", "n2"))
    talk.run(5.0)

    assert talk.told(events.Contact) == []


def test_foreign_members_answer_a_burst_as_well():
    talk = Talk(tuning=QUIET)
    talk.hear(alive(1, meta=b""), alive(2, meta=OURS))

    talk.keep(talk.machine.burst(talk.now))

    assert talk.said(Ping, to=1)
    assert talk.said(Ping, to=2)
