"""`wayout lab`: a local cluster of real daemons in network namespaces, and faults for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent.cli.asking import EXIT_FAILED, fail, json_option, print_json
from agent.cli.lab_figures import measure, observe
from agent.cli.lab_words import (
    FEWEST,
    find,
    ips_option,
    name_option,
    node_argument,
    nodes_option,
    set_option,
    told,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.client import Answer
    from agent.lab.cluster import Cluster

EXIT_OK = 0
NOT_FOUND = 127
"""As shells report a program that is not there."""


@click.group()
def lab() -> None:
    """Run a local cluster in network namespaces, as root or as an ordinary user.

    Every node is a host of its own on one bridge, with a real daemon; faults are real, too.
    """


for _command in (measure, observe):
    lab.add_command(_command)


@lab.command()
@nodes_option
@ips_option
@set_option
@name_option
@told
def up(name: str | None, nodes: int, ips: int, sets: tuple[str, ...]) -> None:
    """Start a cluster and wait until every IP has an owner.

    One that does not settle stays up, so that its logs can be read.
    """
    from agent.lab import cluster
    from agent.lab.processes import interruptible

    with interruptible():
        made = cluster.up(name or cluster.DEFAULT_NAME, nodes=nodes, ips=ips, sets=sets)
        try:
            made.settle()
        except KeyboardInterrupt:
            made.down()
            raise
    _show_status(made)


@lab.command()
@json_option
@name_option
@told
def status(name: str | None, *, as_json: bool) -> None:
    """Show the nodes, and who owns what."""
    found = find(name)
    if as_json:
        print_json(
            {"name": found.record.name, "folder": str(found.record.folder), "nodes": _rows(found)}
        )
    else:
        _show_status(found)


@lab.command()
@click.option("--all", "every", is_flag=True, help="Every lab of this user.")
@name_option
@told
def down(name: str | None, *, every: bool) -> None:
    """End the cluster and remove everything that belongs to it."""
    from agent.lab import record

    with record.locked():
        for each in record.names() if every else [name]:
            find(each).down()


@lab.command()
@node_argument
@name_option
@told
def kill(name: str | None, node: str) -> None:
    """The host dies: cable cut and processes killed at the same instant."""
    _act(name, lambda faults, found: faults.kill(found, node))


@lab.command()
@node_argument
@name_option
@told
def stop(name: str | None, node: str) -> None:
    """Stop the daemon in good order (SIGTERM): it hands over and leaves."""
    _act(name, lambda faults, found: faults.stop(found, node))


@lab.command()
@node_argument
@name_option
@told
def pause(name: str | None, node: str) -> None:
    """Freeze the daemon (SIGSTOP); its host lives on."""
    _act(name, lambda faults, found: faults.pause(found, node))


@lab.command()
@node_argument
@name_option
@told
def resume(name: str | None, node: str) -> None:
    """Let a frozen daemon go on (SIGCONT)."""
    _act(name, lambda faults, found: faults.resume(found, node))


@lab.command()
@node_argument
@click.option(
    "--gossip-only", "only", flag_value="gossip", help="Drop gossip; the rest goes through."
)
@click.option(
    "--peers-only", "only", flag_value="peers", help="Cut it off from the nodes, not the observer."
)
@name_option
@told
def cut(name: str | None, node: str, only: str | None) -> None:
    """Unplug the host: it loses its carrier.

    With an option, frames are dropped in the switch and the host notices nothing (needs nft).
    """
    _act(name, lambda faults, found: faults.cut(found, node, only=only))


@lab.command()
@node_argument
@click.argument("percent", type=click.IntRange(0, 100))
@name_option
@told
def loss(name: str | None, node: str, percent: int) -> None:
    """Lose PERCENT of the frames between the host and other nodes (needs nft); 0 ends it."""
    _act(name, lambda faults, found: faults.lose(found, node, percent))


@lab.command()
@node_argument
@name_option
@told
def heal(name: str | None, node: str) -> None:
    """Undo every cut and loss."""
    _act(name, lambda faults, found: faults.heal(found, node))


@lab.command()
@node_argument
@name_option
@told
def restart(name: str | None, node: str) -> None:
    """Restart the daemon without handing over (SIGUSR2, then a new process)."""
    _act(name, lambda faults, found: faults.restart(found, node))


@lab.command()
@node_argument
@name_option
@told
def start(name: str | None, node: str) -> None:
    """Start a daemon that was stopped or killed; a dead host comes back first."""
    _act(name, lambda _, found: found.start([node]))


@lab.command()
@nodes_option
@ips_option
@click.option("--keep", is_flag=True, help="Leave the lab running at the end.")
@json_option
@click.option("--name", help="Name of the lab; demo if that is free.")
@told
def demo(name: str | None, nodes: int, ips: int, *, keep: bool, as_json: bool) -> int:
    """Show a failover: start a cluster, kill the busiest host, watch the others take over.

    Exit code 0 only if every IP was answered by exactly one host before, and by exactly one
    other host after.
    """
    from agent.cli.story import teller
    from agent.lab import demo as story
    from agent.lab import record

    if nodes < FEWEST:
        raise click.BadParameter(f"a failover takes {FEWEST} nodes or more", param_hint="--nodes")
    chosen = name or record.free("demo")
    figures = story.run(teller(silent=as_json), chosen, nodes=nodes, ips=ips, keep=keep)
    if as_json:
        print_json(figures)
    return EXIT_OK if figures["ok"] else EXIT_FAILED


@lab.command("exec", context_settings={"ignore_unknown_options": True})
@node_argument
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@name_option
@told
def execute(name: str | None, node: str, command: tuple[str, ...]) -> None:
    """Run a command in a host; `wayout` commands there find its daemon.

    The observer's host is called obs.
    """
    from agent.lab.addresses import OBSERVER
    from agent.lab.processes import environment

    found = find(name)
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


def _act(name: str | None, deed: Callable[[Any, Cluster], object]) -> None:
    """Do something to a lab while no other command does."""
    from agent.lab import faults, record
    from agent.lab.processes import undisturbed

    with undisturbed(), record.locked():
        deed(faults, find(name))


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
