"""The commands `wayout config …`: check, show, compare, explain and reload the configuration."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from agent.cli.act import Duration
from agent.cli.asking import ask, complain, json_option, print_json, socket_option
from agent.cli.config_migrate import migrate
from agent.cli.config_offline import check, explain, init, schema
from agent.cli.config_peer import diff_with_peer, drift, show_peer
from agent.cli.config_words import (
    EXIT_DIFFERS,
    EXIT_OK,
    EXIT_PENDING,
    alive,
    change_lines,
    code_of,
    config_option,
    load_or_exit,
    pending_lines,
    tell,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from config.leaves import Leaves


@click.group()
def config() -> None:
    """Check, show, compare, explain and reload the configuration."""


for _command in (check, drift, explain, init, migrate, schema):
    config.add_command(_command)


@config.command()
@socket_option
@config_option
@click.option("--running", "which", flag_value="running", default=True, help="What runs (default).")
@click.option("--configured", "which", flag_value="configured", help="What the files say.")
@click.option("--origin", is_flag=True, help="Tell where each value comes from.")
@click.option("--changed-only", is_flag=True, help="Leave out defaults.")
@click.option("--peer", metavar="NODE", help="What another member runs, asked through this one.")
@click.option("--derived", is_flag=True, help="What auto and formulas come to now, and from what.")
@click.option("--format", "form", type=click.Choice(["yaml", "json"]), default="yaml")
@json_option
def show(  # noqa: PLR0913 - one argument for each option
    socket_path: str | None,
    path: str,
    which: str,
    peer: str | None,
    form: str,
    *,
    origin: bool,
    changed_only: bool,
    derived: bool,
    as_json: bool,
) -> None:
    """Print the effective configuration; the YAML is valid input again."""
    if peer is not None:
        if which != "running" or origin or changed_only:
            raise click.UsageError("--peer shows all that the peer runs, without other options")
        show_peer(socket_path, peer, as_json=as_json or form == "json")
        return
    if derived:
        _show_derived(socket_path, as_json=as_json or form == "json")
        return
    if which == "configured" and not alive(socket_path):
        from config.render import document, text

        loaded = load_or_exit(path)
        settings, origins = loaded.settings, loaded.provenance if origin else None
        shown: Mapping[str, Any] = {
            "settings": document(settings, changed_only=changed_only),
            "yaml": text(settings, origins=origins, changed_only=changed_only),
        }
    else:
        shown = ask(
            socket_path, "config_show", which=which, origin=origin, changed_only=changed_only
        )
    if as_json or form == "json":
        print_json(shown["settings"])
    else:
        click.echo(shown["yaml"], nl=False)


@config.command()
@socket_option
@config_option
@click.option("--file", "other", metavar="FILE", help="Compare with this file instead.")
@click.option("--defaults", is_flag=True, help="Compare with the built-in defaults.")
@click.option(
    "--peer",
    metavar="NODE",
    help="Compare with what another member runs; only what must agree counts.",
)
@json_option
def diff(
    socket_path: str | None,
    path: str,
    other: str | None,
    peer: str | None,
    *,
    defaults: bool,
    as_json: bool,
) -> None:
    """Compare what runs with what is configured; exit code 4 if they differ.

    Without a daemon, the configured settings stand for those that run.
    """
    from config import changes
    from config.leaves import flat, leaves_of

    if sum((defaults, other is not None, peer is not None)) > 1:
        raise click.UsageError("--file, --peer and --defaults exclude each other")
    if peer is not None:
        sys.exit(diff_with_peer(socket_path, peer, as_json=as_json))
    running = _running(socket_path, path)
    if defaults:
        from config.schema.settings import VERSION, Settings

        rows = changes.diff(leaves_of(Settings(version=VERSION)), running)
    elif other is not None:
        rows = changes.diff(running, leaves_of(load_or_exit(other).settings))
    else:
        answer = ask(socket_path, "config_show", which="configured", origin=False)
        rows = changes.diff(running, flat(answer["settings"]))
    told = [each.to_plain() for each in changes.notable(rows)]
    print_json(told) if as_json else tell(change_lines(told))
    sys.exit(EXIT_DIFFERS if told else EXIT_OK)


def _show_derived(socket_path: str | None, *, as_json: bool) -> None:
    told = ask(socket_path, "config_show")["derived"]
    if as_json:
        print_json(told)
        return
    from agent.cli.tables import Column, draw, show

    columns = (
        Column("NAME", lambda row: row["name"]),
        Column("VALUE", lambda row: row["value"]),
        Column("FROM", lambda row: row["from"]),
    )
    show(draw(columns, told))


def _running(socket_path: str | None, path: str) -> Leaves:
    from config.leaves import flat, leaves_of

    if alive(socket_path):
        return flat(ask(socket_path, "config_show", which="running")["settings"])
    return leaves_of(load_or_exit(path).settings)


@config.command()
@socket_option
@click.option("--wait/--no-wait", default=True, help="Wait for the verdict (default).")
@click.option("--dry-run", is_flag=True, help="Tell what would change, and change nothing.")
@click.option("--allow-removal", is_flag=True, help="Let the removal guard pass.")
@click.option("--pending-ok", is_flag=True, help="Exit 0 although a restart is pending.")
@click.option(
    "--timeout",
    type=Duration(),
    default="30s",
    show_default=True,
    metavar="TIME",
    help="How long to wait.",
)
@json_option
def reload(  # noqa: PLR0913 - one argument for each option
    socket_path: str | None,
    timeout: float,
    *,
    wait: bool,
    dry_run: bool,
    allow_removal: bool,
    pending_ok: bool,
    as_json: bool,
) -> None:
    """Make the daemon read its configuration again, and tell what came of it."""
    answer = ask(
        socket_path,
        "reload",
        timeout=timeout + 1,
        seconds=timeout,
        wait=wait,
        dry_run=dry_run,
        allow_removal=allow_removal,
    )
    if as_json:
        print_json(answer)
    else:
        tell(_verdict_lines(answer))
        complain("error", answer.get("errors", []))
        complain("warning", answer.get("warnings", []))
    code = code_of(answer)
    sys.exit(EXIT_OK if pending_ok and code == EXIT_PENDING else code)


@config.command()
@socket_option
@click.option("--last-error", is_flag=True, help="Print the last refusal alone, if there was one.")
@json_option
def status(socket_path: str | None, *, last_error: bool, as_json: bool) -> None:
    """Tell which configuration runs, and whether anything waits or failed."""
    answer = ask(socket_path, "config_status")
    last = answer.get("last_reload") or {}
    errors = last.get("errors", [])
    if as_json:
        print_json(answer)
    elif last_error:
        tell(_refusal_lines(answer.get("last_error")))
    else:
        tell(_status_lines(answer, last))
        complain("error", errors)
    sys.exit(code_of({**answer, "result": last.get("result")}))


def _verdict_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    trial = "would be " if answer.get("dry_run") else ""
    yield f"{trial}{answer.get('result')}, generation {answer.get('generation')}"
    yield from change_lines(answer.get("changes", []))
    yield from pending_lines(answer)


def _refusal_lines(failed: Mapping[str, Any] | None) -> Iterator[str]:
    """The last refusal, also after a later success."""
    if failed is None:
        return
    yield f"{failed.get('result')} at {failed.get('at')} by {failed.get('trigger')}"
    yield from failed.get("errors", [])


def _status_lines(answer: Mapping[str, Any], last: Mapping[str, Any]) -> Iterator[str]:
    yield f"file         {answer.get('path')}"
    yield f"generation   {answer.get('generation')}"
    yield f"digest       {answer.get('digest')} (node {answer.get('node_digest')})"
    yield f"last reload  {last.get('result')} at {last.get('at')} by {last.get('trigger')}"
    if "watch" in answer:
        auto = "taken by themselves" if answer.get("auto_reload") else "taken on request"
        yield f"files        {auto}, watched by {answer['watch']}"
    for path, said in (answer.get("secrets") or {}).items():
        yield f"secret       {path}: {said}"
    if answer.get("inconsistent"):
        yield "inconsistent a roll-back failed, only a restart makes things certain again"
    if answer.get("stale"):
        yield "stale        the last attempt was refused, older settings run"
    if answer.get("file_differs"):
        yield "differs      the files were edited since, 'wayout config reload' takes them"
    yield from pending_lines(answer)
