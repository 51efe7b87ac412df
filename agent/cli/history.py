"""The command `history`: every move, with its cause and its times."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import click

from agent.cli.asking import ask, ask_rows, complain, json_option, print_json, socket_option
from agent.cli.tables import Column, draw, show
from agent.client import ClientError, call

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.client import Answer

LIMIT_MAX = 100_000
FOLLOW_PATIENCE = 40.0
"""Seconds; the daemon answers a follower after 20, moves or not."""
AGAIN = 1.0
"""Seconds until a daemon that does not answer, because it restarts perhaps, is asked again."""


@click.command()
@click.option("--follow", is_flag=True, help="Wait for more, and show them as they come.")
@click.option(
    "--limit",
    type=click.IntRange(0, LIMIT_MAX),
    default=1000,
    show_default=True,
    metavar="N",
    help="Only the newest N.",
)
@socket_option
@json_option
def history(socket_path: str | None, limit: int, *, follow: bool, as_json: bool) -> None:
    """Show every move: cause, and milliseconds of each phase.

    With --follow, --json prints one move on a line.
    """
    if not follow:
        moves = ask_rows(socket_path, "history", limit=limit)
        print_json(moves) if as_json else show(draw(COLUMNS, moves))
        return
    try:
        _follow(socket_path, limit, as_json=as_json)
    except KeyboardInterrupt:
        # The way to end --follow is no failure.
        return


def _follow(socket_path: str | None, limit: int, *, as_json: bool) -> None:
    # The count comes first: what happens in between is shown twice rather than not at all.
    count = ask(socket_path, "history_after")["count"]
    moves = ask_rows(socket_path, "history", limit=limit)
    if not as_json:
        click.echo(HEADING)
    seen = [(move["at"], move["ip"]) for move in moves]
    _print(moves, as_json=as_json)
    while True:
        told = _next(socket_path, count)
        count = told["count"]
        news = [move for move in told["moves"] if (move["at"], move["ip"]) not in seen]
        seen = []
        _print(news, as_json=as_json)


def _next(socket_path: str | None, count: int) -> Answer:
    """What came since; a daemon that restarts is waited for, and counts anew."""
    complained = False
    while True:
        try:
            told = call(socket_path, "history_after", timeout=FOLLOW_PATIENCE, after=count)
        except ClientError as error:
            if not complained:
                complain("warning", [f"{error.message}; waiting for it"])
            complained = True
            time.sleep(AGAIN)
            continue
        if told["count"] >= count:
            return told
        count = told["count"]


def _print(moves: Iterable[Answer], *, as_json: bool) -> None:
    for move in moves:
        click.echo(json.dumps(move, ensure_ascii=False) if as_json else _line(move))
    sys.stdout.flush()


def _line(move: Answer) -> str:
    shown = [str(column.shows(move) or "-") for column in COLUMNS]
    return "  ".join(text.ljust(width) for text, width in zip(shown, WIDTHS, strict=True)).rstrip()


def milliseconds(seconds: float) -> str:
    """A phase; nothing for one that did not take place."""
    return f"{seconds * 1000:.0f}ms" if seconds else "-"


COLUMNS = (
    Column("AT", lambda row: row["at"]),
    Column("IP", lambda row: row["ip"]),
    Column("NAME", lambda row: row["name"]),
    Column("FROM", lambda row: row["from"]),
    Column("TO", lambda row: row["to"]),
    Column("CAUSE", lambda row: row["cause"]),
    Column("DETECT", lambda row: milliseconds(row["phases"]["detect_seconds"])),
    Column("ELECT", lambda row: milliseconds(row["phases"]["elect_seconds"])),
    Column("CHECK", lambda row: milliseconds(row["phases"]["check_seconds"])),
    Column("BIND", lambda row: milliseconds(row["phases"]["bind_seconds"])),
    Column("ANNOUNCE", lambda row: milliseconds(row["phases"]["announce_seconds"])),
    Column("TOTAL", lambda row: milliseconds(row["total_seconds"])),
)
WIDTHS = (24, 15, 12, 10, 10, 10, 7, 7, 7, 7, 8, 7)
HEADING = "  ".join(
    column.title.ljust(width) for column, width in zip(COLUMNS, WIDTHS, strict=True)
).rstrip()
