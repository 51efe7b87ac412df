"""Announcements that are said again: paced for each link, and dropped when no longer true."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from egress.model import Binding

RATE = 200.0
"""Packets a second on one link."""
PACKETS = {4: 2, 6: 1}
"""Packets that announce one address once: ARP in its two forms, or one advertisement."""
BURST = 20.0
"""Packets at once: a tenth of a second, so that pacing costs ten wake-ups a second."""


class Repeats:
    """Queues by link. An address that waits already is not queued again."""

    def __init__(self) -> None:
        self._queues: dict[str, dict[Binding, None]] = {}
        self._credit: dict[str, float] = {}
        self._filled_at = 0.0

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add(self, bindings: Iterable[Binding]) -> None:
        """Say these again when it is their turn."""
        for binding in bindings:
            self._queues.setdefault(binding.interface, {})[binding] = None

    def drop(self, bindings: Iterable[Binding]) -> None:
        """These are no longer here."""
        for binding in bindings:
            queue = self._queues.get(binding.interface, {})
            queue.pop(binding, None)
            if not queue:
                self._queues.pop(binding.interface, None)

    def take(self, now: float) -> list[Binding]:
        """Those whose turn it is."""
        gained, self._filled_at = (now - self._filled_at) * RATE, now
        for link, credit in self._credit.items():
            self._credit[link] = min(BURST, credit + gained)
        due: list[Binding] = []
        for link, queue in list(self._queues.items()):
            credit = self._credit.get(link, BURST)
            for binding in list(queue):
                cost = PACKETS[binding.ip.version]
                if credit < cost:
                    break
                credit -= cost
                del queue[binding]
                due.append(binding)
            self._credit[link] = credit
            if not queue:
                del self._queues[link]
        return due
