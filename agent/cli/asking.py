"""What every command needs: the way to the daemon, and one way to say what went wrong."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from agent.client import ClientError, call, rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.client import Answer

EXIT_FAILED = 1
EXIT_USAGE = 2

socket_option = click.option(
    "--socket", "socket_path", metavar="PATH", help="Admin socket of the daemon."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


def ask(
    socket_path: str | None, verb: str, *, timeout: float = 10.0, **arguments: object
) -> Answer:
    """A document from the daemon, or the end of the command."""
    try:
        return call(socket_path, verb, timeout=timeout, **arguments)
    except ClientError as error:
        fail(error.message, error.code)


def ask_rows(
    socket_path: str | None, verb: str, *, timeout: float = 10.0, **arguments: object
) -> list[Answer]:
    """A list of documents from the daemon, or the end of the command."""
    try:
        return rows(socket_path, verb, timeout=timeout, **arguments)
    except ClientError as error:
        fail(error.message, error.code)


def fail(message: str, code: int = EXIT_FAILED) -> NoReturn:
    """Say what, why and what to do, and end the command."""
    complain("error", [message])
    sys.exit(code)


def complain(kind: str, messages: Iterable[str]) -> None:
    """Lines on stderr that say who speaks; a message never breaks into two lines."""
    for message in messages:
        click.echo(f"wayout: {kind}: {' '.join(message.split())}", err=True)


def print_json(value: object) -> None:
    """For scripts and for people alike."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
