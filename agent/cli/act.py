"""The commands that change where addresses are: `drain`, `undrain` and `restart-prepare`."""

from __future__ import annotations

import click

from agent.cli.asking import ask, complain, json_option, print_json, socket_option
from agent.cli.tables import span

WAIT_PATIENCE = 75.0
"""Seconds; the daemon gives up before and says what is left."""


class Duration(click.ParamType[float]):
    """A length of time as the configuration writes it: 500ms, 30s, 30m, 2h."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Seconds."""
        from pydantic_core import PydanticCustomError

        from config.types import seconds

        try:
            return seconds(str(value))
        except PydanticCustomError as error:
            self.fail(error.message(), param, ctx)


@click.command()
@click.option("--for", "seconds", type=Duration(), metavar="TIME", help="Undrain after it: 30m.")
@click.option("--wait", is_flag=True, help="Return when everything is handed over.")
@socket_option
@json_option
def drain(socket_path: str | None, seconds: float | None, *, wait: bool, as_json: bool) -> None:
    """Hand every address over to other nodes and stay a member."""
    patience = WAIT_PATIENCE if wait else 10.0
    told = ask(socket_path, "drain", timeout=patience, wait=wait, seconds=seconds)
    if as_json:
        print_json(told)
        return
    until = "until 'wayout undrain'" if seconds is None else f"for {span(seconds)}"
    left = len(told.get("carried", ()))
    state = f"draining, {left} IPs are still here" if left else "drained, nothing is carried here"
    click.echo(f"{state}, {until}")
    if orphaned := told.get("orphaned"):
        complain("warning", [f"{len(orphaned)} IPs have no owner now: {', '.join(orphaned[:10])}"])


@click.command()
@socket_option
@json_option
def undrain(socket_path: str | None, *, as_json: bool) -> None:
    """Carry addresses again."""
    told = ask(socket_path, "undrain")
    if as_json:
        print_json(told)
    else:
        click.echo("may carry addresses again")


@click.command("restart-prepare")
@click.option(
    "--for",
    "seconds",
    type=Duration(),
    default="30s",
    show_default=True,
    metavar="TIME",
    help="How soon the stop will come; 0s takes it back.",
)
@socket_option
@json_option
def restart_prepare(socket_path: str | None, seconds: float, *, as_json: bool) -> None:
    """Make a SIGTERM within that time a restart: the addresses stay for the successor.

    For the preStop of a container, whose runtime knows no other signal.
    """
    told = ask(socket_path, "restart_prepare", seconds=seconds)
    if as_json:
        print_json(told)
    elif seconds:
        kept = span(told["kept_seconds"])
        click.echo(f"a stop within {span(seconds)} keeps the addresses, for {kept} from then on")
    else:
        click.echo("a stop hands the addresses over")
