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
@click.option(
    "--start-with-last-good",
    is_flag=True,
    help="With broken files, start with the settings that ran last (config.start_with_last_good).",
)
@click.option("--log-format", type=click.Choice(["json", "console"]), help="How log lines look.")
def run(
    path: str, overrides: tuple[str, ...], log_format: str | None, *, start_with_last_good: bool
) -> int:
    """Run the daemon in the foreground.

    TERM hands every address over and leaves; USR2 keeps them for a successor; HUP reloads.
    An invalid configuration ends it with exit code 78.
    """
    from agent.lastgood import recalled
    from config.load import Source, surroundings
    from config.problems import ConfigError, lines

    if log_format is not None:
        overrides = (*overrides, f"logging.format={log_format}")
    attempt = Source(Path(path), surroundings(overrides=overrides)).attempt()
    loaded, refused = attempt.outcome, None
    if isinstance(loaded, ConfigError):
        complain("error", lines(loaded.problems))
        found = recalled(path, overrides, wanted=start_with_last_good)
        if found is None:
            return EXIT_CONFIG
        loaded, refused = found, attempt
        complain("warning", ["the files are broken, starting with the settings that ran last"])
    complain("warning", lines(loaded.warnings))
    # Loaded after the check: what is wrong with a file is told at once.
    import asyncio

    from agent import daemon
    from agent.building import StartError

    try:
        return asyncio.run(daemon.run(loaded, Path(path), overrides, os.environ, refused))
    except StartError as error:
        complain("error", [str(error)])
        return error.code
    except OSError as error:
        complain("error", [f"cannot start, {error}"])
        return EXIT_FAILED
