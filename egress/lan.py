"""The LAN over packet sockets: ask who has an address, say that we have it, hear rivals."""

from __future__ import annotations

import asyncio
import errno
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from egress import packets, speech
from egress.inquiry import Inquiry
from egress.kernel import KernelError, Lan
from egress.packets import Kind
from egress.port import ARP, IPV6, Port
from egress.refusals import refusal, refusal_of
from egress.repeats import Repeats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from egress.model import IP, Binding, Interface, Question, Reply

ASKS = (0.0, 0.05, 0.1, 0.14)
"""When to ask, in seconds from the start: at 20 % loss each way two questions are not enough."""
WINDOW = 0.16
"""Seconds after which nobody is waited for any more."""
PIECE = 64
"""Frames between two turns of the loop: a quarter of a millisecond."""
PREPARED = 32
"""Questions put into frames between two turns: a millisecond, most of it for IPv6 checksums."""
PORTS_MAX = 256
"""Packet sockets that may be open; one for each interface and family in use."""
RIVAL_PAUSE = 1.0
"""Seconds for which one rival claim about an address is enough."""
REPEAT_TICK = 0.1
"""Seconds between two looks at the repeats that wait."""

log = structlog.get_logger("wayout.egress")

_FATAL = (errno.EPERM, errno.EACCES, errno.EMFILE, errno.ENFILE)


@dataclass(slots=True)
class _Round:
    """What one call of `ask` has to say, each time that it asks."""

    asked: float = 0.0
    inquiries: list[tuple[Inquiry, Port | None]] = field(default_factory=list)
    frames: list[tuple[Port, tuple[bytes, bytes]]] = field(default_factory=list)
    controls: set[tuple[str, IP]] = field(default_factory=set)


class Segments(Lan):
    """The segments behind this host's interfaces.

    `interfaces` gives the interfaces as last observed: their addresses are what we ask as.
    `rivals` is called with address and MAC when somebody else claims an address that we hold.
    Sockets are opened when first needed and belong to the network namespace of that moment.
    """

    def __init__(
        self,
        interfaces: Callable[[], Iterable[Interface]],
        rivals: Callable[[Mapping[IP, str]], None],
    ) -> None:
        self._interfaces = interfaces
        self._rivals = rivals
        self._ports: dict[tuple[str, int], Port] = {}
        self._open: dict[tuple[str, IP], list[Inquiry]] = {}
        self._controls: dict[tuple[str, IP], list[Inquiry]] = {}
        self._held: dict[tuple[str, IP], float] = {}
        self._repeats = Repeats()
        self._wanted = asyncio.Event()
        self._own: frozenset[str] = frozenset()

    # -- holding ---------------------------------------------------------------------------

    def hold(self, bindings: Iterable[Binding]) -> None:
        """From now on whoever else claims these is a rival."""
        for binding in bindings:
            self._held.setdefault((binding.interface, binding.ip), float("-inf"))
            self._listen(binding)
        self._look_at_home()

    def drop(self, bindings: Iterable[Binding]) -> None:
        """These are no longer ours: no rivals, and no more announcements."""
        gone = list(bindings)
        for binding in gone:
            self._held.pop((binding.interface, binding.ip), None)
        self._repeats.drop(gone)

    # -- asking ----------------------------------------------------------------------------

    async def ask(self, questions: Sequence[Question]) -> tuple[Reply, ...]:
        """Ask four times within 150 ms who has these addresses; all questions in parallel.

        An interface that is missing or down gives a reply without carrier. KernelError if we may
        not ask at all.
        """
        loop = asyncio.get_running_loop()
        round_ = _Round()
        try:
            await self._prepare(round_, questions)
            for turn, delay in enumerate(ASKS):
                await asyncio.sleep(round_.asked + delay - loop.time())
                await self._say(round_, turn % 2)
            await asyncio.sleep(round_.asked + WINDOW - loop.time())
        finally:
            self._forget(round_)
        self._look(round_)
        heard = loop.time()
        return tuple(inquiry.reply(heard) for inquiry, _ in round_.inquiries)

    async def _prepare(self, round_: _Round, questions: Sequence[Question]) -> None:
        ports = [self._port(each.interface, each.ip, "ask") for each in questions]
        known = self._look_at_home()
        round_.asked = asyncio.get_running_loop().time()
        for number, (question, port) in enumerate(zip(questions, ports, strict=True), 1):
            inquiry = Inquiry(question, self._own, round_.asked)
            round_.inquiries.append((inquiry, port))
            if port is None:
                inquiry.carried(carrier=False)
                continue
            interface = known.get(question.interface)
            self._open.setdefault((question.interface, question.ip), []).append(inquiry)
            round_.frames.append((port, speech.probe(question.ip, port.mac, interface)))
            for control in question.controls:
                self._prepare_control(round_, inquiry, control, interface)
            if number % PREPARED == 0:
                await asyncio.sleep(0)

    def _look_at_home(self) -> dict[str, Interface]:
        known = {each.name: each for each in self._interfaces()}
        macs = [each.mac for each in known.values()]
        self._own = frozenset((*macs, *(port.mac for port in self._ports.values())))
        return known

    def _prepare_control(
        self, round_: _Round, inquiry: Inquiry, control: IP, interface: Interface | None
    ) -> None:
        key = (inquiry.question.interface, control)
        self._controls.setdefault(key, []).append(inquiry)
        port = self._port(*key, "ask")
        if port is not None and key not in round_.controls:
            round_.controls.add(key)
            round_.frames.append((port, speech.request(control, port.mac, interface)))

    async def _say(self, round_: _Round, form: int) -> None:
        self._look(round_)
        for number, (port, forms) in enumerate(round_.frames, 1):
            try:
                await port.send(forms[form])
            except OSError as error:  # As good as lost; the control will not answer either.
                log.debug("egress.ask_failed", interface=port.interface, errno=error.errno)
            if number % PIECE == 0:
                await asyncio.sleep(0)

    def _look(self, round_: _Round) -> None:
        carriers = {port: port.carrier for _, port in round_.inquiries if port is not None}
        for inquiry, port in round_.inquiries:
            if port is not None:
                inquiry.carried(carrier=carriers[port])

    def _forget(self, round_: _Round) -> None:
        for inquiry, _ in round_.inquiries:
            question = inquiry.question
            _remove(self._open, (question.interface, question.ip), inquiry)
            for control in question.controls:
                _remove(self._controls, (question.interface, control), inquiry)

    # -- announcing ------------------------------------------------------------------------

    async def announce(self, bindings: Sequence[Binding], *, first: bool) -> None:
        """Say that these are here: first ones now, repeats when `run` gets to them.

        KernelError if a link refuses; the others have been announced nevertheless.
        """
        if not first:
            self._repeats.add(bindings)
            self._wanted.set()
            return
        refused: KernelError | None = None
        for number, binding in enumerate(bindings, 1):
            try:
                await self._herald(binding)
            except KernelError as error:
                refused = refused or error
            if number % PIECE == 0:
                await asyncio.sleep(0)
        if refused is not None:
            raise refused

    async def run(self) -> None:
        """Say the repeats, at a pace; until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._wanted.wait()
            for binding in self._repeats.take(loop.time()):
                try:
                    await self._herald(binding)
                except KernelError as error:
                    log.debug(
                        "egress.repeat_failed", interface=binding.interface, errno=error.errno
                    )
            if not self._repeats:
                self._wanted.clear()
            await asyncio.sleep(REPEAT_TICK)

    async def _herald(self, binding: Binding) -> None:
        port = self._port(binding.interface, binding.ip, "announce")
        if port is None:
            raise refusal("announce", errno.ENODEV, binding)
        try:
            for frame in speech.announcements(binding.ip, port.mac):
                await port.send(frame)
        except OSError as error:
            raise refusal_of("announce", error, binding) from error

    # -- hearing ---------------------------------------------------------------------------

    def close(self) -> None:
        """Hear and say nothing any more."""
        for port in self._ports.values():
            port.close()
        self._ports.clear()

    def _port(self, interface: str, ip: IP, action: str) -> Port | None:
        """The socket for that family there; None if there is no such interface."""
        key = (interface, ARP if ip.version == 4 else IPV6)  # noqa: PLR2004 - IPv4
        known = self._ports.get(key)
        if known is not None and known.current:
            return known
        if known is not None:  # Another interface of the same name.
            known.close()
            del self._ports[key]
        if len(self._ports) >= PORTS_MAX:
            raise refusal(action, errno.EMFILE)
        program = packets.ARP_FILTER if key[1] == ARP else packets.ND_FILTER
        try:
            self._ports[key] = Port(interface, key[1], program, self._hear)
        except OSError as error:
            if error.errno in _FATAL:
                raise refusal_of(action, error) from error
            return None
        return self._ports[key]

    def _listen(self, binding: Binding) -> None:
        try:
            self._port(binding.interface, binding.ip, "listen")
        except KernelError as error:  # Announcing will say the same, to somebody who can act.
            log.debug("egress.listen_failed", interface=binding.interface, errno=error.errno)

    def _hear(self, interface: str, frame: bytes) -> None:
        seen = packets.read(frame)
        if seen is None:
            return
        claimed = seen.claims
        if claimed is None:
            for inquiry in self._open.get((interface, seen.target), ()) if seen.probe else ():
                inquiry.probed(seen.mac)
        elif not speech.by_proxy(frame):
            self._hear_claim((interface, claimed), seen.mac)
            if seen.kind is Kind.REPLY and speech.to_asker(frame, self._own):
                for inquiry in self._controls.get((interface, claimed), ()):
                    inquiry.controlled()

    def _hear_claim(self, key: tuple[str, IP], mac: str) -> None:
        for inquiry in self._open.get(key, ()):
            inquiry.claimed(mac)
        if key in self._held and mac not in self._own:
            self._hear_rival(key, mac)

    def _hear_rival(self, key: tuple[str, IP], mac: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._held[key] < RIVAL_PAUSE:
            return
        self._held[key] = now
        log.warning("egress.rival_heard", ip=str(key[1]), interface=key[0], mac=mac)
        self._rivals({key[1]: mac})


def _remove(
    table: dict[tuple[str, IP], list[Inquiry]], key: tuple[str, IP], inquiry: Inquiry
) -> None:
    rest = [each for each in table.get(key, ()) if each is not inquiry]
    if rest:
        table[key] = rest
    else:
        table.pop(key, None)
