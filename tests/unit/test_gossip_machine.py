"""What one machine answers, asks and refuses."""

from random import Random

import pytest

from gossip import events
from gossip.bulletin import TooLongError
from gossip.effects import NOTHING
from gossip.machine import Machine, MetaTooLong
from gossip.peer import Address, Health, Identity
from gossip.tuning import Tuning, memberlist_lan
from gossip.wire import own
from gossip.wire.messages import (
    Ack,
    Alive,
    Dead,
    Err,
    IndirectPing,
    Nack,
    PeerState,
    Ping,
    PushPull,
    Suspect,
    User,
)
from gossip.wire.packet import Envelope
from gossip.wire.stream import Assembler
from support.talk import ME, OURS, VERSIONS, Talk, alive, origin, place


def state(number, health=Health.ALIVE, *, incarnation=1, meta=OURS, versions=VERSIONS):
    addr = bytes((10, 0, 0, number))
    return PeerState(f"n{number}", addr, 7955, meta, incarnation, int(health), versions)


def push_pull(states, user_state=b""):
    return PushPull(join=True, states=states, user_state=user_state)


def test_it_sleeps_until_it_is_started():
    machine = Machine(Identity("me", ME), Tuning(), Envelope(), Random(1), 0.0)

    assert machine.deadline == float("inf")
    assert machine.advance(5.0) == NOTHING


@pytest.mark.parametrize("name", ["me", ""])
def test_a_ping_is_answered_to_where_it_says(name):
    talk = Talk(peers=(1,))

    talk.hear(Ping(7, name, origin(1)), source=9)

    assert [each.seq for each in talk.said(Ack, to=1)] == [7]


def test_a_ping_without_an_origin_is_answered_to_its_source():
    talk = Talk()

    talk.hear(Ping(7, "me"), source=9)

    assert [each.seq for each in talk.said(Ack, to=9)] == [7]


def test_a_ping_for_somebody_else_is_not_answered():
    talk = Talk()

    talk.hear(Ping(7, "you", origin(1)))

    assert talk.said(Ack) == []


def test_a_stranger_who_pings_us_is_asked_for_what_it_knows():
    talk = Talk()

    talk.hear(Ping(7, "me", origin(1)))

    assert [dial.to for dial, _ in talk.dialled()] == [place(1)]


def test_rubbish_is_dropped_with_a_reason():
    talk = Talk()

    effects = talk.machine.receive(b"\xee\x01", place(1), talk.now)

    assert effects.events == (events.Dropped(place(1), "unknown_type"),)


@pytest.mark.parametrize(
    ("kind", "value"),
    [(1, 5), (2, ["n1"]), (3, {}), (6, None), (40, "x"), (1, [b"n1", "x", False])],
)
def test_a_message_of_ours_that_makes_no_sense_is_dropped(kind, value):
    talk = Talk(peers=(1,))

    talk.hear(User(own.pack(kind, value)))

    assert [each.reason for each in talk.told(events.Dropped)] == ["bad_value"]


def test_foreign_messages_are_handed_on():
    talk = Talk(peers=(1,))

    talk.hear(User(b"\x00serf"))

    assert talk.told(events.ForeignMessage) == [events.ForeignMessage(b"\x00serf")]


def test_a_relay_passes_the_answer_on():
    talk = Talk(peers=(1, 2))

    talk.hear(IndirectPing(9, bytes((10, 0, 0, 2)), 7955, "n2", nack=True, origin=origin(1)))
    ping = talk.said(Ping, to=2)[-1]
    talk.hear(Ack(ping.seq), source=2)
    talk.run(0.3)

    assert [each.seq for each in talk.said(Ack, to=1)] == [9]
    assert talk.said(Nack) == []


def test_a_relay_says_that_its_target_is_mute_before_the_asker_gives_up():
    talk = Talk(peers=(1, 2))
    began = talk.now

    talk.hear(IndirectPing(9, bytes((10, 0, 0, 2)), 7955, "n2", nack=True, origin=origin(1)))
    talk.run(0.159)
    assert talk.said(Nack) == []
    talk.run(0.002)

    assert [each.seq for each in talk.said(Nack, to=1)] == [9]
    assert talk.now - began < Tuning().probe_timeout


def test_a_relay_is_silent_when_nobody_asked_for_a_nack():
    talk = Talk(peers=(1, 2))

    talk.hear(IndirectPing(9, bytes((10, 0, 0, 2)), 7955, "n2", nack=False, origin=origin(1)))
    talk.run(0.5)

    assert talk.said(Nack) == []


def test_a_probe_goes_direct_then_through_others_and_over_tcp():
    talk = Talk(peers=(1, 2, 3, 4))
    talk.run(0.5)
    target, seq = next((each.node, each.seq) for each in talk.said(Ping))

    talk.run(0.21)

    asked = talk.said(IndirectPing)
    assert {each.node for each in asked} == {target}
    assert len(asked) == 3
    assert {each.seq for each in asked} == {seq}
    assert all(each.nack for each in asked)
    assert [(message.node, message.seq) for _, message in talk.dialled()] == [(target, seq)]


def test_a_probe_that_nobody_answers_makes_a_suspect_and_costs_health():
    talk = Talk(peers=(1,))

    talk.run(1.1)

    assert talk.member(1).health is Health.SUSPECT
    assert talk.machine.score == 1


def test_relays_that_answer_keep_the_failure_from_costing_health():
    talk = Talk(peers=(1, 2, 3, 4))
    talk.run(0.5)
    talk.run(0.21)

    for request in talk.said(IndirectPing):
        talk.hear(Nack(request.seq))
    talk.run(0.4)

    assert talk.machine.score == 0
    assert len([each for each in talk.machine.members() if each.health is Health.SUSPECT]) == 1


def test_a_suspect_hears_the_accusation_with_the_ping():
    talk = Talk(peers=(1,))
    talk.hear(Suspect(1, "n1", "n2"))
    talk.effects.clear()

    talk.run(0.5)

    packets = [Envelope().open(each.data) for effects in talk.effects for each in effects.datagrams]
    buddies = [packet for packet in packets if isinstance(packet[0], Ping)]
    assert all(packet[1:] == (Suspect(1, "n1", "me"),) for packet in buddies)
    assert buddies


def test_an_answer_over_tcp_alone_is_life_and_a_complaint():
    talk = Talk(peers=(1,))
    talk.run(0.75)
    dial, message = talk.dialled()[0]

    talk.keep(talk.machine.replied(dial.token, Ack(message.seq), talk.now))
    talk.run(0.4)

    assert talk.member(1).health is Health.ALIVE
    assert talk.told(events.DatagramsBlocked) == [events.DatagramsBlocked("n1")]


def test_refused_datagrams_bring_the_next_step_forward():
    talk = Talk(peers=(1, 2))
    while not (pings := talk.said(Ping)):
        talk.run(0.05)

    number = int(pings[0].node[1:])
    talk.keep(talk.machine.refused(place(number), talk.now))

    assert [each.node for each in talk.said(IndirectPing)] == [f"n{number}"]
    assert talk.told(events.ProcessGone) == [events.ProcessGone(f"n{number}")]


def test_metadata_that_fits_no_record_changes_nothing():
    talk = Talk(peers=(1,))
    before = talk.machine.member("me")

    with pytest.raises(MetaTooLong):
        talk.machine.set_meta({"x": "y" * 600}, talk.now)

    assert talk.machine.member("me") == before


def test_new_metadata_raises_the_incarnation_and_travels():
    talk = Talk(peers=(1,))

    talk.keep(talk.machine.set_meta({"x": 1}, talk.now))
    talk.keep(talk.machine.set_meta({"x": 1}, talk.now))
    talk.run(0.3)

    mine = [each for each in talk.said(Alive) if each.node == "me"]
    assert mine[-1].incarnation == 2
    assert own.unpack(mine[-1].meta) == (own.META, {"x": 1})


def test_every_seed_is_dialled_at_once_and_again_until_somebody_answers():
    talk = Talk()

    talk.keep(talk.machine.set_seeds((place(1), place(2), ME), talk.now))
    assert sorted(dial.to for dial, _ in talk.dialled()) == [place(1), place(2)]
    for dial, _ in talk.dialled():
        talk.keep(talk.machine.replied(dial.token, None, talk.now))
    talk.effects.clear()
    talk.run(0.3)

    assert sorted(dial.to for dial, _ in talk.dialled()) == [place(1), place(2)]


def test_a_push_pull_tells_everything_and_is_merged_after_the_answer():
    talk = Talk(peers=(1,))

    reply, effects = talk.machine.answer(
        push_pull((state(2), state(3, Health.LEFT)), b""), place(2), talk.now
    )
    talk.keep(effects)

    answer = Assembler(Envelope(), dialler=True).feed(reply)
    assert sorted(each.name for each in answer.states) == ["me", "n1"]
    assert talk.member(2).health is Health.ALIVE
    assert talk.member(3) is None
    assert talk.told(events.Synced) == [events.Synced(place(2), join=True)]


@pytest.mark.parametrize("health", [Health.SUSPECT, Health.DEAD])
def test_death_in_a_table_is_but_our_suspicion(health):
    talk = Talk(peers=(1, 2))

    talk.machine.answer(push_pull((state(1, health),)), place(2), talk.now)

    assert talk.member(1).health is Health.SUSPECT


def test_a_departure_in_a_table_is_a_departure():
    talk = Talk(peers=(1, 2))

    talk.machine.answer(push_pull((state(1, Health.LEFT),)), place(2), talk.now)

    assert talk.member(1).health is Health.LEFT


def test_one_foreign_version_refuses_the_whole_exchange():
    talk = Talk(peers=(1,))
    serf = bytes((1, 5, 2, 2, 5, 5))

    _, effects = talk.machine.answer(
        push_pull((state(2), state(3, versions=serf))), place(2), talk.now
    )

    assert talk.member(2) is None
    assert effects.events == (events.SyncFailed(place(2), join=True, reason="versions"),)


def test_our_state_goes_to_wayout_members_alone():
    talk = Talk(peers=(1,))
    talk.machine.set_state({"claims": 1})

    answers = [
        Assembler(Envelope(), dialler=True).feed(
            talk.machine.answer(push_pull((state(2, meta=meta),)), place(2), talk.now)[0]
        )
        for meta in (b"", OURS)
    ]

    assert answers[0].user_state == b""
    assert own.unpack(answers[1].user_state) == (own.STATE, [b"me", {"claims": 1}])


def test_the_state_of_a_peer_is_told_with_its_name():
    talk = Talk(peers=(1,))
    data = own.pack(own.STATE, [b"n1", {"claims": 1}])

    _, effects = talk.machine.answer(push_pull((state(1),), data), place(1), talk.now)

    assert events.StateReceived("n1", {"claims": 1}, join=True) in effects.events


def test_a_refused_join_is_a_failure():
    talk = Talk()
    talk.keep(talk.machine.set_seeds((place(1),), talk.now))
    dial, _ = talk.dialled()[0]

    talk.keep(talk.machine.replied(dial.token, Err("no"), talk.now))

    assert talk.told(events.SyncFailed) == [
        events.SyncFailed(place(1), join=True, reason="refused")
    ]


def test_nobody_pinging_us_after_a_join_means_that_it_was_refused():
    talk = Talk()
    talk.keep(talk.machine.set_seeds((place(1),), talk.now))
    dial, _ = talk.dialled()[0]

    talk.keep(talk.machine.replied(dial.token, push_pull((state(1),)), talk.now))
    talk.run(11.0)

    failures = [each for each in talk.told(events.SyncFailed) if each.reason == "not_accepted"]
    assert len(failures) == 1


def test_whoever_leaves_tells_everybody_and_comes_to_an_end():
    talk = Talk(peers=(1, 2, 3))

    talk.keep(talk.machine.leave(talk.now))
    assert {each.node for each in talk.said(Dead)} == {"me"}
    assert all(talk.said(Dead, to=number) for number in (1, 2, 3))
    assert not talk.machine.left
    talk.run(2.0)

    assert talk.machine.left


def test_whoever_leaves_still_answers_and_is_not_talked_back():
    talk = Talk(peers=(1,))

    talk.keep(talk.machine.leave(talk.now))
    talk.hear(Dead(1, "me", "n1"), Ping(4, "me", origin(1)))

    assert talk.told(events.Refuted) == []
    assert [each.seq for each in talk.said(Ack)] == [4]


def test_alone_there_is_nobody_to_say_goodbye_to():
    talk = Talk()

    talk.keep(talk.machine.leave(talk.now))

    assert talk.machine.left


def test_a_broadcast_is_passed_on_once():
    talk = Talk(peers=(1, 2, 3))
    message = User(own.pack(40, [b"n1", 77, None, {"x": 1}]))

    talk.hear(message)
    first = len(talk.said(User))
    talk.hear(message)

    assert first == 3
    assert len(talk.said(User)) == first
    assert talk.told(events.UserMessage) == [events.UserMessage("n1", 40, {"x": 1})]


def test_our_messages_are_kept_from_other_programs():
    talk = Talk()
    talk.hear(alive(1, meta=b""), alive(2))

    talk.keep(talk.machine.broadcast(40, "x", talk.now))
    talk.keep(talk.machine.send("n1", 40, "x", talk.now))
    talk.run(2.0)

    assert talk.said(User, to=1) == []
    assert talk.said(User, to=2)


def test_a_long_message_to_one_member_takes_the_stream():
    talk = Talk(peers=(1,))

    talk.keep(talk.machine.send("n1", 40, "x" * 3000, talk.now))
    with pytest.raises(TooLongError):
        talk.machine.broadcast(40, "x" * 3000, talk.now)

    (dial, message), *_ = talk.dialled()
    assert not dial.expects_reply
    assert own.unpack(message.payload) == (40, [b"me", 0, None, "x" * 3000])


def test_a_packet_never_exceeds_its_budget():
    talk = Talk()
    for number in range(1, 100):
        talk.hear(alive(number, meta=OURS + b"x" * 200))

    talk.run(5.0)

    sizes = [len(each.data) for effects in talk.effects for each in effects.datagrams]
    assert max(sizes) <= Tuning().datagram_bytes


def test_the_comparison_preset_answers_no_strangers():
    talk = Talk(tuning=memberlist_lan())

    talk.hear(Ping(7, "me", origin(1)))

    assert talk.dialled() == []


def test_the_comparison_preset_leaves_the_dead_alone():
    talk = Talk(tuning=memberlist_lan(), peers=(1,))
    talk.hear(Dead(1, "n1", "n2"))
    talk.run(40.0)
    talk.effects.clear()

    talk.run(60.0)

    assert talk.said(Ping, to=1) == []
    assert talk.dialled() == []


def test_new_tuning_cuts_a_long_wait_short():
    talk = Talk(tuning=Tuning(probe_interval=60.0), peers=(1,))
    talk.run(1.0)
    before = talk.machine.deadline

    talk.keep(talk.machine.set_tuning(Tuning(), talk.now))

    assert talk.machine.deadline <= talk.now + 0.5 < before


def test_a_member_may_live_on_either_family():
    talk = Talk()
    v6 = Alive(1, "n1", bytes.fromhex("20010db8") + bytes(11) + b"\1", 7955, OURS, VERSIONS)

    talk.hear(v6)

    assert talk.member(1).address == Address("2001:db8::1", 7955)


def test_the_dead_are_gossiped_to_for_a_while_and_those_who_left_are_not():
    talk = Talk(peers=(1, 2, 3), tuning=Tuning(dead_retention=30.0, knock_interval=1e9))
    talk.hear(Dead(1, "n1", "n3"), Dead(1, "n2", "n2"))
    talk.effects.clear()
    talk.hear(alive(3, 2))
    talk.run(5.0)

    assert [each.node for each in talk.said(Alive, to=1)].count("n3") > 0
    assert talk.said(Alive, to=2) == []
    talk.run(60.0)
    talk.effects.clear()
    talk.hear(alive(3, 3))
    talk.run(5.0)
    assert talk.said(Alive, to=1) == []


@pytest.mark.parametrize(
    ("payload", "kind"),
    [(own.pack(40, [b"n1", 0, None, 7]), events.UserMessage), (b"serf", events.ForeignMessage)],
)
def test_a_user_message_over_tcp_is_heard_as_over_udp(payload, kind):
    talk = Talk(peers=(1,))
    reply, effects = talk.machine.answer(User(payload), place(1), talk.now)

    assert reply is None
    assert [type(each) for each in effects.events] == [kind]


@pytest.mark.parametrize(
    ("ours", "theirs", "fit"),
    [
        ((0, 0, 0), (0, 0, 0), True),
        ((2, 5, 5), (2, 5, 5), True),
        ((2, 5, 5), (2, 5, 4), True),
        ((0, 0, 0), (2, 5, 5), False),
        ((2, 5, 5), (0, 0, 0), False),
        ((2, 5, 5), (6, 9, 7), False),
    ],
)
def test_the_delegate_part_of_the_versions_decides_who_may_be_one_cluster(ours, theirs, fit):
    identity = Identity("me", ME, versions=bytes((1, 5, 2, *ours)))
    talk = Talk(identity=identity)
    states = (state(1, versions=bytes((1, 5, 2, *theirs))),)
    talk.keep(talk.machine.answer(push_pull(states), place(1), talk.now)[1])

    assert (talk.member(1) is not None) == fit
    assert [each.reason for each in talk.told(events.SyncFailed)] == ([] if fit else ["versions"])


def test_a_degraded_node_accuses_nobody():
    talk = Talk(peers=(1, 2))
    talk.keep(talk.machine.lag(3.0, talk.now))
    for _ in range(4):
        talk.hear(Suspect(talk.machine.member("me").incarnation, "me", "n2"))
    assert talk.machine.score >= 4
    talk.effects.clear()
    talk.run(4.0)

    assert talk.said(Ping)
    assert talk.said(Suspect) == []


def test_what_was_recorded_and_is_sent_again_changes_nothing():
    talk = Talk()
    spoken = own.pack(40, [b"n1", 77, None, "once"])
    life = [
        [alive(1)], [Suspect(1, "n1", "n2"), alive(2)], [alive(1, 2)], [alive(1, 3, meta=b"x")],
        [User(spoken)], [Dead(3, "n1", "n2")], [alive(1, 4)], [Dead(1, "n2", "n2")], [alive(2, 2)],
        [Suspect(1, "me", "n2")],
    ]  # fmt: skip
    for messages in life:
        talk.hear(*messages)
    before = [(each.name, each.health, each.incarnation) for each in talk.machine.members()]
    assert len(talk.told(events.UserMessage)) == 1
    talk.effects.clear()
    for seed in range(20):
        for messages in Random(seed).sample(life, len(life)):
            talk.hear(*messages)

    assert [(each.name, each.health, each.incarnation) for each in talk.machine.members()] == before
    kinds = (events.HealthChanged, events.MetaChanged, events.UserMessage, events.Refuted)
    assert [talk.told(kind) for kind in kinds] == [[], [], [], []]


def test_records_that_nobody_can_read_are_counted():
    talk = Talk()
    message = PushPull(join=False, states=(state(1),), unread=2)
    talk.keep(talk.machine.answer(message, place(1), talk.now)[1])

    assert talk.member(1) is not None
    assert talk.told(events.Dropped) == [events.Dropped(place(1), "bad_record")]


@pytest.mark.slow
def test_a_long_table_is_folded_in_turns_and_a_flood_of_tables_is_cut_off():
    talk = Talk()

    def table(start, count):
        addresses = (bytes((10, 1 + n // 65536, n // 256 % 256, n % 256)) for n in range(count))
        return push_pull(
            tuple(
                PeerState(f"x{start + n}", addr, 7955, OURS, 1, 0, VERSIONS)
                for n, addr in enumerate(addresses)
            )
        )

    talk.keep(talk.machine.answer(table(0, 1200), place(1), talk.now)[1])
    assert len(talk.machine.members()) == 501
    assert talk.machine.deadline <= talk.now
    for expected in (1001, 1201):
        talk.keep(talk.machine.advance(talk.now))
        assert len(talk.machine.members()) == expected
    assert talk.machine.deadline > talk.now
    assert talk.told(events.Dropped) == []

    for start in (10_000, 30_000, 50_000):
        talk.keep(talk.machine.answer(table(start, 16_000), place(1), talk.now)[1])
    assert {each.reason for each in talk.told(events.Dropped)} == {"too_many_records"}
