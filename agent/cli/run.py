"""`wayout run`: the daemon, in the foreground."""

from __future__ import annotations

import os
from pathlib import Path

import click

from agent.cli.asking import EXIT_FAILED, complain

DEFAULT_CONFIG = "/etc/wayout/config.yaml"
EXIT_CONFIG = 78
"""EX_CONFIG of sysexits.h; the service manager does not try again after it."""


@click.command()
@click.option(
    "--config",
    "path",
    metavar="PATH",
    default=DEFAULT_CONFIG,
    show_default=True,
    help="Main configuration file.",
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set an option over what the files say, such as logging.level=debug; repeatable.",
)
@click.option("--log-format", type=click.Choice(["json", "console"]), help="How log lines look.")
def run(path: str, overrides: tuple[str, ...], log_format: str | None) -> int:
    """Run the daemon in the foreground.

    TERM hands every address over and leaves; USR2 keeps them for a successor; HUP reloads.
    An invalid configuration ends it with exit code 78.
    """
    from config.load import load
    from config.problems import ConfigError, lines

    if log_format is not None:
        overrides = (*overrides, f"logging.format={log_format}")
    try:
        loaded = load(path, overrides=overrides)
    except ConfigError as error:
        complain("error", lines(error.problems))
        return EXIT_CONFIG
    complain("warning", lines(loaded.warnings))
    # Loaded after the check: what is wrong with a file is told at once.
    import asyncio

    from agent import daemon
    from agent.building import StartError

    try:
        return asyncio.run(daemon.run(loaded, Path(path), overrides, os.environ))
    except StartError as error:
        complain("error", [str(error)])
        return error.code
    except OSError as error:
        complain("error", [f"cannot start, {error}"])
        return EXIT_FAILED
