"""A few machines on a network in virtual time: one heap, one Random, bytes on every hop."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from gossip.events import Contact
from gossip.machine import Machine
from gossip.peer import Address, Health, Identity
from gossip.tuning import Tuning
from gossip.wire.packet import Envelope
from gossip.wire.stream import Assembler

if TYPE_CHECKING:
    from collections.abc import Callable

    from gossip.effects import Dial, Effects
    from gossip.events import Event

PORT = 7955


@dataclass
class Host:
    """One machine and what happens to it; `events` are pairs of time and event."""

    name: str
    machine: Machine
    address: Address
    side: int = 0
    paused: bool = False
    process: bool = True
    power: bool = True
    inbox: list[Callable[[], None]] = field(default_factory=list)
    events: list[tuple[float, Event]] = field(default_factory=list)
    sent: int = 0
    wake: float = float("inf")

    @property
    def running(self) -> bool:
        return self.power and self.process


class Cluster:
    """`loss` is the chance of a datagram to vanish, `latency` a range of seconds."""

    def __init__(self, seed=1, *, loss=0.0, latency=(0.0002, 0.001), tuning=None, envelope=None):
        self.random = Random(seed)
        self.now = 1000.0
        self.loss = loss
        self.latency = latency
        self.tuning = tuning or Tuning()
        self.envelope = envelope or Envelope()
        self.hosts: dict[str, Host] = {}
        self.places: dict[Address, Host] = {}
        self.blocked: set[tuple[str, str]] = set()
        self._heap: list = []
        self._count = 0

    # Building.

    def add(self, name, *seeds, address=None, meta=b""):
        """A new host with these names as its seeds; it starts at once."""
        number = len(self.hosts) + 1
        address = address or Address(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", PORT)
        identity = Identity(name, address, meta)
        rng = Random(self.random.getrandbits(64))
        machine = Machine(identity, self.tuning, self.envelope, rng, self.now)
        host = Host(name, machine, address)
        self.hosts[name] = self.places[address] = host
        places = tuple(self.hosts[each].address for each in seeds)
        self._perform(host, machine.set_seeds(places, self.now))
        self._perform(host, machine.start(self.now))
        return host

    def gather(self, count):
        """So many hosts n0, n1 … that know each other, settled."""
        names = [f"n{number}" for number in range(count)]
        for name in names:
            self.add(name, *names[:1][: len(self.hosts)])
        self.run_until(lambda: self.agree(names), 20)
        self.run(3)
        return names

    # Time.

    def run(self, seconds):
        """Let time pass."""
        end = self.now + seconds
        while self._heap and self._heap[0][0] <= end:
            self.now, _, _, action, arguments = heapq.heappop(self._heap)
            action(*arguments)
        self.now = end

    def run_until(self, holds, limit):
        """Let time pass until `holds()`; the seconds it took."""
        start = self.now
        while not holds():
            assert self.now - start < limit, f"still not after {limit} s"
            self.run(0.01)
        return self.now - start

    # Faults.

    def crash(self, name, *, power=True):
        """The process is gone, and with `power` its host too (else the host refuses packets)."""
        self.hosts[name].process = False
        self.hosts[name].power = not power

    def restart(self, name, *seeds, address=None):
        """The name comes back without a memory, at its old address unless told otherwise."""
        old = self.hosts.pop(name)
        if address is not None:
            del self.places[old.address]
        return self.add(name, *seeds, address=address or old.address)

    def block(self, one, other):
        """These two hear nothing of each other, and everybody else does."""
        self.blocked |= {(one, other), (other, one)}

    def pause(self, name):
        """The process is stopped; the network keeps what arrives for it."""
        self.hosts[name].paused = True

    def resume(self, name):
        """It goes on: late timers first, then what has piled up."""
        host = self.hosts[name]
        host.paused = False
        self._wake(host, host.wake)
        waiting, host.inbox = host.inbox, []
        for action in waiting:
            action()

    def part(self, *names):
        """These hosts hear nobody but each other."""
        for name in names:
            self.hosts[name].side = 1

    def heal(self):
        """Everybody hears everybody."""
        for host in self.hosts.values():
            host.side = 0

    def do(self, name, act):
        """Call a method of a machine, as its application would."""
        host = self.hosts[name]
        self._perform(host, act(host.machine, self.now))

    # Looking.

    def health(self, viewer, subject):
        member = self.hosts[viewer].machine.member(subject)
        return None if member is None else member.health

    def watches(self, watcher, name):
        """Whether a host is on duty for another."""
        return self.hosts[name].address in self.hosts[watcher].machine.watching

    def agree(self, names):
        """Whether all of these hold all of these alive."""
        return all(
            self.health(viewer, subject) is Health.ALIVE for viewer in names for subject in names
        )

    def seen(self, name, kind, since=0.0):
        """Events of a type at a host, as pairs of time and event."""
        return [
            each
            for each in self.hosts[name].events
            if isinstance(each[1], kind) and each[0] >= since
        ]

    def history(self):
        """Everything that was told, in a form that does not depend on the order of sets."""
        return [
            (at, host.name, _plain(event))
            for host in self.hosts.values()
            for at, event in host.events
        ]

    # Wires.

    def _at(self, when, action, *arguments):
        # Things at the same time happen in random order: nobody may rely on insertion.
        self._count += 1
        heapq.heappush(self._heap, (when, self.random.random(), self._count, action, arguments))

    def _perform(self, host: Host, effects: Effects) -> None:
        host.events += [(self.now, event) for event in effects.events]
        host.sent += len(effects.datagrams)
        for datagram in effects.datagrams:
            if self.random.random() >= self.loss:
                delay = self.random.uniform(*self.latency)
                self._at(self.now + delay, self._arrive, datagram.to, datagram.data, host)
        for dial in effects.dials:
            self._at(self.now + self.random.uniform(*self.latency), self._connect, host, dial)
        deadline = host.machine.deadline
        if deadline != host.wake:
            host.wake = deadline
            if deadline != float("inf"):
                self._at(max(deadline, self.now), self._wake, host, deadline)

    def _wake(self, host, deadline):
        if host.running and not host.paused and deadline == host.wake:
            host.wake = float("inf")
            self._perform(host, host.machine.advance(self.now))

    def _linked(self, one, other):
        return one.side == other.side and (one.name, other.name) not in self.blocked

    def _arrive(self, to, data, sender):
        host = self.places.get(to)
        if host is None or not self._linked(sender, host) or not host.power:
            return
        if not host.process:
            if sender.running:
                self._perform(sender, sender.machine.refused(to, self.now))
        elif host.paused:
            host.inbox.append(lambda: self._arrive(to, data, sender))
        else:
            self._perform(host, host.machine.receive(data, sender.address, self.now))

    def _connect(self, caller: Host, dial: Dial) -> None:
        host = self.places.get(dial.to)
        linked = host is not None and host.power and self._linked(caller, host)
        if linked and not host.process:
            self._at(self.now, self._reply, caller, dial.token, None)
        elif not linked or host.paused:
            self._at(self.now + dial.timeout, self._reply, caller, dial.token, None)
        else:
            message = Assembler(self.envelope, dialler=False).feed(dial.data)
            source = Address(caller.address.host, 40000)
            reply, effects = host.machine.answer(message, source, self.now)
            self._perform(host, effects)
            delay = self.random.uniform(*self.latency)
            self._at(self.now + delay, self._reply, caller, dial.token, reply)

    def _reply(self, caller, token, reply):
        if not caller.running:
            return
        if caller.paused:
            caller.inbox.append(lambda: self._reply(caller, token, reply))
            return
        message = reply and Assembler(self.envelope, dialler=True).feed(reply)
        self._perform(caller, caller.machine.replied(token, message, self.now))


def _plain(event):
    if isinstance(event, Contact):
        return f"Contact {sorted(event.answered)} {sorted(event.asked)} {event.since}"
    return repr(event)
