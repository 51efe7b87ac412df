"""The command `cleanup`: removes what a daemon that is gone has left in the kernel."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import click

from agent.cli.asking import EXIT_FAILED, complain, fail, json_option, print_json, socket_option
from agent.cli.config_words import alive, config_option
from agent.client import DEFAULT_SOCKET

if TYPE_CHECKING:
    from config.schema.settings import Settings


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--force", is_flag=True, help="Although the daemon runs.")
@config_option
@socket_option
@json_option
def cleanup(
    path: str, socket_path: str | None, *, dry_run: bool, force: bool, as_json: bool
) -> int:
    """Remove every address of ours from this host.

    Those that wear our mark, and those that the state file names; nothing else is touched. Not
    while the daemon runs, for it would put them back.
    """
    from agent.cleanup import CleanupError, clean

    settings = _settings(path)
    if not dry_run and not force:
        _require_no_daemon(socket_path, settings)
    folder = "/var/lib/wayout" if settings is None else settings.state.dir
    try:
        done = asyncio.run(clean(folder, dry_run=dry_run))
    except CleanupError as error:
        fail(str(error))
    rows = [{"ip": str(each.ip), "interface": each.interface} for each in done.removed]
    if as_json:
        failed = [
            {"ip": str(each.ip), "interface": each.interface, "reason": why}
            for each, why in done.failed.items()
        ]
        print_json({"dry_run": dry_run, "removed": rows, "failed": failed})
    else:
        verb = "would remove" if dry_run else "removed"
        for row in rows:
            click.echo(f"{verb} {row['ip']} from {row['interface']}")
        if not rows and not done.failed:
            click.echo("nothing of ours is here")
    complain(
        "error",
        [f"{each.ip} stays on {each.interface}, {why}" for each, why in done.failed.items()],
    )
    return EXIT_FAILED if done.failed else 0


def _settings(path: str) -> Settings | None:
    """The configuration if there is one that holds; its defaults do otherwise."""
    from config.load import load
    from config.problems import ConfigError

    try:
        return load(path).settings
    except ConfigError:
        if os.path.lexists(path):
            complain("warning", [f"{path} is not valid, the default folders are looked at"])
        return None


def _require_no_daemon(socket_path: str | None, settings: Settings | None) -> None:
    configured = DEFAULT_SOCKET if settings is None else settings.api.socket
    chosen = socket_path or os.environ.get("WAYOUT_SOCKET") or configured
    if alive(chosen):
        fail(
            f"the daemon runs, it answers at {chosen}, and would put back what is removed: stop "
            "it ('systemctl stop wayout'), or 'wayout drain', or add --force"
        )
