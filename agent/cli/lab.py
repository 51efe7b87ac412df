"""`wayout lab`: a local cluster of real daemons in network namespaces, and faults for it."""

from __future__ import annotations

import os
import sys
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent.cli.asking import EXIT_FAILED, fail, json_option, print_json
from agent.lab.processes import LabError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.client import Answer
    from agent.lab.cluster import Cluster

DEFAULT_NAME = "lab"
FEWEST = 2
EXIT_OK = 0
NOT_FOUND = 127
"""As shells report a program that is not there."""

name_option = click.option(
    "--name", default=DEFAULT_NAME, show_default=True, help="Name of the lab; several can run."
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


def _told(command: Callable[..., Any]) -> Callable[..., Any]:
    """What the lab cannot do becomes a line on stderr and exit code 1."""

    def wrapped(*args: object, **kwargs: object) -> object:
        try:
            return command(*args, **kwargs)
        except LabError as error:
            fail(str(error))

    return update_wrapper(wrapped, command)


@click.group()
def lab() -> None:
    """Run a local cluster in network namespaces, as root or as an ordinary user.

    Every node is a host of its own on one bridge, with a real daemon; faults are real, too.
    """


@lab.command()
@nodes_option
@ips_option
@set_option
@name_option
@_told
def up(name: str, nodes: int, ips: int, sets: tuple[str, ...]) -> None:
    """Start a cluster and wait until every IP has an owner.

    One that does not settle stays up, so that its logs can be read.
    """
    from agent.lab import cluster
    from agent.lab.processes import interruptible

    with interruptible():
        made = cluster.up(name, nodes=nodes, ips=ips, sets=sets)
        try:
            made.settle()
        except KeyboardInterrupt:
            made.down()
            raise
    _show_status(made)


@lab.command()
@json_option
@name_option
@_told
def status(name: str, *, as_json: bool) -> None:
    """Show the nodes, and who owns what."""
    found = _find(name)
    if as_json:
        print_json({"name": name, "folder": str(found.record.folder), "nodes": _rows(found)})
    else:
        _show_status(found)


@lab.command()
@name_option
@_told
def down(name: str) -> None:
    """End the cluster and remove everything that belongs to it."""
    from agent.lab import record

    with record.locked():
        _find(name).down()


@lab.command()
@node_argument
@name_option
@_told
def kill(name: str, node: str) -> None:
    """The host dies: cable cut and processes killed at the same instant."""
    _act(name, lambda faults, found: faults.kill(found, node))


@lab.command()
@node_argument
@name_option
@_told
def stop(name: str, node: str) -> None:
    """Stop the daemon in good order (SIGTERM): it hands over and leaves."""
    _act(name, lambda faults, found: faults.stop(found, node))


@lab.command()
@node_argument
@name_option
@_told
def pause(name: str, node: str) -> None:
    """Freeze the daemon (SIGSTOP); its host lives on."""
    _act(name, lambda faults, found: faults.pause(found, node))


@lab.command()
@node_argument
@name_option
@_told
def resume(name: str, node: str) -> None:
    """Let a frozen daemon go on (SIGCONT)."""
    _act(name, lambda faults, found: faults.resume(found, node))


@lab.command()
@node_argument
@click.option("--gossip", is_flag=True, help="Drop gossip only; ARP and the rest go through.")
@name_option
@_told
def cut(name: str, node: str, *, gossip: bool) -> None:
    """Unplug the host, or drop its gossip."""
    only = "gossip" if gossip else None
    _act(name, lambda faults, found: faults.cut(found, node, only=only))


@lab.command()
@node_argument
@name_option
@_told
def heal(name: str, node: str) -> None:
    """Undo every cut."""
    _act(name, lambda faults, found: faults.heal(found, node))


@lab.command()
@node_argument
@name_option
@_told
def restart(name: str, node: str) -> None:
    """Restart the daemon without handing over (SIGUSR2, then a new process)."""
    _act(name, lambda faults, found: faults.restart(found, node))


@lab.command()
@node_argument
@name_option
@_told
def start(name: str, node: str) -> None:
    """Start a daemon that was stopped or killed; a dead host comes back first."""
    _act(name, lambda _, found: found.start([node]))


@lab.command()
@nodes_option
@ips_option
@click.option("--keep", is_flag=True, help="Leave the lab running at the end.")
@json_option
@click.option("--name", default="demo", show_default=True, help="Name of the lab.")
@_told
def demo(name: str, nodes: int, ips: int, *, keep: bool, as_json: bool) -> int:
    """Show a failover: start a cluster, kill the busiest host, watch the others take over.

    Exit code 0 only if every IP was answered by exactly one host before, and by exactly one
    other host after.
    """
    from agent.cli.story import teller
    from agent.lab import demo as story

    if nodes < FEWEST:
        raise click.BadParameter(f"a failover takes {FEWEST} nodes or more", param_hint="--nodes")
    told = story.run(teller(silent=as_json), name, nodes=nodes, ips=ips, keep=keep)
    if as_json:
        print_json(told)
    return EXIT_OK if told["ok"] else EXIT_FAILED


@lab.command("exec", context_settings={"ignore_unknown_options": True})
@node_argument
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@name_option
@_told
def execute(name: str, node: str, command: tuple[str, ...]) -> None:
    """Run a command in a host; `wayout` commands there find its daemon.

    The observer's host is called obs.
    """
    from agent.lab.addresses import OBSERVER
    from agent.lab.processes import environment

    found = _find(name)
    argv = found.network.inside(node, command)
    variables = dict(environment())
    variables["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), variables["PATH"]])
    if node != OBSERVER:
        variables["WAYOUT_SOCKET"] = str(found.file(node, "sock"))
    sys.stdout.flush()
    try:
        os.execvpe(argv[0], argv, variables)  # noqa: S606 - what the caller asked for
    except FileNotFoundError:
        fail(f"{argv[0]} is missing, install util-linux", NOT_FOUND)


def _find(name: str) -> Cluster:
    from agent.lab import cluster

    return cluster.find(name)


def _act(name: str, deed: Callable[[Any, Cluster], object]) -> None:
    """Do something to a lab while no other command does."""
    from agent.lab import faults, record

    with record.locked():
        deed(faults, _find(name))


def _rows(found: Cluster) -> list[Answer]:
    owners = found.glance()
    return [
        {
            "node": name,
            "state": found.state(name),
            "plugged": found.plugged(name),
            "address": found.places[name].ip4,
            "mac": found.places[name].mac,
            "pid": found.pid(name),
            "owns": [ip for ip in found.ips if owners.get(ip) == name],
            "socket": str(found.file(name, "sock")),
            "log": str(found.file(name, "log")),
        }
        for name in found.nodes
    ]


def _show_status(found: Cluster) -> None:
    from agent.cli.tables import Column, draw, show

    columns = (
        Column("NODE", lambda row: row["node"]),
        Column("STATE", lambda row: row["state"]),
        Column("CABLE", lambda row: "plugged" if row["plugged"] else "cut"),
        Column("ADDRESS", lambda row: row["address"]),
        Column("MAC", lambda row: row["mac"]),
        Column("OWNS", lambda row: row["owns"], folds=True),
    )
    show(draw(columns, _rows(found)))
    click.echo(f"logs and sockets are in {found.record.folder}")
