"""Conditions of addresses as members tell each other, so that every node shows the same.

Only the member that was elected for an address knows why it does not carry it; the others take
its word.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from egress.decision import Condition
    from egress.model import IP
    from gossip.events import Plain

NOTICES_MAX = 24
"""Notices of one member: they fit into one datagram, and a hundred conflicts have one cause."""
TEXT_MAX = 32
FIELDS = 4


@dataclass(frozen=True, slots=True)
class Notice:
    """What is wrong with `ip` at the member that says so; texts are short words."""

    ip: IP
    kind: str
    mac: str
    detail: str

    @property
    def text(self) -> str:
        """In one line: the kind, who answers, and what it is about."""
        who = f"{self.mac} answers" if self.mac else ""
        return ": ".join(part for part in (self.kind, who, self.detail) if part)


def of(conditions: Mapping[IP, Condition]) -> tuple[Notice, ...]:
    """Our own conditions as notices, in the order of the addresses."""
    found = [
        Notice(ip, each.kind.value, each.mac or "", each.detail) for ip, each in conditions.items()
    ]
    found.sort(key=lambda notice: (notice.ip.version, int(notice.ip)))
    return tuple(found[:NOTICES_MAX])


def to_plain(notices: Sequence[Notice]) -> list[Plain]:
    """For gossip."""
    return [[each.ip.packed, each.kind, each.mac, each.detail[:TEXT_MAX]] for each in notices]


def read(value: object) -> tuple[Notice, ...]:
    """From gossip; ValueError says what is wrong with it."""
    if not isinstance(value, list) or len(value) > NOTICES_MAX:
        raise ValueError("notices are not a short list")
    return tuple(map(_notice, value))


def _notice(row: object) -> Notice:
    if not isinstance(row, list) or len(row) != FIELDS:
        raise ValueError("a notice is not a list of its fields")
    packed, *texts = row
    if not isinstance(packed, bytes) or len(packed) not in {4, 16}:
        raise ValueError("a notice without an address")
    for text in texts:
        if not isinstance(text, str) or len(text) > TEXT_MAX or not text.isprintable():
            raise ValueError("a notice with an impossible text")
    kind, mac, detail = texts
    return Notice(ip_address(packed), kind, mac, detail)
