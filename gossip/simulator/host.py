"""One simulated host: a machine, what befalls it, and what it told."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from gossip.events import HealthChanged

if TYPE_CHECKING:
    from collections.abc import Callable

    from gossip.events import Event
    from gossip.machine import Machine
    from gossip.peer import Address


@dataclass(slots=True, eq=False)
class Host:
    """`events` are pairs of time and event.

    `side` is the part of the network it is in, `loss` what its own link adds for datagrams to and
    from it, `cost` the seconds of CPU that each input takes it, `view` a digest of whom it holds
    for a member.
    """

    name: str
    machine: Machine
    address: Address
    side: int = 0
    loss: float = 0.0
    cost: float = 0.0
    busy: float = 0.0
    paused: bool = False
    process: bool = True
    power: bool = True
    died: float = math.inf
    inbox: list[Callable[[], None]] = field(default_factory=list)
    events: list[tuple[float, Event]] = field(default_factory=list)
    sent: int = 0
    sent_bytes: int = 0
    stream_bytes: int = 0
    wake: float = math.inf
    view: int = 0

    def __post_init__(self) -> None:
        self.view = mark(self.name)

    @property
    def running(self) -> bool:
        """Whether it does anything at all."""
        return self.power and self.process

    def told(self, event: Event, now: float) -> None:
        """The machine told something."""
        self.events.append((now, event))
        if isinstance(event, HealthChanged) and event.member.name != self.name:
            before = event.was is not None and event.was.present
            if before != event.member.health.present:
                self.view ^= mark(event.member.name)


@lru_cache(maxsize=1 << 14)
def mark(name: str) -> int:
    """Stands for a name in a view, in every process alike."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")
