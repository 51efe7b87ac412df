"""Moves told in the words of the contract: cause, and milliseconds of each phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from egress.decision import Move


def phases(move: Move) -> dict[str, float]:
    """Seconds of each phase that took place, by the names of `history`."""
    marks = [
        ("elect", move.detected, move.elected),
        ("check", move.elected, move.checked),
        ("bind", move.checked if move.checked is not None else move.elected, move.bound),
        ("announce", move.bound, move.announced),
    ]
    return {
        name: max(end - start, 0.0)
        for name, start, end in marks
        if start is not None and end is not None
    }


def fields(move: Move) -> dict[str, object]:
    """A move as the fields of one log line."""
    told: dict[str, object] = {
        "ip": str(move.ip),
        "egress": move.name,
        "was": move.origin,
        "now": move.to,
        "cause": move.cause,
    }
    for name, seconds in phases(move).items():
        told[f"{name}_seconds"] = round(seconds, 4)
    return told
