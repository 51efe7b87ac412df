"""A kernel that holds addresses and a segment that hears them, in virtual time.

`FakeKernel` and `FakeLan` implement the protocols of `egress.kernel`. They live in loop time (a
`looptime` test) unless given another clock, and they behave: leases run out late, a late renewal
re-creates, other hands interfere, and several hosts on one `Segment` answer with their MACs.
"""

import asyncio
import errno
from dataclasses import dataclass, replace
from ipaddress import ip_network
from random import Random

from egress.kernel import Kernel, KernelError, Lan
from egress.model import Bound, Interface, Observed, Reply

SLACK = (-0.02, 1.03)
"""How much later than its lifetime the kernel drops an address (kernel facts K17, K57)."""
WINDOW = 0.15
"""Seconds that asking takes."""
NET = ip_network("10.77.0.0/24")


def link(name="eth0", index=2, mac="02:00:00:00:00:0a", networks=(NET,), **fields):
    """An interface with carrier."""
    return Interface(name, index, mac, networks=networks, **{"carrier": True, **fields})


@dataclass
class Held:
    """An address in the kernel; `until` is when it goes, None never."""

    ours: bool
    until: float | None
    prefix: int
    usable: bool = True


class FakeKernel(Kernel):
    """Addresses of one host.

    `refuses` maps a binding to the errno that bind, renew and unbind fail with, `delay` is what
    every call takes. `calls` are the names of the calls and what they were about. Without
    `marks` it is a Linux before 5.18.
    """

    def __init__(self, *links, clock=None, rng=None, marks=True):
        self.marks = marks
        self.links = {each.name: each for each in links or (link(),)}
        self.addresses = {}
        self.refuses = {}
        self.delay = 0.0
        self.calls = []
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._rng = rng or Random(1)
        self._news = asyncio.Event()
        self._trusted = set()

    # -- the protocol --------------------------------------------------------------------

    async def observe(self):
        await self._work("observe", ())
        now = self._clock()
        bound = tuple(
            Bound(binding, held.ours, held.until and held.until - now, held.prefix, held.usable)
            for (binding, _), held in sorted(self.addresses.items(), key=lambda item: item[0][0])
        )
        return Observed(tuple(self.links.values()), bound)

    async def bind(self, bindings, lease):
        return await self._put("bind", bindings, lease)

    async def renew(self, bindings, lease):
        return await self._put("renew", bindings, lease)

    async def unbind(self, bindings):
        await self._work("unbind", bindings)
        for binding in bindings:
            if binding not in self.refuses:
                self.addresses.pop((binding, binding.ip.max_prefixlen), None)
                self._trusted.discard(binding)
        return self._refused("unbind", bindings)

    async def changed(self):
        await self._news.wait()
        self._news.clear()

    async def _put(self, action, bindings, lease):
        await self._work(action, bindings)
        failed = self._refused(action, bindings)
        for binding in bindings:
            if binding.interface not in self.links:
                failed[binding] = KernelError(action, errno.ENODEV, "no such link")
            elif action == "bind" and self._foreign(binding):
                failed[binding] = KernelError(action, errno.EEXIST, "another program has it")
            elif binding not in failed:
                self._trusted.add(binding)
                until = self._clock() + lease + self._rng.uniform(*SLACK)
                held = Held(self.marks, until, prefix=binding.ip.max_prefixlen)
                self.addresses[binding, held.prefix] = held
        return failed

    def _foreign(self, binding):
        held = self.addresses.get((binding, binding.ip.max_prefixlen))
        return held is not None and not held.ours and binding not in self._trusted

    def _refused(self, action, bindings):
        return {
            each: KernelError(action, self.refuses[each], "refused")
            for each in bindings
            if each in self.refuses
        }

    async def _work(self, action, bindings):
        self.calls.append((action, tuple(bindings)))
        if self.delay:
            await asyncio.sleep(self.delay)
        self.expire()

    # -- time, and other hands -------------------------------------------------------------

    def expire(self):
        """Drop what has run out; the protocol and `has` do so by themselves."""
        now = self._clock()
        late = [key for key, held in self.addresses.items() if held.until and held.until <= now]
        for key in late:
            del self.addresses[key]
        if late:
            self._news.set()

    def has(self, ip):
        """Whether this host answers for the address now."""
        self.expire()
        return any(
            binding.ip == ip and held.usable and self.links[binding.interface].carrier
            for (binding, _), held in self.addresses.items()
        )

    @property
    def whole(self):
        """Bindings that are there as /32 or /128, whosever they are."""
        self.expire()
        return {each for each, prefix in self.addresses if prefix == each.ip.max_prefixlen}

    @property
    def ours(self):
        """Bindings with our mark."""
        self.expire()
        return {binding for (binding, _), held in self.addresses.items() if held.ours}

    def seize(self, binding, prefix=None, *, ours=False):
        """Another program puts the address there, or replaces what is there: for ever."""
        held = Held(ours, None, prefix or binding.ip.max_prefixlen)
        self.addresses[binding, held.prefix] = held
        self._news.set()

    def delete(self, binding):
        """Another program takes it away."""
        self.addresses.pop((binding, binding.ip.max_prefixlen), None)
        self._news.set()

    def spoil(self, binding):
        """Its duplicate detection fails."""
        self.addresses[binding, binding.ip.max_prefixlen].usable = False
        self._news.set()

    def carrier(self, name, up):
        """The cable of a link is plugged in or pulled."""
        self.links[name] = replace(self.links[name], carrier=up)
        self._news.set()

    def unplug(self, name):
        """A link vanishes, with its addresses."""
        del self.links[name]
        for binding, prefix in [key for key in self.addresses if key[0].interface == name]:
            del self.addresses[binding, prefix]
        self._news.set()


class Segment:
    """One broadcast domain. `strangers` maps addresses of others (the gateway) to their MACs.

    `learned` is what a neighbour cache of a bystander holds, `heard` all announcements as
    (time, MAC, address).
    """

    def __init__(self, strangers=()):
        self.strangers = dict(strangers)
        self.hosts = []
        self.learned = {}
        self.heard = []
        self.asking = {}

    def answerers(self, ip, besides=None):
        """MACs that answer for an address, those of one host left out."""
        found = {mac for mac in [self.strangers.get(ip)] if mac}
        for kernel in self.hosts:
            if kernel is not besides and kernel.has(ip):
                found |= {each.mac for each in kernel.links.values() if each.carrier}
        return frozenset(found)

    def owners(self, ip):
        """Kernels that have the address now."""
        return [kernel for kernel in self.hosts if kernel.has(ip)]


class FakeLan(Lan):
    """The segment as one host sees it. `deaf`: it hears no answer, as behind a blocked port."""

    def __init__(self, segment, kernel, *, deaf=False):
        self.segment = segment
        self.deaf = deaf
        self._kernel = kernel
        segment.hosts.append(kernel)

    async def ask(self, questions):
        asked = asyncio.get_running_loop().time()
        mine = [(question.ip, self._mac(question.interface)) for question in questions]
        for ip, mac in mine:
            self.segment.asking.setdefault(ip, []).append(mac)
        macs = dict.fromkeys(questions, frozenset())
        controls = dict.fromkeys(questions, False)
        rivals = dict.fromkeys(questions, frozenset())
        for _ in range(4):
            for each in questions:
                if not self._blind(each):
                    macs[each] |= self.segment.answerers(each.ip, besides=self._kernel)
                    controls[each] |= any(map(self._answered, each.controls))
                    rivals[each] |= set(self.segment.asking[each.ip]) - {self._mac(each.interface)}
            await asyncio.sleep(WINDOW / 4)
        for ip, mac in mine:
            self.segment.asking[ip].remove(mac)
        heard = asyncio.get_running_loop().time()
        return tuple(
            Reply(
                each,
                macs[each],
                controls[each] if each.controls else None,
                self._carrier(each.interface),
                asked,
                heard,
                frozenset(rivals[each]),
            )
            for each in questions
        )

    async def announce(self, bindings, *, first):  # noqa: ARG002 - nothing is paced here
        now = asyncio.get_running_loop().time()
        for binding in bindings:
            mac = self._mac(binding.interface)
            if mac is None:
                raise KernelError("announce", errno.ENODEV, "no such link")
            if self._carrier(binding.interface):
                self.segment.heard.append((now, mac, binding.ip))
                self.segment.learned[binding.ip] = mac

    def _answered(self, ip):
        return bool(self.segment.answerers(ip, besides=self._kernel))

    def _blind(self, question):
        return self.deaf or not self._carrier(question.interface)

    def _carrier(self, name):
        found = self._kernel.links.get(name)
        return found is not None and found.carrier

    def _mac(self, name):
        found = self._kernel.links.get(name)
        return None if found is None else found.mac
