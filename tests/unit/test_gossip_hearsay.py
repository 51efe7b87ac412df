"""Merge rules: what a machine makes of what it hears."""

from ipaddress import ip_network

import pytest

from gossip import events
from gossip.events import Dropped
from gossip.peer import Health
from gossip.tuning import NEVER, Tuning, memberlist_lan
from gossip.wire import own
from gossip.wire.messages import Alive, Dead, Ping, Suspect
from support.talk import OURS, VERSIONS, Talk, alive, origin, place


def test_a_first_word_makes_a_member():
    talk = Talk()

    talk.hear(alive(1))

    assert talk.member(1).health is Health.ALIVE
    assert [each.was for each in talk.told(events.HealthChanged)] == [None]


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (alive(1, 0), "no_life"),
        (alive(1, versions=bytes((0, 5, 2, 0, 0, 0))), "bad_versions"),
        (alive(1, versions=bytes((5, 1, 2, 0, 0, 0))), "bad_versions"),
        (alive(1, port=0), "bad_address"),
        (Alive(1, "", b"\x0a\0\0\1", 7955, OURS, VERSIONS), "no_name"),
    ],
)
def test_nonsense_makes_no_member_and_the_reason_is_told(claim, reason):
    talk = Talk()

    talk.hear(claim)

    assert len(talk.machine.members()) == 1
    assert [each.reason for each in talk.told(Dropped)] == [reason]


def test_nobody_moves_in_from_a_network_that_is_not_allowed():
    talk = Talk(tuning=Tuning(allowed=(ip_network("10.0.0.0/28"),)))

    talk.hear(alive(1), alive(50))

    assert talk.member(1) is not None
    assert talk.member(50) is None
    assert talk.told(Dropped) == [Dropped(place(50), "not_allowed")]


def test_only_a_higher_incarnation_clears_a_suspect():
    talk = Talk(peers=(1, 2))

    talk.hear(Suspect(1, "n1", "n2"))
    talk.hear(alive(1, 1))
    assert talk.member(1).health is Health.SUSPECT
    talk.hear(alive(1, 2))

    assert talk.member(1).health is Health.ALIVE


def test_suspicion_becomes_death_when_nobody_refutes():
    talk = Talk(peers=(1,))

    talk.hear(Suspect(1, "n1", "n2"))
    talk.run(4.0)

    assert talk.member(1).health is Health.DEAD
    assert [Dead(1, "n1", "me")] * len(talk.said(Dead, to=1)) == talk.said(Dead, to=1)


def test_an_old_accusation_is_no_news():
    talk = Talk(peers=(1,))
    talk.hear(alive(1, 5))

    talk.hear(Suspect(4, "n1", "n2"), Dead(4, "n1", "n2"))

    assert talk.member(1).health is Health.ALIVE


def test_who_accuses_itself_has_left():
    talk = Talk(peers=(1,))

    talk.hear(Dead(1, "n1", "n1"))

    assert talk.member(1).health is Health.LEFT


def test_left_beats_dead_at_equal_incarnation_but_dead_does_not_beat_left():
    talk = Talk(peers=(1, 2))

    talk.hear(Dead(1, "n1", "n2"), Dead(1, "n2", "n2"))
    talk.hear(Dead(1, "n1", "n1"), Dead(1, "n2", "n1"))

    assert talk.member(1).health is talk.member(2).health is Health.LEFT


def test_a_later_death_keeps_an_earlier_life_from_coming_back():
    talk = Talk(peers=(1,))

    talk.hear(Dead(1, "n1", "n2"))
    talk.hear(Dead(5, "n1", "n2"))
    talk.hear(alive(1, 4))

    assert talk.member(1).health is Health.DEAD


@pytest.mark.parametrize("word", [Suspect(7, "me", "n1"), Dead(7, "me", "n1"), Dead(7, "me", "me")])
def test_whoever_accuses_us_is_told_otherwise(word):
    talk = Talk(peers=(1,))

    talk.hear(word)
    talk.run(0.3)

    assert talk.told(events.Refuted)[0].incarnation == 8
    assert 8 in {each.incarnation for each in talk.said(Alive) if each.node == "me"}
    assert talk.machine.score == 1


def test_our_own_record_from_a_former_life_makes_us_outdo_it():
    talk = Talk(peers=(1,))

    talk.hear(Alive(9, "me", bytes((10, 0, 0, 100)), 7955, b"old", VERSIONS))

    assert talk.machine.member("me").incarnation == 10


def test_our_own_word_coming_back_is_no_accusation():
    talk = Talk(peers=(1,))

    talk.hear(Alive(1, "me", bytes((10, 0, 0, 100)), 7955, OURS, VERSIONS))

    assert talk.told(events.Refuted) == []


def test_a_living_name_does_not_move():
    talk = Talk(peers=(1,))

    talk.hear(alive(1, 9, host=50))

    assert talk.member(1).address == place(1)
    assert talk.told(events.NameConflict) == [events.NameConflict("n1", place(1), place(50))]


def test_a_conflict_is_reported_once_in_a_while():
    talk = Talk(peers=(1,))

    for _ in range(10):
        talk.hear(alive(1, 9, host=50))

    assert len(talk.told(events.NameConflict)) == 1


@pytest.mark.parametrize("accuser", ["n1", "n2"])
def test_a_dead_or_left_name_comes_back_elsewhere_at_once_and_from_the_start(accuser):
    talk = Talk(peers=(1,))
    talk.hear(alive(1, 7))

    talk.hear(Dead(7, "n1", accuser))
    talk.hear(alive(1, 1, host=50))

    assert talk.member(1).health is Health.ALIVE
    assert talk.member(1).address == place(50)


def test_memberlist_itself_gives_away_only_the_names_of_those_who_left():
    talk = Talk(tuning=memberlist_lan(), peers=(1, 2))

    talk.hear(Dead(1, "n1", "n1"), Dead(1, "n2", "n1"))
    talk.hear(alive(1, 1, host=50), alive(2, 2, host=60))

    assert talk.member(1).address == place(50)
    assert talk.member(2).health is Health.DEAD


def test_the_mapped_form_of_an_address_is_no_other_address():
    talk = Talk(peers=(1,))
    mapped = Alive(2, "n1", bytes(10) + b"\xff\xff\x0a\0\0\1", 7955, OURS, VERSIONS)

    talk.hear(mapped)

    assert talk.member(1).incarnation == 2
    assert talk.told(events.NameConflict) == []


def test_stale_life_of_a_dead_member_is_answered_to_the_member():
    talk = Talk(peers=(1, 2))
    talk.hear(Dead(1, "n1", "n2"))
    talk.run(1.0)
    talk.effects.clear()

    talk.hear(alive(1, 1), source=2)

    assert talk.said(Dead, to=1) == [Dead(1, "n1", "me")]


def test_a_ping_from_a_member_held_dead_is_answered_with_the_accusation():
    talk = Talk(peers=(1, 2))
    talk.hear(Dead(1, "n1", "n2"))
    talk.effects.clear()

    talk.hear(Ping(5, "me", origin(1)))

    assert Dead(1, "n1", "me") in talk.said(Dead, to=1)


def test_an_announced_restart_is_waited_for():
    talk = Talk(tuning=Tuning(knock_interval=NEVER), peers=(1,))
    meta = own.pack(own.META, {"restarting": 20.0})

    talk.hear(alive(1, 2, meta=meta), Suspect(2, "n1", "n2"))
    talk.run(19.0)
    assert talk.member(1).health is Health.SUSPECT
    talk.run(6.0)

    assert talk.member(1).health is Health.DEAD


def test_new_metadata_is_told():
    talk = Talk(peers=(1,))

    talk.hear(alive(1, 2, meta=own.pack(own.META, {"x": 1})))

    assert len(talk.told(events.MetaChanged)) == 1
    assert talk.told(events.HealthChanged) == []


def test_time_that_we_slept_through_makes_nobody_dead():
    talk = Talk(peers=(1, 2, 3))
    talk.hear(Suspect(1, "n1", "n2"))

    talk.now += 60.0
    talk.keep(talk.machine.advance(talk.now))
    talk.hear(alive(1, 2))

    assert talk.told(events.HealthChanged)[-1].member.health is Health.ALIVE
    assert Health.DEAD not in {each.member.health for each in talk.told(events.HealthChanged)}
