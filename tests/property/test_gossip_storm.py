"""Whatever arrives in whatever order, a machine stays on its feet."""

from hypothesis import given
from hypothesis import strategies as st

from gossip.events import Dropped
from gossip.peer import Health
from gossip.wire import own
from gossip.wire.messages import (
    Ack,
    Alive,
    Dead,
    Err,
    IndirectPing,
    Nack,
    Origin,
    PeerState,
    Ping,
    PushPull,
    Suspect,
    User,
)
from support.talk import OURS, VERSIONS, Talk, place

names = st.sampled_from(["me", "n1", "n2", "n3", "", "\udcff", "x" * 200])
numbers = st.one_of(st.integers(0, 12), st.sampled_from([0xFFFFFFFF, 0xFFFFFFFE]))
addrs = st.sampled_from(
    [bytes((10, 0, 0, n)) for n in (1, 2, 3, 100)]
    + [bytes(4), bytes(16), bytes(10) + b"\xff\xff\x0a\0\0\1", b"\xff\x02" + bytes(14)]
)
ports = st.sampled_from([7955, 7955, 0, 1])
versions = st.sampled_from([VERSIONS, VERSIONS, b"", b"\1", bytes(6), bytes((1, 5, 2, 2, 5, 5))])
restart = own.pack(own.META, {"restarting": 5})
metas = st.sampled_from([OURS, OURS, b"", b"\xff\x80", restart, b"\xc1\x01\x04\xc1"])
origins = st.one_of(st.none(), st.builds(Origin, addrs, ports, names))
plain = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-1, 9), st.binary(max_size=4), st.text(max_size=3)
    ),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=6,
)
words = st.tuples(
    names.map(lambda name: name.encode("utf-8", "surrogateescape")),
    numbers,
    st.one_of(numbers, st.booleans()),
    st.floats(-1, 1e300, allow_nan=False),
).map(list)
beats = st.tuples(st.sampled_from([b"n1", b"n2", b"me"]), numbers, st.booleans()).map(list)
broadcasts = st.tuples(st.just(b"n1"), numbers, st.one_of(st.none(), st.text(max_size=3)), plain)
ours = st.builds(own.pack, st.integers(0, 40), st.one_of(plain, words, beats, broadcasts.map(list)))

packets = st.one_of(
    st.builds(Ping, numbers, names, origins),
    st.builds(IndirectPing, numbers, addrs, ports, names, st.booleans(), origins),
    st.builds(Ack, numbers),
    st.builds(Nack, numbers),
    st.builds(Suspect, numbers, names, names),
    st.builds(Dead, numbers, names, names),
    st.builds(Alive, numbers, names, addrs, ports, metas, versions),
    st.builds(User, st.one_of(ours, st.binary(max_size=8))),
)
states = st.builds(PeerState, names, addrs, ports, metas, numbers, st.integers(0, 5), versions)
streams = st.one_of(
    st.builds(
        PushPull,
        st.booleans(),
        st.lists(states, max_size=5).map(tuple),
        st.one_of(st.just(b""), ours, st.binary(max_size=5)),
    ),
    st.builds(Ping, numbers, names, origins),
    st.builds(Ack, numbers),
    st.builds(User, ours),
    st.builds(Err, st.text(max_size=5)),
)
steps = st.one_of(
    st.tuples(st.just("packet"), packets),
    st.tuples(st.just("stream"), streams),
    st.tuples(st.just("reply"), st.one_of(st.none(), streams)),
    st.tuples(st.just("time"), st.floats(0, 3)),
    st.tuples(st.just("sleep"), st.floats(0, 100)),
    st.tuples(st.just("refused"), st.integers(1, 3)),
    st.tuples(st.just("carry"), st.booleans()),
    st.tuples(st.just("burst"), st.none()),
    st.tuples(st.just("bytes"), st.binary(max_size=40)),
)


def reply(talk, message):
    for dial, _ in talk.dialled()[-2:]:
        talk.keep(talk.machine.replied(dial.token, message, talk.now))


def sleep(talk, seconds):
    talk.now += seconds
    talk.keep(talk.machine.advance(talk.now))


ACTS = {
    "packet": lambda talk, message: talk.hear(message),
    "stream": lambda talk, message: talk.keep(talk.machine.answer(message, place(2), talk.now)[1]),
    "reply": reply,
    "time": lambda talk, seconds: talk.run(seconds),
    "sleep": sleep,
    "refused": lambda talk, number: talk.keep(talk.machine.refused(place(number), talk.now)),
    "carry": lambda talk, carrying: talk.keep(talk.machine.carry(carrying=carrying, now=talk.now)),
    "burst": lambda talk, _: talk.keep(talk.machine.burst(talk.now)),
    "bytes": lambda talk, data: talk.keep(talk.machine.receive(data, place(3), talk.now)),
}


def take(talk, step):
    act, argument = step
    ACTS[act](talk, argument)


@given(st.lists(steps, max_size=30))
def test_no_input_breaks_a_machine(taken):
    talk = Talk(peers=(1, 2))
    incarnation = 1

    for step in taken:
        take(talk, step)
        me = talk.machine.member("me")
        assert me.health is Health.ALIVE
        assert me.incarnation >= incarnation
        assert talk.machine.deadline >= talk.now
        assert 0 <= talk.machine.score < 8
        incarnation = me.incarnation

    # And it still does what it is there for.
    talk.effects.clear()
    talk.hear(Ping(77, "me"), source=7)
    assert 77 in [each.seq for each in talk.said(Ack)]
    assert talk.told(Dropped) == []
    talk.run(5.0)


@given(st.lists(steps, max_size=20))
def test_what_is_over_leaves_nothing_behind(taken):
    talk = Talk()
    for step in taken:
        take(talk, step)
    talk.keep(talk.machine.carry(carrying=False, now=talk.now))

    talk.run(8.0)

    # A probe, a knock and a relay or so may be under way, whatever happened before.
    assert len(talk.machine._local.asked) <= 12
