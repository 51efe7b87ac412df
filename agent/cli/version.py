"""`wayout version`: this program, without asking a daemon."""

from __future__ import annotations

import click

from agent.cli.asking import json_option, print_json
from agent.release import describe


@click.command()
@json_option
def version(*, as_json: bool) -> None:
    """Print version, protocol and build."""
    told = describe()
    if as_json:
        print_json(told)
    else:
        click.echo(f"wayout {told['version']} ({told['protocol']}; build {told['build']})")
