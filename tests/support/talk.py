"""One machine alone with the test, which plays all of its peers by hand."""

from __future__ import annotations

from random import Random

from gossip.machine import Machine
from gossip.peer import Address, Identity
from gossip.tuning import Tuning
from gossip.wire import codec, compound
from gossip.wire.messages import Alive, Origin
from gossip.wire.packet import Envelope
from gossip.wire.stream import Assembler

VERSIONS = bytes((1, 5, 2, 0, 0, 0))
OURS = b"\xc1\x01\x04\x80"
ME = Address("10.0.0.100", 7955)


def place(number):
    return Address(f"10.0.0.{number}", 7955)


def origin(number):
    return Origin(bytes((10, 0, 0, number)), 7955, f"n{number}")


def alive(number, incarnation=1, *, meta=OURS, host=None, versions=VERSIONS, port=7955):
    """The word of member `n<number>`, which lives at 10.0.0.<host>, or <number> by default."""
    addr = bytes((10, 0, 0, host or number))
    return Alive(incarnation, f"n{number}", addr, port, meta, versions)


class Talk:
    """The machine is called `me`; every call returns its effects and keeps all of them."""

    def __init__(self, *, tuning=None, seed=1, peers=(), identity=None):
        self.now = 1000.0
        self.machine = Machine(
            identity or Identity("me", ME), tuning or Tuning(), Envelope(), Random(seed), self.now
        )
        self.effects = [self.machine.start(self.now)]
        for peer in peers:
            self.hear(alive(peer))
        self.effects.clear()

    def keep(self, effects):
        self.effects.append(effects)
        return effects

    def hear(self, *messages, source=1):
        data = compound.bundle([codec.encode(message) for message in messages])
        return self.keep(self.machine.receive(data, place(source), self.now))

    def run(self, seconds):
        """Time passes with a shell that is on time."""
        end, steps = self.now + seconds, 0
        while self.machine.deadline <= end:
            steps += 1
            assert steps < 1000 * (seconds + 1), "it does not sleep"
            self.now = max(self.now, self.machine.deadline)
            self.keep(self.machine.advance(self.now))
        self.now = end

    def member(self, number):
        return self.machine.member(f"n{number}")

    def said(self, kind, to=None):
        """Messages of a type that were sent, to one peer or to anybody."""
        return [
            message
            for effects in self.effects
            for datagram in effects.datagrams
            if to is None or datagram.to == place(to)
            for message in Envelope().open(datagram.data)
            if isinstance(message, kind)
        ]

    def told(self, kind):
        """Events of a type."""
        return [
            each for effects in self.effects for each in effects.events if isinstance(each, kind)
        ]

    def dialled(self):
        """Pairs of dial and what was said."""
        return [
            (dial, Assembler(Envelope(), dialler=False).feed(dial.data))
            for effects in self.effects
            for dial in effects.dials
        ]
