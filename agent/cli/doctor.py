"""The command `doctor`: what stands in the way on this host, and what to change."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import click

from agent.cli.asking import EXIT_FAILED, json_option, print_json, socket_option
from agent.cli.config_words import EXIT_DIFFERS, EXIT_OK, alive, config_option

if TYPE_CHECKING:
    from agent.client import Answer

COLORS = {"error": "red", "warning": "yellow", "note": "cyan", "ok": "green"}


@click.command()
@click.option("--all", "everything", is_flag=True, help="Show what is well, too.")
@config_option
@socket_option
@json_option
def doctor(path: str, socket_path: str | None, *, everything: bool, as_json: bool) -> int:
    """Look for what stands in the way on this host, and say what to change.

    Works without a daemon and changes nothing. Exit code 0 if all is well, 4 if there are
    warnings, 1 if there are errors.
    """
    from agent.doctor.examination import examine
    from agent.logs import configure

    # What the parts would log is among the findings.
    configure(level="error", shape="console", node="")
    running = alive(socket_path or os.environ.get("WAYOUT_SOCKET"))
    found = asyncio.run(examine(path, running=running))
    rows = [
        {"severity": each.severity.value, "what": each.what, "why": each.why, "fix": each.fix}
        for each in found
    ]
    if as_json:
        print_json(rows)
    else:
        _show([row for row in rows if everything or row["severity"] != "ok"], len(rows))
    severities = {row["severity"] for row in rows}
    if "error" in severities:
        return EXIT_FAILED
    return EXIT_DIFFERS if "warning" in severities else EXIT_OK


def _show(rows: list[Answer], looked: int) -> None:
    for row in rows:
        click.secho(f"{row['severity']:<8} ", fg=COLORS[row["severity"]], nl=False)
        click.echo(row["what"])
        click.echo(f"         why: {row['why']}")
        if row["fix"]:
            click.echo(f"         fix: {row['fix']}")
    counts = {name: sum(row["severity"] == name for row in rows) for name in COLORS}
    said = ", ".join(f"{counts[name]} {name}s" for name in ("error", "warning", "note"))
    click.echo(f"{looked} things looked at: {said}")
