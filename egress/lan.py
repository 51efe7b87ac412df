"""The LAN over packet sockets: ask who has an address, say that we have it, hear rivals."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

import structlog

from egress import packets, speech
from egress.inquiry import Round
from egress.kernel import KernelError, Lan
from egress.packets import Kind
from egress.ports import Ports
from egress.refusals import refusal, refusal_of
from egress.repeats import Repeats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from egress.inquiry import Place
    from egress.model import IP, Binding, Interface, Question, Reply
    from egress.port import Port
    from egress.ports import Door

ASKS = (0.0, 0.05, 0.1, 0.14)
"""When to ask, in seconds from the start: at 20 % loss each way two questions are not enough."""
WINDOW = 0.16
"""Seconds after which nobody is waited for any more."""
PIECE = 32
"""Addresses between two turns of the loop: half a millisecond."""
RIVAL_PAUSE = 1.0
"""Seconds for which one rival claim about an address is enough."""
REPEAT_TICK = 0.1
"""Seconds between two looks at the repeats that wait."""

log = structlog.get_logger("wayout.egress")

Forms = tuple["Port", tuple[bytes, bytes]]
"""A question in the two forms that take turns, and where it goes out."""


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
        self._ports = Ports(self._hear)
        self._rounds: list[Round] = []
        self._held: dict[Place, float] = {}
        self._repeats = Repeats()
        self._wanted = asyncio.Event()
        self._own: frozenset[str] = frozenset()

    def hold(self, bindings: Iterable[Binding]) -> None:
        """From now on whoever else claims these is a rival."""
        links: dict[tuple[str, int], None] = {}
        for binding in bindings:
            self._held.setdefault((binding.interface, binding.ip), float("-inf"))
            links[binding.interface, binding.ip.version] = None
        for interface, version in links:
            try:
                self._ports.door(interface, version, "listen")
            except KernelError as error:  # Announcing says the same, to somebody who can act.
                log.debug("egress.listen_failed", interface=interface, errno=error.errno)
        self._look_at_home()

    def drop(self, bindings: Iterable[Binding]) -> None:
        """These are no longer ours: no rivals, and no more announcements."""
        gone = list(bindings)
        for binding in gone:
            self._held.pop((binding.interface, binding.ip), None)
        self._repeats.drop(gone)

    async def ask(self, questions: Sequence[Question]) -> tuple[Reply, ...]:
        """Ask four times within 150 ms who has these addresses; all questions in parallel.

        An interface that is missing or down gives a reply without carrier. KernelError if we may
        not ask at all.
        """
        loop = asyncio.get_running_loop()
        doors = self._doors(questions)
        known = self._look_at_home()
        asking = Round(questions, self._own, loop.time())
        self._rounds.append(asking)
        try:
            frames: list[Forms] = []
            for number, forms in enumerate(_frames(asking, questions, doors, known)):
                frames.append(forms)
                if number % PIECE == 0:
                    await asyncio.sleep(0)
            for turn, delay in enumerate(ASKS):
                await asyncio.sleep(asking.asked + delay - loop.time())
                _look_for_carrier(asking, doors)
                await _send(frames, turn % 2)
            await asyncio.sleep(asking.asked + WINDOW - loop.time())
        finally:
            self._rounds.remove(asking)
        _look_for_carrier(asking, doors)
        return asking.replies(loop.time())

    async def announce(self, bindings: Sequence[Binding], *, first: bool) -> None:
        """Say that these are here: first ones now, repeats when `run` gets to them.

        KernelError if a link refuses; the others have been announced nevertheless.
        """
        if not first:
            self._repeats.add(bindings)
            self._wanted.set()
        else:
            await self._herald(bindings)

    async def run(self) -> None:
        """Say the repeats, at a pace; until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._wanted.wait()
            try:
                await self._herald(self._repeats.take(loop.time()))
            except KernelError as error:
                log.debug("egress.repeat_failed", errno=error.errno, reason=error.message)
            if not self._repeats:
                self._wanted.clear()
            await asyncio.sleep(REPEAT_TICK)

    def close(self) -> None:
        """Hear and say nothing any more."""
        self._ports.close()

    # -- speaking --------------------------------------------------------------------------

    def _doors(self, questions: Sequence[Question]) -> dict[tuple[str, int], Door | None]:
        wanted = {
            (each.interface, ip.version): None
            for each in questions
            for ip in (each.ip, *each.controls)
        }
        return {key: self._ports.door(*key, "ask") for key in wanted}

    def _look_at_home(self) -> dict[str, Interface]:
        known = {each.name: each for each in self._interfaces()}
        self._own = frozenset((*(each.mac for each in known.values()), *self._ports.macs))
        return known

    async def _herald(self, bindings: Sequence[Binding]) -> None:
        wanted = {(each.interface, each.ip.version) for each in bindings}
        doors = {key: self._ports.door(*key, "announce") for key in wanted}
        refused: KernelError | None = None
        for number, binding in enumerate(bindings, 1):
            try:
                await _announce(binding, doors[binding.interface, binding.ip.version])
            except KernelError as error:
                refused = refused or error
            if number % PIECE == 0:
                await asyncio.sleep(0)
        if refused is not None:
            raise refused

    # -- hearing ---------------------------------------------------------------------------

    def _hear(self, interface: str, frame: bytes) -> None:
        seen = packets.read(frame)
        if seen is None or speech.by_proxy(frame):
            return
        if seen.probe:
            for asking in self._rounds:
                asking.probed((interface, seen.target), seen.mac)
        if (claimed := seen.claims) is None:
            return
        place = (interface, claimed)
        answer = seen.kind is Kind.REPLY and speech.to_asker(frame, self._own)
        for asking in self._rounds:
            asking.claimed(place, seen.mac)
            if answer:
                asking.answered(place)
        if place in self._held and seen.mac not in self._own:
            self._hear_rival(place, seen.mac)

    def _hear_rival(self, place: Place, mac: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._held[place] < RIVAL_PAUSE:
            return
        self._held[place] = now
        interface, ip = place
        log.warning("egress.rival_heard", ip=str(ip), interface=interface, mac=mac)
        self._rivals({ip: mac})


def _frames(
    asking: Round,
    questions: Sequence[Question],
    doors: Mapping[tuple[str, int], Door | None],
    known: Mapping[str, Interface],
) -> Iterator[Forms]:
    for each in questions:
        if door := doors[each.interface, each.ip.version]:
            yield door.port, speech.probe(each.ip, door.mac, known.get(each.interface))
    for interface, control in asking.controls:
        if door := doors[interface, control.version]:
            yield door.port, speech.request(control, door.mac, known.get(interface))


def _look_for_carrier(asking: Round, doors: Mapping[tuple[str, int], Door | None]) -> None:
    for (interface, _), door in doors.items():
        if door is None or not door.port.carrier:
            asking.dark(interface)


async def _send(frames: Sequence[Forms], form: int) -> None:
    for number, (port, forms) in enumerate(frames, 1):
        try:
            await port.send(forms[form])
        except OSError as error:  # As good as lost; the control will not answer either.
            log.debug("egress.ask_failed", interface=port.interface, errno=error.errno)
        if number % PIECE == 0:
            await asyncio.sleep(0)


async def _announce(binding: Binding, door: Door | None) -> None:
    if door is None:
        raise refusal("announce", errno.ENODEV, binding)
    try:
        for frame in speech.announcements(binding.ip, door.mac):
            await door.port.send(frame)
    except OSError as error:
        raise refusal_of("announce", error, binding) from error
