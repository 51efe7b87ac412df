"""What other members run: `config drift`, `config show --peer`, `config diff --peer`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from agent.cli.asking import ask, json_option, print_json, socket_option
from agent.cli.config_words import EXIT_DIFFERS, EXIT_OK, change_lines, tell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.leaves import Leaves

PATIENCE = 20.0
"""Seconds; the daemon itself waits for fifteen."""


@click.command()
@socket_option
@json_option
def drift(socket_path: str | None, *, as_json: bool) -> None:
    """Tell which members run which configuration; exit code 4 if they differ for too long.

    Members that changed less than config.drift_grace ago are converging, which is no drift.
    """
    answer = ask(socket_path, "config_drift")
    if as_json:
        print_json(answer)
    else:
        _draw(answer)
    sys.exit(EXIT_DIFFERS if answer["drift"] else EXIT_OK)


def _draw(answer: Mapping[str, Any]) -> None:
    from agent.cli.tables import Column, draw, show, span

    rows = [row for group in answer["groups"] for row in group["members"]]
    columns = [
        Column("DIGEST", lambda row: row["digest"]),
        Column("MEMBER", lambda row: row["name"] + (" (here)" if row["local"] else "")),
        Column("AGREEMENT", lambda row: row["agreement"]),
        Column("STATE", lambda row: row["state"]),
        Column("GENERATION", lambda row: row["generation"]),
        Column("SINCE", lambda row: span(row["age_seconds"])),
        Column("VERSION", lambda row: row["version"]),
    ]
    show(draw(columns, rows))
    sizes = [f"{group['count']} run {group['digest']}" for group in answer["groups"]]
    word = "drift" if answer["drift"] else "converging" if answer["converging"] else "agreement"
    click.echo(f"{word}: {', '.join(sizes)}")


def show_peer(socket_path: str | None, peer: str, *, as_json: bool) -> None:
    """Print what a peer runs."""
    from config.render import text_of

    answer = ask(socket_path, "config_peer", timeout=PATIENCE, name=peer)
    if as_json:
        print_json(answer["settings"])
    else:
        click.echo(text_of(answer["settings"]), nl=False)


def diff_with_peer(socket_path: str | None, peer: str, *, as_json: bool) -> int:
    """Print what differs between here and the peer; 4 if any of it must agree."""
    from config import changes

    here = _known(ask(socket_path, "config_show", which="running")["settings"])
    there = _known(ask(socket_path, "config_peer", timeout=PATIENCE, name=peer)["settings"])
    rows = [each.to_plain() for each in changes.notable(changes.diff(here, there))]
    if as_json:
        print_json(rows)
    else:
        tell(change_lines([{**each, "class": each["scope"]} for each in rows]))
    return EXIT_DIFFERS if any(each["scope"] == "cluster" for each in rows) else EXIT_OK


def _known(settings: Mapping[str, Any]) -> Leaves:
    """The options that this version has; a peer may be newer."""
    from config.leaves import flat
    from config.schema.table import entry_of

    return {path: value for path, value in flat(settings).items() if entry_of(path) is not None}
