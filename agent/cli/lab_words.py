"""What the commands of `wayout lab` share: options, the way to a lab, and its errors."""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any

import click

from agent.cli.asking import fail
from agent.lab.processes import LabError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.lab.cluster import Cluster

FEWEST = 2
"""Nodes; with fewer there is nobody to take over."""

name_option = click.option(
    "--name", metavar="NAME", help="Which lab, if several run; a new one is called lab."
)
node_argument = click.argument("node")
nodes_option = click.option(
    "--nodes", default=3, show_default=True, metavar="N", help="How many nodes."
)
ips_option = click.option(
    "--ips", default=6, show_default=True, metavar="M", help="How many egress IPs, v4 and v6."
)
set_option = click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="An option for every daemon."
)


def told(command: Callable[..., Any]) -> Callable[..., Any]:
    """What the lab cannot do becomes a line on stderr and exit code 1."""

    def wrapped(*args: object, **kwargs: object) -> object:
        try:
            return command(*args, **kwargs)
        except LabError as error:
            fail(str(error))

    return update_wrapper(wrapped, command)


def find(name: str | None) -> Cluster:
    """The lab of this name, or the only one."""
    from agent.lab import cluster

    return cluster.find(name)
