"""A few machines on the simulated network, with what tests ask of them."""

from __future__ import annotations

from random import Random

from gossip.events import Contact
from gossip.peer import Health
from gossip.simulator.link import Link
from gossip.simulator.network import Network, gather


class Cluster(Network):
    """`loss` is the chance of a datagram to vanish, `latency` a range of seconds."""

    def __init__(self, seed=1, *, loss=0.0, latency=(0.0002, 0.001), tuning=None, envelope=None):
        link = Link(loss=loss, delay=latency)
        super().__init__(seed, Random, link=link, tuning=tuning, envelope=envelope)

    def gather(self, count):
        """So many hosts n0, n1 … that know each other, settled."""
        names = [f"n{number}" for number in range(count)]
        gather(self, names)
        self.run_until(lambda: self.agree(names), 20)
        self.run(3)
        return names

    def run_until(self, holds, limit):
        """Let time pass until `holds()`; the seconds it took."""
        start = self.now
        while not holds():
            assert self.now - start < limit, f"still not after {limit} s"
            self.run(0.01)
        return self.now - start

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


def _plain(event):
    if isinstance(event, Contact):
        return f"Contact {sorted(event.answered)} {sorted(event.asked)} {event.since}"
    return repr(event)
