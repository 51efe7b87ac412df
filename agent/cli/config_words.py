"""What the `config` commands share: where the file is, and how a verdict is told."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from agent.cli.asking import complain
from agent.client import ClientError, call

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from config.parse import Loaded

EXIT_OK = 0
EXIT_INVALID = 2
EXIT_PENDING = 3
EXIT_DIFFERS = 4
EXIT_ROLLED_BACK = 5

DEFAULT_PATH = "/etc/wayout/config.yaml"
_CODES = {"rejected": EXIT_INVALID, "rolled_back": EXIT_ROLLED_BACK}

config_option = click.option(
    "--config", "path", default=DEFAULT_PATH, show_default=True, help="Main configuration file."
)


def load_or_exit(path: str) -> Loaded:
    """The configuration, or all its problems on stderr and exit code 2."""
    from config.load import load
    from config.problems import ConfigError, lines

    try:
        return load(path)
    except ConfigError as error:
        complain("error", lines(error.problems))
        sys.exit(EXIT_INVALID)


def alive(socket_path: str | None) -> bool:
    """Whether a daemon answers at the socket."""
    try:
        call(socket_path, "version")
    except ClientError:
        return False
    return True


def tell(rows: Iterable[str]) -> None:
    """Lines on standard output."""
    for each in rows:
        click.echo(each)


def code_of(answer: Mapping[str, Any]) -> int:
    """The exit code that an answer about a reload means."""
    found = _CODES.get(str(answer.get("result")))
    if found is not None:
        return found
    return EXIT_PENDING if answer.get("pending_restart") else EXIT_OK


def change_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One line for each change: what, from what, to what, what it takes, and who acts on it."""
    from config.render import flow

    for each in rows:
        signs = {"added": "+", "removed": "-"}
        sign = signs.get(str(each["kind"]), "~")
        sides = [flow(each[side]) for side in ("old", "new")]
        shown = {"+": sides[1], "-": sides[0]}.get(sign, f"{sides[0]} -> {sides[1]}")
        acting = ", ".join(map(str, each.get("subscribers") or ()))
        takes = f"{each['class']}: {acting}" if acting else each["class"]
        yield f"{sign} {each['path']}: {shown} ({takes})"


def pending_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """One line for each change that waits for a restart."""
    for each in answer.get("pending_restart", []):
        yield (
            f"restart pending: {each['path']} is {each['running']}, will be {each['configured']}"
            f" ({each['reason']})"
        )
