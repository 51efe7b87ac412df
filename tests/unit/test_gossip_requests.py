"""Questions between members: asked of one, answered by it, and refused to everybody else."""

from random import Random

import pytest

from gossip.events import Dropped
from gossip.machine import Machine
from gossip.peer import PROTOCOL_VERSIONS, Address, Identity
from gossip.requests import REQUEST_MAX
from gossip.tuning import default
from gossip.wire import own
from gossip.wire.messages import PeerState, User
from gossip.wire.packet import Envelope
from gossip.wire.seal import Keyring
from gossip.wire.stream import Assembler

KIND = 1
META = own.pack(own.META, {})
SEALED = Keyring((bytes(range(16)),))


def envelope(ring):
    return Envelope(
        label=b"here", keyring=ring, verify_incoming=ring is not None, nonces=Random(1).randbytes
    )


def state(name, number):
    versions = bytes((*PROTOCOL_VERSIONS, 0, 0, 0))
    return PeerState(name, bytes((127, 0, 0, number)), 7955, META, 1, 0, versions)


def machine(name, number, *known, ring=None):
    identity = Identity(name, Address(f"127.0.0.{number}", 7955))
    made = Machine(identity, default(), envelope(ring), Random(number), 0.0)
    made.assume([state(*each) for each in known], 0.0)
    return made


def asked(asker, answerer, value=None, *, ring=None, name="b"):
    """What the asker gets to hear, and what the answerer remarked."""
    heard = []
    effects = asker.request(name, KIND, value, 0.0, heard.append)
    if not effects.dials:
        return heard, ()
    (dial,) = effects.dials
    message = Assembler(envelope(ring), dialler=False).feed(dial.data)
    reply, told = answerer.answer(message, Address("127.0.0.1", 9), 0.0)
    back = Assembler(envelope(ring), dialler=True).feed(reply)
    asker.replied(dial.token, back, 0.0)
    return heard, told.events


@pytest.mark.parametrize("ring", [None, SEALED], ids=["plain", "sealed"])
def test_a_member_answers_what_it_serves(ring):
    a, b = machine("a", 1, ("b", 2), ring=ring), machine("b", 2, ("a", 1), ring=ring)
    b.serve(KIND, lambda sender, value: f"{sender} asked {value}")

    assert asked(a, b, "why", ring=ring) == (["a asked why"], ())


def test_what_nobody_serves_has_no_answer():
    a, b = machine("a", 1, ("b", 2)), machine("b", 2, ("a", 1))

    heard, events = asked(a, b)

    assert heard == [None]
    assert [each.reason for each in events if isinstance(each, Dropped)] == ["unknown_kind"]


def test_a_stranger_gets_nothing():
    a, b = machine("a", 1, ("b", 2)), machine("b", 2)
    b.serve(KIND, lambda _sender, _value: "secret")

    heard, events = asked(a, b)

    assert heard == [None]
    assert [each.reason for each in events if isinstance(each, Dropped)] == ["not_a_member"]


def test_who_is_unknown_is_not_dialled():
    a, b = machine("a", 1), machine("b", 2, ("a", 1))

    assert asked(a, b) == ([None], ())


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (own.pack(own.REQUEST, ["a"]), "bad_value"),
        (own.pack(own.REQUEST, [b"a", "x", None]), "bad_value"),
        (own.pack(own.REQUEST, None)[:4] + b"\xff", "not_msgpack"),
        (own.pack(own.REQUEST, [b"a", KIND, "x" * REQUEST_MAX]), "too_long"),
    ],
)
def test_nonsense_is_dropped_with_a_reason(payload, reason):
    b = machine("b", 2, ("a", 1))
    b.serve(KIND, lambda _sender, _value: "secret")

    reply, effects = b.answer(User(payload), Address("127.0.0.1", 9), 0.0)

    assert b"secret" not in reply
    assert [each.reason for each in effects.events if isinstance(each, Dropped)] == [reason]


def test_an_answer_that_is_too_long_is_none():
    a, b = machine("a", 1, ("b", 2)), machine("b", 2, ("a", 1))
    b.serve(KIND, lambda _sender, _value: "x" * own.SIZE_MAX)

    assert asked(a, b)[0] == [None]
