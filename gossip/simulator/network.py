"""Hosts on a network in virtual time: one heap, one source of chance, bytes on every hop.

A run follows from its seed to the bit: `digest` covers every datagram and stream that was sent.
"""

from __future__ import annotations

import heapq
import math
import struct
from hashlib import blake2b
from typing import TYPE_CHECKING

from gossip.machine import Machine
from gossip.peer import Address, Identity
from gossip.simulator.host import Host
from gossip.simulator.link import Link, combined
from gossip.tuning import Tuning
from gossip.wire.packet import Envelope
from gossip.wire.stream import Assembler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from gossip.effects import Datagram, Dial, Effects
    from gossip.wire.messages import StreamMessage

    Act = Callable[[Machine, float], Effects]

PORT = 7955
DIALLER_PORT = 40_000
START = 1000.0
"""Where virtual time begins: not at zero, which hides mistakes."""


class Network:
    """`dice` makes a source of chance from a seed: `random.Random`."""

    def __init__(
        self,
        seed: int,
        dice: Callable[[int], Random],
        *,
        link: Link | None = None,
        tuning: Tuning | None = None,
        envelope: Envelope | None = None,
    ) -> None:
        self.random = dice(seed)
        self.now = START
        self.link = link or Link()
        self.tuning = tuning or Tuning()
        self.envelope = envelope or Envelope()
        self.hosts: dict[str, Host] = {}
        self.places: dict[Address, Host] = {}
        self.deaf: set[tuple[str, str]] = set()
        self._dice = dice
        self._digest = blake2b(digest_size=16)
        self._heap: list[tuple[float, float, int, Callable[[], None]]] = []
        self._count = 0

    # Building.

    def add(
        self, name: str, *seeds: str, address: Address | None = None, meta: bytes = b""
    ) -> Host:
        """A new host with these names as its seeds; it starts at once."""
        number = len(self.hosts) + 1
        address = address or Address(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", PORT)
        rng = self._dice(self.random.getrandbits(64))
        machine = Machine(Identity(name, address, meta), self.tuning, self.envelope, rng, self.now)
        host = Host(name, machine, address)
        self.hosts[name] = self.places[address] = host
        places = tuple(self.hosts[each].address for each in seeds)
        self._perform(host, machine.set_seeds(places, self.now))
        self._perform(host, machine.start(self.now))
        return host

    # Time.

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while self._heap and self._heap[0][0] <= end:
            self.now, _, _, action = heapq.heappop(self._heap)
            action()
        self.now = end

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do something at a time to come; at the same time, in random order."""
        self._count += 1
        heapq.heappush(self._heap, (when, self.random.random(), self._count, action))

    def do(self, name: str, act: Act) -> None:
        """Call a method of a machine, as its application would."""
        host = self.hosts[name]
        self._perform(host, act(host.machine, self.now))

    # Faults.

    def crash(self, name: str, *, power: bool = True) -> None:
        """The process is gone, and with `power` its host too (else the host refuses packets)."""
        host = self.hosts[name]
        host.process, host.power, host.died = False, not power, self.now

    def restart(self, name: str, *seeds: str, address: Address | None = None) -> Host:
        """The name comes back without a memory, at its old address unless told otherwise."""
        old = self.hosts.pop(name)
        old.process = False
        if address is not None:
            del self.places[old.address]
        return self.add(name, *seeds, address=address or old.address)

    def pause(self, name: str) -> None:
        """The process is stopped; the network keeps what arrives for it."""
        self.hosts[name].paused = True

    def resume(self, name: str) -> None:
        """It goes on: late timers first, then what has piled up."""
        host = self.hosts[name]
        host.paused = False
        self._wake(host, host.wake)
        waiting, host.inbox = host.inbox, []
        for action in waiting:
            action()

    def stall(self, name: str, seconds: float) -> None:
        """The process is stopped for so long, unless it is already."""
        host = self.hosts[name]
        if host.running and not host.paused:
            self.pause(name)
            self.at(self.now + seconds, lambda: self._unstall(host))

    def _unstall(self, host: Host) -> None:
        if self.hosts.get(host.name) is host and host.paused:
            self.resume(host.name)

    def slow(self, name: str, cost: float) -> None:
        """From now on each input takes the process so many seconds."""
        self.hosts[name].cost = cost

    def lossy(self, name: str, loss: float) -> None:
        """From now on this share of all datagrams to and from one host vanishes."""
        self.hosts[name].loss = loss

    def cut(self, one: str, other: str) -> None:
        """Nothing reaches `other` from `one`; the other way is as it was."""
        self.deaf.add((one, other))

    def block(self, one: str, other: str) -> None:
        """These two hear nothing of each other, and everybody else does."""
        self.deaf |= {(one, other), (other, one)}

    def part(self, *names: str) -> None:
        """These hosts hear nobody but each other."""
        for name in names:
            self.hosts[name].side = 1

    def heal(self) -> None:
        """All hear all."""
        self.deaf.clear()
        for host in self.hosts.values():
            host.side = 0

    # Looking.

    @property
    def digest(self) -> str:
        """Stands for everything that was sent until now, and when."""
        return self._digest.hexdigest()

    def running(self) -> list[Host]:
        """All whose process lives."""
        return [host for host in self.hosts.values() if host.running]

    def views(self) -> int:
        """How many different opinions there are on who is a member."""
        return len({host.view for host in self.running()})

    # Wires.

    def _note(self, to: Address, data: bytes) -> None:
        self._digest.update(struct.pack("<d", self.now) + to.host.encode() + data)

    def _perform(self, host: Host, effects: Effects) -> None:
        for event in effects.events:
            host.told(event, self.now)
        for datagram in effects.datagrams:
            self._send(host, datagram)
        for dial in effects.dials:
            self._dial(host, dial)
        self._arm(host)

    def _arm(self, host: Host) -> None:
        deadline = host.machine.deadline
        if deadline != host.wake:
            host.wake = deadline
            if deadline != math.inf:
                self.at(max(deadline, self.now), lambda: self._wake(host, deadline))

    def _send(self, host: Host, datagram: Datagram) -> None:
        host.sent += 1
        host.sent_bytes += len(datagram.data)
        self._note(datagram.to, datagram.data)
        target = self.places.get(datagram.to)
        loss = self.link.loss
        if host.loss or (target is not None and target.loss):
            loss = combined(loss, host.loss, target.loss if target is not None else 0.0)
        for delay in self.link.arrivals(self.random, loss):
            self.at(self.now + delay, lambda: self._arrive(datagram, host))

    def _wake(self, host: Host, deadline: float) -> None:
        if not host.running or host.paused or deadline != host.wake:
            return
        if host.busy > self.now:
            self.at(host.busy, lambda: self._wake(host, deadline))
            return
        host.wake = math.inf
        if host.cost:
            late = max(self.now - deadline, 0.0)
            self._perform(host, host.machine.lag(late, self.now))
            host.wake = math.inf
        self._perform(host, host.machine.advance(self.now))

    def _linked(self, one: Host, other: Host) -> bool:
        return one.side == other.side and (one.name, other.name) not in self.deaf

    def _arrive(self, datagram: Datagram, sender: Host) -> None:
        host = self.places.get(datagram.to)
        if host is None or not host.power or not self._linked(sender, host):
            return
        if not host.process:
            if sender.running and self._linked(host, sender):
                refused = sender.machine.refused(datagram.to, self.now)
                self._perform(sender, refused)
        elif host.paused:
            host.inbox.append(lambda: self._arrive(datagram, sender))
        else:
            self._work(host, lambda: self._receive(host, datagram, sender))

    def _receive(self, host: Host, datagram: Datagram, sender: Host) -> None:
        effects = host.machine.receive(datagram.data, sender.address, self.now)
        self._perform(host, effects)

    def _work(self, host: Host, action: Callable[[], None]) -> None:
        """At once, or when a slow process has done what came before."""
        if not host.cost:
            action()
            return
        host.busy = max(host.busy, self.now) + host.cost

        def finish() -> None:
            if host.running and not host.paused:
                action()
            elif host.running:
                host.inbox.append(finish)

        self.at(host.busy, finish)

    def _dial(self, caller: Host, dial: Dial) -> None:
        caller.stream_bytes += len(dial.data)
        self._note(dial.to, dial.data)
        target = self.places.get(dial.to)
        loss = combined(self.link.loss, caller.loss, target.loss if target is not None else 0.0)
        delay = self.link.stream_delay(self.random, loss, dial.timeout)
        self.at(self.now + delay, lambda: self._connect(caller, dial, delay))

    def _connect(self, caller: Host, dial: Dial, taken: float) -> None:
        host = self.places.get(dial.to)
        rest = dial.timeout - taken
        linked = (
            host is not None
            and host.power
            and self._linked(caller, host)
            and self._linked(host, caller)
        )
        if host is None or not linked or host.paused or rest <= 0:
            self.at(self.now + max(rest, 0.0), lambda: self._reply(caller, dial, None))
        elif not host.process:
            self._reply(caller, dial, None)
        else:
            self._work(host, lambda: self._answer(caller, host, dial))

    def _answer(self, caller: Host, host: Host, dial: Dial) -> None:
        message = Assembler(self.envelope, dialler=False).feed(dial.data)
        reply = None
        if message is not None:
            source = Address(caller.address.host, DIALLER_PORT)
            reply, effects = host.machine.answer(message, source, self.now)
            self._perform(host, effects)
        host.stream_bytes += len(reply or b"")
        delay = self.link.transit(self.random)
        self.at(self.now + delay, lambda: self._reply(caller, dial, reply))

    def _reply(self, caller: Host, dial: Dial, reply: bytes | None) -> None:
        if not caller.running:
            return
        if caller.paused:
            caller.inbox.append(lambda: self._reply(caller, dial, reply))
            return
        message: StreamMessage | None = None
        if reply:
            message = Assembler(self.envelope, dialler=True).feed(reply)
        self._perform(caller, caller.machine.replied(dial.token, message, self.now))


def gather(network: Network, names: Iterable[str]) -> None:
    """Hosts of these names that join through the first of them; they still have to settle."""
    first: tuple[str, ...] = ()
    for name in names:
        network.add(name, *first)
        first = first or (name,)
