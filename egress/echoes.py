"""Which events of the kernel are echoes of what we asked for ourselves.

Every renewal comes back as an event (K50), so an owner of a thousand addresses would wake itself
all day. Three things tell: IPv4 events name the socket that asked; a new address that wears our
mark is our work (a foreign `replace` strips it, K56); and a deletion, which for IPv6 says neither,
is ours once for each deletion we sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from egress.model import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from egress.rtnetlink import Address

Key = tuple[bytes, int]
"""Packed address and index of its link."""

MEMORY = 5.0
"""Seconds after which an echo that has not come will not come any more."""
_BYTES_OF_IPV6 = 16
EXPECTED_MAX = 65536
"""Echoes waited for at a time; beyond that the oldest count as foreign, which costs a dump."""


class Echoes:
    """What we sent and have not heard yet."""

    def __init__(self, pid: int, *, marks: bool) -> None:
        self._pid = pid
        self._marks = marks
        self._expected: dict[tuple[bool, Key], float] = {}

    def expect(self, keys: Iterable[Key], *, gone: bool, now: float) -> None:
        """We are about to send this: additions or (with `gone`) deletions."""
        if not gone and self._marks:
            return
        for key in keys:
            if len(key[0]) == _BYTES_OF_IPV6:
                self._expected.pop((gone, key), None)
                self._expected[gone, key] = now + MEMORY
        while len(self._expected) > EXPECTED_MAX:
            del self._expected[next(iter(self._expected))]

    def retract(self, key: Key, *, gone: bool) -> None:
        """The kernel refused it, so no echo will come."""
        self._expected.pop((gone, key), None)

    def recognises(self, event: Address, now: float) -> bool:
        """Whether this is our own doing; a deletion is recognised once for each that was sent."""
        if event.pid:
            return event.pid == self._pid
        if not event.gone and self._marks:
            return event.mark == PROTOCOL and event.usable
        expected = (event.gone, (event.packed, event.index))
        return self._expected.pop(expected, now) > now
