"""Moves told in the words of the contract: cause, and seconds of each phase.

An entry of history is one line of JSON, on disk as in memory.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent.status import stamp
from egress.model import Cause

if TYPE_CHECKING:
    from agent.desk import Document
    from egress.decision import Move

PHASES = ("detect", "elect", "check", "bind", "announce")
"""In the order in which they come."""
LINE_MAX = 2048
"""Bytes of one entry: names have at most 253 letters."""

_TEXTS = {"at": False, "ip": False, "name": False, "from": True, "to": True}
"""Which fields are texts, and whether they may be null."""


def phases(move: Move) -> dict[str, float]:
    """Seconds of each phase; one that did not take place, or was over before, took none.

    detect: until the loss, or the release, was known; elect: until this node knew that it is to
    take over; check: until the LAN had been silent; bind: until the kernel had the address;
    announce: until the first announcement was out.
    """
    marks = (move.detected, move.elected, move.checked, move.bound, move.announced)
    at = next((each for each in (move.lost, *marks) if each is not None), 0.0)
    found: dict[str, float] = {}
    for name, mark in zip(PHASES, marks, strict=True):
        found[name] = 0.0 if mark is None else max(mark - at, 0.0)
        at += found[name]
    return found


def entry(move: Move, now: float, wall: float) -> Document:
    """A move as `history --json` shows it; `wall` is the Unix time of `now`."""
    took = {name: round(seconds, 6) for name, seconds in phases(move).items()}
    ended = move.announced if move.announced is not None else move.bound
    return {
        "at": stamp(wall - max(now - ended, 0.0)),
        "ip": str(move.ip),
        "name": move.name,
        "from": move.origin,
        "to": move.to,
        "cause": move.cause.value,
        "phases": {f"{name}_seconds": seconds for name, seconds in took.items()},
        "total_seconds": round(sum(took.values()), 6),
    }


def fields(move: Move) -> dict[str, object]:
    """A move as the fields of one log line."""
    took = phases(move)
    told: dict[str, object] = {
        "ip": str(move.ip),
        "egress": move.name,
        "was": move.origin,
        "now": move.to,
        "cause": move.cause.value,
    }
    for name, seconds in took.items():
        told[f"{name}_seconds"] = round(seconds, 4)
    return told


def line(told: Document) -> bytes:
    """An entry as it is kept."""
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode()


def read(raw: bytes) -> Document:
    """Back from a line; ValueError if it is no entry of ours."""
    if len(raw) > LINE_MAX:
        raise ValueError("too long")
    try:
        told = json.loads(raw)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(told, dict) or told.get("cause") not in set(Cause):
        raise ValueError("no move")
    for name, nullable in _TEXTS.items():
        value = told.get(name)
        if not isinstance(value, str) and not (nullable and value is None):
            raise ValueError(f"{name} is no text")
    if not isinstance(told.get("phases"), dict) or not _seconds(told.get("total_seconds")):
        raise ValueError("no times")
    names = [f"{name}_seconds" for name in PHASES]
    if list(told["phases"]) != names or not all(map(_seconds, told["phases"].values())):
        raise ValueError("no phases")
    return told


def failover(told: Document) -> bool:
    """Whether an address changed hands, rather than found its first owner."""
    return told["from"] is not None and told["to"] is not None


def _seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
