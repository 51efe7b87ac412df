"""Watching the hosts of members that restart: their daemons say nothing, their kernels answer.

A host that falls silent on the LAN died while its daemon was being replaced; nobody in gossip
misses it, because it asked for patience.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from egress.wirecheck import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from egress.model import IP
    from egress.wirecheck import Verdict

WATCHED = 8
"""Addresses of one host that are asked about; all fall silent together when it dies."""
SILENCES = 2
"""So many times in a row nobody must answer."""


class Vigil:
    """`mute`: restarting members whose hosts nobody hears any more."""

    def __init__(self) -> None:
        self._silences: dict[str, dict[IP, int]] = {}
        self.mute: frozenset[str] = frozenset()

    def admits(self, name: str, ip: IP) -> bool:
        """Whether this address is one of those that tell about the host of `name`."""
        watched = self._silences.setdefault(name, {})
        if ip not in watched and len(watched) < WATCHED:
            watched[ip] = 0
        return ip in watched

    def hear(self, name: str, ip: IP, verdict: Verdict) -> None:
        """An answer about an address that `name` carries."""
        watched = self._silences.get(name)
        if watched is None or ip not in watched:
            return
        if verdict.answer is Answer.SILENT:
            watched[ip] += 1
            if all(count >= SILENCES for count in watched.values()):
                self.mute |= {name}
        elif verdict.answer in {Answer.HOST, Answer.MEMBER} and verdict.who == name:
            watched[ip] = 0
            self.mute -= {name}

    def dismiss(self, name: str, ip: IP) -> None:
        """The address is not ours to watch any more."""
        if name not in self.mute:
            self._silences.get(name, {}).pop(ip, None)

    def keep(self, names: Iterable[str]) -> None:
        """Forget all members but these, which still restart or are still missing."""
        kept = set(names)
        for name in self._silences.keys() - kept:
            del self._silences[name]
        self.mute &= kept
