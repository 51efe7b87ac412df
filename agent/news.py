"""Finished moves as members tell each other, so that every node can tell the history.

Who ended a move tells it, once; of a great many at one moment only the first are told, for news
must not stand in the way of claims.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING, TypeGuard

from agent.history import PHASES
from egress.model import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agent.desk import Document
    from gossip.events import Plain

ROWS_MAX = 32
"""Moves in one message."""
TOLD_MAX = 256
WINDOW = 10.0
"""No more than so many moves are told within so many seconds."""
NAME_MAX = 253
SECONDS_MAX = 86_400.0
ROW_BYTES = 110
"""The most that a row takes beside its names."""

_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_CAUSES = frozenset(Cause)


class Allowance:
    """How many moves may still be told."""

    def __init__(self) -> None:
        self._since = float("-inf")
        self._told = 0

    def take(self, entries: Sequence[Document], now: float) -> Sequence[Document]:
        """As many of these as there is room for."""
        if now - self._since >= WINDOW:
            self._since, self._told = now, 0
        granted = entries[: TOLD_MAX - self._told]
        self._told += len(granted)
        return granted


def pages(entries: Iterable[Document], size: int) -> Iterator[list[Plain]]:
    """Plain data of entries, in messages whose rows take at most `size` bytes (one row may)."""
    page: list[Plain] = []
    used = 0
    for each in entries:
        names = [str(each[key] or "") for key in ("name", "from", "to")]
        cost = ROW_BYTES + sum(len(name.encode()) for name in names)
        if page and (used + cost > size or len(page) == ROWS_MAX):
            yield page
            page, used = [], 0
        page.append(_row(each))
        used += cost
    if page:
        yield page


def read(value: object, sender: str) -> tuple[Document, ...]:
    """Entries from gossip; ValueError says what is wrong. Each tells only what ended with it."""
    if not isinstance(value, list) or len(value) > ROWS_MAX:
        raise ValueError("moves are not a short list")
    return tuple(_entry(row, sender) for row in value)


def _row(each: Document) -> list[Plain]:
    took = each["phases"]
    assert isinstance(took, dict)
    seconds = [float(str(took[f"{name}_seconds"])) for name in PHASES]
    texts = [None if each[key] is None else str(each[key]) for key in ("name", "from", "to")]
    return [
        ip_address(str(each["ip"])).packed,
        str(each["at"]),
        *texts,
        str(each["cause"]),
        *seconds,
    ]


def _entry(row: object, sender: str) -> Document:
    match row:
        case [bytes(packed), str(at), str(name), origin, to, str(cause), *seconds]:
            pass
        case _:
            raise ValueError("a move is not a list of its fields")
    if len(packed) not in {4, 16} or not _AT.fullmatch(at) or cause not in _CAUSES:
        raise ValueError("a move with an impossible address, time or cause")
    if not (_named(name) and _named(origin) and _named(to)) or sender != (to or origin):
        raise ValueError("a move of others, or with an impossible name")
    times = [float(each) for each in seconds if _short(each)]
    if len(seconds) != len(PHASES) or len(times) != len(PHASES):
        raise ValueError("a move with impossible times")
    took = dict(zip(PHASES, times, strict=True))
    return {
        "at": at,
        "ip": str(ip_address(packed)),
        "name": name,
        "from": origin,
        "to": to,
        "cause": cause,
        "phases": {f"{phase}_seconds": round(each, 6) for phase, each in took.items()},
        "total_seconds": round(sum(times), 6),
    }


def _named(value: object) -> TypeGuard[str | None]:
    if value is None:
        return True
    return isinstance(value, str) and 0 < len(value) <= NAME_MAX and value.isprintable()


def _short(value: object) -> TypeGuard[int | float]:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0.0 <= value <= SECONDS_MAX
