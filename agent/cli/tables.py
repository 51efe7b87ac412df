"""Tables for people: rich draws them; nothing here is for scripts."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.console import Console
    from rich.table import Table

    from agent.client import Answer

WATCH_EVERY = 1.0
PIPE_WIDTH = 10_000
"""Nobody wraps lines in a pipe; what reads them wants one row on one line."""

COLORS = {
    "alive": "green",
    "assigned": "green",
    "ready": "green",
    "suspect": "yellow",
    "moving": "yellow",
    "draining": "yellow",
    "dead": "red",
    "unassigned": "red",
    "conflict": "bold red",
    "left": "dim",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, and what a row shows there; texts that may be long are folded on a terminal."""

    title: str
    shows: Callable[[Answer], object]
    folds: bool = False


def draw(columns: Sequence[Column], rows: Iterable[Answer]) -> Table:
    """A table; values that have a colour wear it."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        folds = column.folds and sys.stdout.isatty()
        table.add_column(column.title, no_wrap=not folds, overflow="fold")
    for row in rows:
        texts = [word(column.shows(row)) for column in columns]
        # Text and not markup: names and reasons come from other machines.
        table.add_row(*[Text(text, COLORS.get(text.partition(":")[0], "")) for text in texts])
    return table


def show(*tables: Table) -> None:
    """Print on standard output."""
    console = _console()
    for table in tables:
        console.print(table)


def watch(look: Callable[[], Table]) -> None:
    """Draw again and again until interrupted."""
    from rich.live import Live

    with Live(look(), console=_console(), auto_refresh=False) as live:
        while True:
            time.sleep(WATCH_EVERY)
            live.update(look(), refresh=True)


def word(value: object) -> str:
    """A value of a document as a cell."""
    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}"
        case list():
            return ", ".join(word(each) for each in value) or "-"
        case dict():
            return ", ".join(f"{key}={word(each)}" for key, each in value.items()) or "-"
        case _:
            return str(value)


def age(stamp: object) -> str:
    """How long ago an RFC 3339 time is, in its two largest units."""
    if not isinstance(stamp, str):
        return "-"
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    return span((datetime.now(UTC) - moment).total_seconds())


def span(seconds: float) -> str:
    """A length of time in its two largest units: `2d4h`, `3m12s`, `0.4s`."""
    if seconds < 10:  # noqa: PLR2004 - tenths matter only for what has just happened
        return f"{max(seconds, 0.0):.1f}s"
    units = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
    left = int(seconds)
    parts: list[str] = []
    for name, size in units:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count}{name}")
    return "".join(part for part in parts[:2] if not part.startswith("0"))


def _console() -> Console:
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(width=width, highlight=False, soft_wrap=False)
