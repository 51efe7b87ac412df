"""The kernel's addresses over rtnetlink: trains of messages out, dumps and events in.

The only importer of pyroute2: it encodes one message of each kind, and `rtnetlink.Template`
copies those. Bulk goes in pieces, so that an urgent address waits for one piece at most.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import socket
from struct import Struct
from typing import TYPE_CHECKING

from egress import rtnetlink
from egress.echoes import Echoes
from egress.kernel import Kernel, KernelError
from egress.lane import Lane
from egress.model import PROTOCOL, Binding, Bound, Interface, Observed
from egress.refusals import refusal, refusal_of
from egress.rtnetlink import Address, End, Link, Template, Verdict
from egress.watch import Watch

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Callable,
        Collection,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from egress.echoes import Key
    from egress.model import Network
    from egress.rtnetlink import Message

PATIENCE = 2.0
"""Seconds for one piece, or one dump, until the kernel counts as mute."""
PIECES = {4: 64, 6: 16}
"""Addresses in one piece. IPv6 costs the kernel up to 1.5 ms each (IPv4 0.1 ms), and all of it
under the network lock of the host."""
SLICE = 100
"""Entries of a dump between two turns of the loop: a millisecond. A datagram has 400."""
DUMP_TRIES = 3
"""A dump that the list changed under is asked for again so often; then events set it right."""
MARKS_SINCE = (5, 18)
"""The first Linux that knows IFA_PROTO."""

_SIOCGIFINDEX = 0x8933
_INTERFACE_REQUEST = Struct("16si20x")
_NAME_MAX = 15
_BYTES_OF_IPV4 = 4
_FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
_NEW = rtnetlink.NLM_F_REQUEST | rtnetlink.NLM_F_CREATE
_VERBS = {
    "bind": (rtnetlink.RTM_NEWADDR, _NEW | rtnetlink.NLM_F_EXCL),
    "renew": (rtnetlink.RTM_NEWADDR, _NEW | rtnetlink.NLM_F_REPLACE),
    "unbind": (rtnetlink.RTM_DELADDR, rtnetlink.NLM_F_REQUEST),
}
_GONE_ALREADY = (errno.EADDRNOTAVAIL, errno.ENODEV, errno.ENXIO)

Failures = dict[Binding, KernelError]


class Netlink(Kernel):
    """Addresses of this host. Belongs to the network namespace that it was made in."""

    def __init__(self, *, patience: float = PATIENCE) -> None:
        self._templates = {
            (action, family): Template(_encoded(kind, flags, family))
            for action, (kind, flags) in _VERBS.items()
            for family in _FAMILIES
        }
        self._commands = Lane("netlink-train", patience)
        self._dumps = Lane("netlink-dump", patience)
        self._inquiries = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._echoes = Echoes(self._commands.pid, marks=_kernel() >= MARKS_SINCE)
        self._watch = Watch(self._echoes)
        self._bindings: dict[tuple[bytes, str], Binding] = {}
        self._renewals: list[set[Binding]] = []
        self._trusted: set[Binding] = set()

    async def bind(
        self, bindings: Sequence[Binding], lease: float
    ) -> Mapping[Binding, KernelError]:
        """Add with our mark and a lifetime of `lease` whole seconds; returns those that failed.

        One that is ours already, or that we bound before somebody took the mark away, is renewed.
        One that somebody else has put there is left alone and refused with EEXIST.
        """
        failed = await self._train("bind", bindings, lease)
        doubtful = [each for each, error in failed.items() if error.errno == errno.EEXIST]
        if doubtful:
            others = {each: error for each, error in failed.items() if error.errno != errno.EEXIST}
            failed = others | await self._settle(doubtful, lease)
        self._trusted.update(each for each in bindings if each not in failed)
        return failed

    def trust(self, bindings: Iterable[Binding]) -> None:
        """A predecessor of ours bound these: they are ours even where the mark is gone."""
        self._trusted.update(bindings)

    async def renew(
        self, bindings: Sequence[Binding], lease: float
    ) -> Mapping[Binding, KernelError]:
        """Start the lifetimes anew and put mark and flags back; what is gone is re-created."""
        cancelled: set[Binding] = set()
        self._renewals.append(cancelled)
        try:
            return await self._train("renew", bindings, lease, cancelled)
        finally:
            self._renewals = [each for each in self._renewals if each is not cancelled]

    async def unbind(self, bindings: Sequence[Binding]) -> Mapping[Binding, KernelError]:
        """Remove; an address that is not there, or whose link is gone, is a success."""
        self._trusted.difference_update(bindings)
        for cancelled in self._renewals:  # Or the rest of a train would bring them back.
            cancelled.update(bindings)
        failed = await self._train("unbind", bindings, 0)
        return {each: error for each, error in failed.items() if error.errno not in _GONE_ALREADY}

    async def observe(self) -> Observed:
        """Links and addresses as the kernel has them now; the loop is never held by it."""
        links = [each async for each in self._dump(rtnetlink.dump_links) if isinstance(each, Link)]
        names = {each.index: each.name for each in links}
        known, self._bindings = self._bindings, {}
        bound: list[Bound] = []
        foreign: list[Address] = []
        async for seen in self._dump(rtnetlink.dump_addresses):
            if isinstance(seen, Address) and seen.index in names:
                bound.append(self._bound(seen, names[seen.index], known))
                if seen.mark != PROTOCOL:
                    foreign.append(seen)
        return Observed(tuple(_interfaces(links, foreign)), tuple(bound))

    async def changed(self) -> None:
        """Return when links or addresses changed by another hand than ours, or may have."""
        await self._watch.changed()

    def remover(self, binding: Binding) -> str | None:
        """Who took this away last, if the kernel told."""
        return self._watch.removers.get((binding.ip.packed, self._index(binding.interface)))

    def close(self) -> None:
        """Let go of the sockets; addresses stay until their lifetimes end."""
        self._watch.close()
        self._commands.close()
        self._dumps.close()
        self._inquiries.close()

    async def _train(
        self,
        action: str,
        bindings: Sequence[Binding],
        lease: float,
        cancelled: Collection[Binding] = (),
    ) -> Failures:
        # Whole seconds is what the kernel counts in. Rounded down: never longer than promised.
        seconds = min(max(1, int(lease)), rtnetlink.FOREVER - 1)
        failed: Failures = {}
        for piece in _pieces(bindings):
            wanted = [each for each in piece if each not in cancelled] if cancelled else piece
            failed |= await self._piece(action, wanted, seconds)
        return failed

    async def _piece(self, action: str, piece: Sequence[Binding], seconds: int) -> Failures:
        indices = {name: self._index(name) for name in {each.interface for each in piece}}
        present = [each for each in piece if indices[each.interface]]
        absent = [each for each in piece if not indices[each.interface]]
        failed = {each: refusal(action, errno.ENODEV, each) for each in absent}
        if not present:
            return failed
        keys = [(each.ip.packed, indices[each.interface]) for each in present]
        numbers = self._commands.numbers(len(keys))
        requests = self._requests(action, keys, numbers, seconds)
        gone = action == "unbind"
        self._echoes.expect(keys, gone=gone, now=asyncio.get_running_loop().time())
        try:
            answers = await self._commands.ask(requests, numbers[-1])
        except OSError as error:
            return failed | {each: refusal_of(action, error, each) for each in present}
        refused = dict(_verdicts(answers))
        for each, number, key in zip(present, numbers, keys, strict=True):
            if verdict := refused.get(number):
                self._echoes.retract(key, gone=gone)
                failed[each] = refusal(action, verdict.errno, each, verdict.text)
        return failed

    def _requests(
        self, action: str, keys: Sequence[Key], numbers: Sequence[int], seconds: int
    ) -> list[bytes]:
        version = 4 if len(keys[0][0]) == _BYTES_OF_IPV4 else 6
        template = self._templates[action, version]
        # An IPv6 address that is preferred becomes the source of the host's own traffic (K13).
        preferred = seconds if version == 4 else 0  # noqa: PLR2004 - IPv4
        return [
            # Refusals are always answered; one answer from the end says that all are done.
            template.stamp(packed, index, (preferred, seconds), number, ack=number == numbers[-1])
            for (packed, index), number in zip(keys, numbers, strict=True)
        ]

    async def _settle(self, doubtful: Sequence[Binding], lease: float) -> Failures:
        """Find out whose these are that the kernel has already, and keep what is ours."""
        observed = await self.observe()
        whole = (each for each in observed.bound if each.prefix == each.binding.ip.max_prefixlen)
        there = {each.binding: each for each in whole}
        present = [each for each in doubtful if each in there]
        ours = [each for each in present if there[each].ours or each in self._trusted]
        foreign = set(present).difference(ours)
        # Failed duplicate detection heals by deletion alone (K05b).
        broken = [each for each in ours if not there[each].usable]
        absent = [each for each in doubtful if each not in there]
        failed = {each: refusal("bind", errno.EEXIST, each) for each in present if each in foreign}
        failed |= await self._train("unbind", broken, lease)
        failed |= await self._train("bind", broken + absent, lease)
        failed |= await self._train("renew", [each for each in ours if there[each].usable], lease)
        return failed

    async def _dump(self, request: Callable[[int], bytes]) -> AsyncIterator[Message]:
        chunks: list[bytes] = []
        for _ in range(DUMP_TRIES):
            (number,) = self._dumps.numbers(1)
            try:
                chunks = await self._dumps.ask([request(number)], number)
            except OSError as error:
                raise refusal_of("observe", error) from error
            if not await _torn(chunks):
                break
        for chunk in chunks:
            for number, message in enumerate(rtnetlink.decode(chunk)):
                if number % SLICE == 0:
                    await asyncio.sleep(0)
                if isinstance(message, Verdict | End) and message.errno:
                    raise refusal("observe", message.errno)
                yield message

    def _bound(self, seen: Address, name: str, known: Mapping[tuple[bytes, str], Binding]) -> Bound:
        # Kept from the last time: addresses stay, and making one anew is most of the work.
        key = (seen.packed, name)
        binding = known.get(key) or Binding(seen.ip, name)
        self._bindings[key] = binding
        return Bound(binding, seen.mark == PROTOCOL, seen.valid, seen.prefix, seen.usable)

    def _index(self, name: str) -> int:
        """The number of a link, 0 if there is none of that name."""
        raw = os.fsencode(name)
        if not 0 < len(raw) <= _NAME_MAX:
            return 0
        try:
            answer = fcntl.ioctl(self._inquiries, _SIOCGIFINDEX, _INTERFACE_REQUEST.pack(raw, 0))
        except OSError:
            return 0
        return int(_INTERFACE_REQUEST.unpack(answer)[1])


def _encoded(kind: int, flags: int, version: int) -> bytes:
    """One address message with the complete set of attributes; `Template` patches the rest in."""
    from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg

    zero = "0.0.0.0" if version == 4 else "::"  # noqa: PLR2004, S104 - a placeholder
    message = ifaddrmsg()
    message["header"]["type"] = kind
    message["header"]["flags"] = flags
    message["family"] = _FAMILIES[version]
    message["prefixlen"] = 32 if version == 4 else 128  # noqa: PLR2004 - IPv4
    attributes: list[list[object]] = [["IFA_LOCAL", zero], ["IFA_ADDRESS", zero]]
    if kind == rtnetlink.RTM_NEWADDR:
        lifetimes = {"ifa_preferred": 0, "ifa_valid": 0, "cstamp": 0, "tstamp": 0}
        attributes += [["IFA_CACHEINFO", lifetimes], ["IFA_PROTO", PROTOCOL]]
        if version == 6:  # noqa: PLR2004 - IPv6
            wish = rtnetlink.IFA_F_NODAD | rtnetlink.IFA_F_NOPREFIXROUTE
            attributes.append(["IFA_FLAGS", wish])
    message["attrs"] = attributes
    message.encode()
    return bytes(message.data)


async def _torn(chunks: Iterable[bytes]) -> bool:
    for chunk in chunks:
        await asyncio.sleep(0)
        if rtnetlink.torn(chunk):
            return True
    return False


def _pieces(bindings: Iterable[Binding]) -> Iterator[list[Binding]]:
    """Each of one family; IPv4 first, for it is done while one IPv6 address is thought about."""
    ordered = list(bindings)
    for version, size in PIECES.items():
        family = [each for each in ordered if each.ip.version == version]
        for start in range(0, len(family), size):
            yield family[start : start + size]


def _verdicts(answers: Iterable[bytes]) -> Iterator[tuple[int, Verdict]]:
    for data in answers:
        for message in rtnetlink.decode(data):
            if isinstance(message, Verdict) and message.errno:
                yield message.sequence, message


def _interfaces(links: Sequence[Link], foreign: Iterable[Address]) -> Iterator[Interface]:
    names = {each.index: each.name for each in links}
    there: dict[int, list[Address]] = {}
    for address in foreign:
        there.setdefault(address.index, []).append(address)
    for link in links:
        own = there.get(link.index, [])
        networks: dict[Network, None] = dict.fromkeys(each.network for each in own)
        yield Interface(
            name=link.name,
            index=link.index,
            mac=link.mac,
            carrier=link.carrier,
            networks=tuple(networks),
            addresses=tuple(each.ip for each in own if each.usable),
            master=names.get(link.master) if link.master is not None else None,
            kind=link.kind,
        )


def _kernel() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(filter(str.isdigit, minor)) or 0)
