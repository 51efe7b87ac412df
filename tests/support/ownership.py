"""A cluster of owners in virtual time: real decisions, a pretended segment, kernel and gossip.

Every host has a kernel whose addresses run out, a daemon that can stop and die, a place on the
segment (`wire`) and in the gossip (`net`). Everything is driven by one seed. `doubles` lists each
moment at which an address was bound while another host on the same segment had it, `overlaps`
the same for segments that grew together, `intruders` the binding of what a stranger has.
"""

import heapq
import itertools
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from random import Random

from egress.decision import Timing
from egress.model import Bound, Egress, Interface, Observed, Reply
from egress.partition import Policy
from support.owner import ETH, Owner

LIFETIME = (2.98, 4.03)
"""What a lease of 3 s comes to in the kernel (measured)."""
PROBES = (0.0, 0.0375, 0.075, 0.1125)
WINDOW = 0.15
GATEWAY = ip_address("10.77.0.1")
NETWORKS = (ip_network("10.77.0.0/24"), ip_network("2001:db8:77::/64"))
HEALED = 7.0
"""Seconds after a heal by which nothing is on two hosts any more: a push/pull and its effect."""


@dataclass
class Asking:
    """A question on its way: who answered so far."""

    question: object
    asked: float
    macs: set = field(default_factory=set)
    rivals: set = field(default_factory=set)
    control: bool = False
    done: bool = False


class Host:
    """A machine: its kernel answers for what is bound, whatever its daemon does."""

    def __init__(self, world, index):
        self.world = world
        self.name = f"n{index}"
        self.mac = f"02:00:00:00:00:{index:02x}"
        self.address = ip_address(f"10.77.0.{10 + index}")
        self.labels = (("half", "odd" if index % 2 else "even"),)
        self.up = True
        self.bound = {}  # IP -> (binding, when it runs out)
        self.paused_until = 0.0
        self.deferred = []
        self.owner = None  # the daemon
        self.life = 0
        self.asking = []
        self.disk = set()  # names of members, kept over restarts
        self.outage = float("-inf")  # when the daemon ran again, after a stop or a death
        self.wire = self.net = 0

    def __repr__(self):
        return self.name

    @property
    def running(self):
        return self.up and self.owner is not None and self.world.now >= self.paused_until

    def has(self, ip):
        return self.up and ip in self.bound and self.bound[ip][1] > self.world.now

    def put(self, binding):
        fresh = not self.has(binding.ip)
        self.bound[binding.ip] = (binding, self.world.now + self.world.rng.uniform(*LIFETIME))
        if fresh:
            self.world.note_bound(self, binding.ip)

    def take_away(self, binding):
        if self.has(binding.ip):
            self.world.log(self, "unbound", binding.ip)
        self.bound.pop(binding.ip, None)

    def observe(self):
        now = self.world.now
        link = Interface(ETH, 2, self.mac, carrier=True, networks=NETWORKS)
        bound = tuple(
            Bound(binding, ours=True, valid=until - now, prefix=binding.ip.max_prefixlen)
            for binding, until in self.bound.values()
            if until > now
        )
        return Observed((link,), bound)

    def later(self, delay, act):
        """Run `act` in this life of the daemon; while it is stopped, after it wakes."""
        life = self.life

        def fire():
            if self.life != life or self.owner is None:
                return
            if self.world.now < self.paused_until:
                self.deferred.append(act)
            else:
                act()

        self.world.at(self.world.now + delay, fire)

    def wake(self):
        """What piled up comes in any order, and all at once."""
        self.outage = self.world.now
        todo, self.deferred = self.deferred, []
        life = self.life
        self.world.rng.shuffle(todo)
        for act in todo:
            if self.life == life and self.world.now >= self.paused_until:
                act()


class World:
    """Everything there is, and the one clock."""

    def __init__(self, seed, nodes=3, egresses=4, *, gateway=True, policy=Policy.MAJORITY):
        self.seed = seed
        self.rng = Random(seed)
        self.now = 0.0
        self.heap = []
        self.count = itertools.count()
        self.timing = Timing()
        self.gateway = gateway
        self.gateway_address = GATEWAY
        self.gateways = {0}  # wires on which it can be reached
        self.policy = policy
        self.loss = self.lan_loss = 0.0
        self.strangers = {}
        self.events = []
        self.doubles = []
        self.overlaps = []
        self.exceptions = {}
        self.splits = 0
        self.healed = float("-inf")  # when a cut of the segment ended
        self.lingering = []
        self.intruders = []
        self.hosts = [Host(self, index) for index in range(1, nodes + 1)]
        self.by_name = {host.name: host for host in self.hosts}
        self.egresses = tuple(
            Egress(f"e{i}", (ip_address(f"10.77.0.{200 + i}"),)) for i in range(egresses)
        )

    @property
    def ips(self):
        return [ip for egress in self.egresses for ip in egress.ips]

    def carriers(self, ip):
        return [host for host in self.hosts if host.has(ip)]

    def log(self, host, what, ip=None):
        self.events.append((round(self.now, 4), str(host), what, None if ip is None else str(ip)))

    # -- time ----------------------------------------------------------------------------

    def at(self, when, act):
        """Events of the same instant come in random order."""
        heapq.heappush(self.heap, (when, self.rng.random(), next(self.count), act))

    def run(self, seconds):
        end = self.now + seconds
        while self.heap and self.heap[0][0] <= end:
            when, _, _, act = heapq.heappop(self.heap)
            self.now = max(self.now, when)
            act()
        self.now = end

    def run_until(self, holds, within):
        """Seconds until `holds()`; a failure if it takes longer than `within`."""
        began = self.now
        while not holds():
            assert self.now - began <= within, f"seed {self.seed}: not within {within} s"
            self.run(0.01)
        return self.now - began

    # -- gossip --------------------------------------------------------------------------

    def tell(self, sender, message):
        """Broadcast: forwarded on receipt, or a gossip tick later if that was lost."""
        for host in self.hosts:
            if host is sender or host.net != sender.net or host.owner is None or not host.up:
                continue
            delay = self.rng.uniform(0.001, 0.02)
            while self.rng.random() < self.loss:
                delay += 0.2
            host.later(delay, self._delivery(sender, host, message))

    def exchange(self, one, other):
        """A push/pull: both get all that the other knows."""
        for host, peer in ((one, other), (other, one)):
            if host.net != peer.net or not host.owner or not peer.owner:
                continue
            for message in host.owner.everything():
                peer.later(self.rng.uniform(0.001, 0.01), self._delivery(host, peer, message))

    def _delivery(self, sender, host, message):
        def deliver():
            if host.net == sender.net and host.owner is not None:
                host.owner.receive(message)

        return deliver

    # -- the segment ---------------------------------------------------------------------

    def ask(self, host, question):
        asking = Asking(question, self.now)
        host.asking.append(asking)
        for offset in PROBES:
            host.later(offset, lambda: self._probe(host, asking))
        host.later(WINDOW, lambda: self._reply(host, asking))

    def _probe(self, host, asking):
        ip, controls = asking.question.ip, asking.question.controls
        for other in self.hosts:
            if other is host or not other.up or other.wire != host.wire:
                continue
            if other.has(ip) and not self._lost():
                asking.macs.add(other.mac)
            for theirs in other.asking:
                if theirs.question.ip == ip and not theirs.done and not self._lost():
                    theirs.rivals.add(host.mac)
            asking.control |= other.address in controls
        asking.control |= GATEWAY in controls and host.wire in self.gateways
        if ip in self.strangers and host.wire == 0:
            asking.macs.add(self.strangers[ip])

    def _lost(self):
        return self.lan_loss > 0 and self.rng.random() < self.lan_loss

    def _reply(self, host, asking):
        asking.done = True
        host.asking = [each for each in host.asking if not each.done]
        reply = Reply(
            question=asking.question,
            macs=frozenset(asking.macs),
            control=asking.control if asking.question.controls else None,
            carrier=True,
            asked=asking.asked,
            heard=self.now,
            rivals=frozenset(asking.rivals),
        )
        host.owner.moves.heard((reply,), self.now)
        host.owner.run()

    def note_bound(self, host, ip):
        self.log(host, "bound", ip)
        for other in self.hosts:
            if other is not host and other.wire == host.wire and other.has(ip):
                # What was asked before the segment was whole again could not be answered.
                blind = self.now - self.healed < WINDOW + self.timing.fresh
                why = self._exception([other]) if blind else None
                self._count(why, self.doubles, f"{ip} bound on {host} while on {other}")
        if ip in self.strangers and host.wire == 0:
            self.intruders.append(f"{self.now:.3f} {ip} bound on {host} while a stranger has it")

    # -- what befalls a host -------------------------------------------------------------

    def start(self):
        for host in self.hosts:
            self.at(self.rng.uniform(0, 0.5), lambda host=host: self.start_daemon(host))

    def start_daemon(self, host):
        self._new_life(host, Owner(host, self.egresses))
        host.outage = self.now
        host.owner.start()
        self.log(host, "start")

    def end_daemon(self, host):
        """SIGKILL, or the end of an orderly stop; what is bound stays until it runs out."""
        self._new_life(host, None)
        self.log(host, "end")

    def _new_life(self, host, owner):
        host.life += 1
        host.owner = owner
        host.deferred, host.asking = [], []
        host.paused_until = 0.0

    def kill_host(self, host):
        host.up = False
        host.bound.clear()
        self.end_daemon(host)

    def boot_host(self, host):
        host.up = True
        self.start_daemon(host)

    def pause(self, host, seconds):
        """SIGSTOP and later SIGCONT."""
        until = host.paused_until = max(host.paused_until, self.now + seconds)
        life = host.life
        self.log(host, f"pause {seconds:.2f}")
        self.at(until, lambda: host.wake() if host.life == life else None)

    def leave(self, host):
        host.owner.draining = host.owner.leaving = True
        self.log(host, "leave")

    def drain(self, host, *, wish):
        host.owner.draining = wish
        self.log(host, f"drain {wish}")

    def delete(self, ip):
        """Another program on the host removes an address."""
        for host in self.carriers(ip):
            host.take_away(host.bound[ip][0])
            if host.owner is not None:
                host.later(0.002, host.owner.run)

    def split(self, group, *, wire):
        self.splits += 1
        for host in group:
            host.net = 1
            host.wire = 1 if wire else 0
        self.log(group, "cut off the segment" if wire else "cut off gossip")

    def heal(self):
        apart = {host.name: host.wire for host in self.hosts}
        for host in self.hosts:
            host.net = host.wire = 0
        self.log("all", "heal")
        if any(apart.values()):
            self.healed = self.now
        for ip in self.ips:
            both = self.carriers(ip)
            if len({apart[host.name] for host in both}) > 1:
                why = self._exception(both)
                self._count(why, self.overlaps, f"{ip} on {both} as the segment heals")
        splits = self.splits
        self.at(self.now + HEALED, lambda: self._look_for_lingering(splits))

    def _count(self, why, faults, what):
        if why is None:
            faults.append(f"{self.now:.3f} {what}")
        else:
            self.exceptions[why] = self.exceptions.get(why, 0) + 1

    def _exception(self, both):
        """Which of the documented exceptions explains two carriers after a cut of the segment."""
        if any(not host.running or self.now - host.outage < LIFETIME[1] for host in both):
            return "a daemon stopped or died behind the cut, and its lease still runs"
        staying = [h for h in self.hosts if h.up and h.owner is not None and not h.owner.left]
        if not self.gateway and len(staying) <= 2:
            return "two nodes without a gateway"
        return None

    def _look_for_lingering(self, splits):
        for ip in self.ips:
            both = self.carriers(ip)
            if len(both) > 1 and self.splits == splits:
                self.lingering.append(f"{self.now:.3f} {ip} still on {both}")

    def reload(self, egresses):
        self.egresses = tuple(egresses)
        self.log("all", f"reload to {len(self.egresses)}")
        for host in self.hosts:
            if host.owner is not None:
                host.later(self.rng.uniform(0, 0.3), lambda host=host: self._read(host))

    def _read(self, host):
        host.owner.egresses = self.egresses
        host.owner.run()
