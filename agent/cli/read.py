"""The commands that look: `status`, `members`, `egress list|show|explain`."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import click

from agent.cli.asking import ask, ask_rows, json_option, print_json, socket_option
from agent.cli.tables import WATCH_EVERY, Column, age, draw, show, span, watch, word
from agent.client import ClientError, call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agent.client import Answer

watch_option = click.option("--watch", "watching", is_flag=True, help="Show it again every second.")


def _state(row: Answer) -> str:
    return f"{row['state']}: {row['reason']}" if row["reason"] else str(row["state"])


def _endpoint(row: Answer) -> str:
    address = row["address"]
    return f"[{address}]:{row['port']}" if ":" in address else f"{address}:{row['port']}"


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.1f}ms"


MEMBER_COLUMNS = (
    Column("NAME", lambda row: row["name"] + (" *" if row["local"] else "")),
    Column("ADDRESS", _endpoint),
    Column("STATE", lambda row: row["state"]),
    Column("SINCE", lambda row: age(row["since"])),
    Column("RTT", lambda row: _milliseconds(row["rtt_seconds"])),
    Column("ELIGIBLE", lambda row: row["eligible"]),
    Column("REASONS", lambda row: row["reasons"], folds=True),
    Column("CONFIG", lambda row: row["config_digest"][:8]),
    Column("VERSION", lambda row: row["version"]),
)
EGRESS_COLUMNS = (
    Column("NAME", lambda row: row["name"]),
    Column("IP", lambda row: row["ip"]),
    Column("OWNER", lambda row: word(row["owner"]) + (" *" if row["local"] else "")),
    Column("STANDBY", lambda row: row["standby"]),
    Column("STATE", _state, folds=True),
    Column("SINCE", lambda row: age(row["since"])),
    Column("EPOCH", lambda row: row["epoch"]),
    Column("INTERFACE", lambda row: row["interface"]),
)


@click.command()
@socket_option
@json_option
def status(socket_path: str | None, *, as_json: bool) -> None:
    """Show this node: state, members, IPs, configuration."""
    told = ask(socket_path, "status")
    if as_json:
        print_json(told)
        return
    for title, text in _status_lines(told, _remarks(socket_path)):
        click.echo(f"{title:<12}{text}")


@click.command()
@socket_option
@json_option
@watch_option
def members(socket_path: str | None, *, as_json: bool, watching: bool) -> None:
    """List the members of the cluster; * is the node that answers."""
    _list(lambda: ask_rows(socket_path, "members"), MEMBER_COLUMNS, as_json, watching)


@click.group()
def egress() -> None:
    """List, show and explain egress IPs and their owners."""


@egress.command("list")
@socket_option
@json_option
@watch_option
def egress_list(socket_path: str | None, *, as_json: bool, watching: bool) -> None:
    """List every egress IP with its owner; * is carried by the node that answers."""
    _list(lambda: ask_rows(socket_path, "egress_list"), EGRESS_COLUMNS, as_json, watching)


@egress.command("show")
@click.argument("name")
@socket_option
@json_option
def egress_show(name: str, socket_path: str | None, *, as_json: bool) -> None:
    """Show one egress, by its name or an IP of it."""
    rows = ask_rows(socket_path, "egress_show", name=name)
    if as_json:
        print_json(rows)
        return
    for number, row in enumerate(rows):
        if number:
            click.echo()
        _facts({**row, "since": f"{row['since']} ({age(row['since'])} ago)"})


@egress.command("explain")
@click.argument("name")
@socket_option
@json_option
def egress_explain(name: str, socket_path: str | None, *, as_json: bool) -> None:
    """Tell why an egress is where it is: candidates, scores, and the rule that decided."""
    told = ask(socket_path, "egress_explain", name=name)
    if as_json:
        print_json(told)
        return
    tables = {key: value for key, value in told.items() if _is_table(value)}
    _facts({key: value for key, value in told.items() if key not in tables})
    for key, rows in tables.items():
        click.echo(f"\n{key}:")
        titles = dict.fromkeys(title for row in rows for title in row)
        show(draw([_column(title) for title in titles], rows))


def _list(
    get: Callable[[], list[Answer]],
    columns: Sequence[Column],
    as_json: bool,  # noqa: FBT001 - passed on as they come
    watching: bool,  # noqa: FBT001
) -> None:
    try:
        if as_json:
            _print_rows(get, watching=watching)
        elif watching:
            watch(lambda: draw(columns, get()))
        else:
            show(draw(columns, get()))
    except KeyboardInterrupt:
        # The way to end --watch is no failure.
        if not watching:
            raise


def _print_rows(get: Callable[[], list[Answer]], *, watching: bool) -> None:
    if not watching:
        print_json(get())
        return
    while True:
        click.echo(json.dumps(get(), ensure_ascii=False))
        sys.stdout.flush()
        time.sleep(WATCH_EVERY)


def _remarks(socket_path: str | None) -> Answer:
    """What is said beside the contract; a daemon that is older than this command has nothing."""
    try:
        return call(socket_path, "remarks")
    except ClientError:
        return {}


def _status_lines(told: Answer, remarks: Answer) -> Iterator[tuple[str, str]]:
    node, config, counts = told["node"], told["config"], told["egress"]
    yield "node", f"{node['name']} ({node['address']}), cluster {node['cluster']}"
    yield (
        "daemon",
        f"wayout {node['version']}, pid {node['pid']}, up {span(node['uptime_seconds'])}",
    )
    left = remarks.get("drain_seconds")
    yield "state", node["state"] if left is None else f"{node['state']}, {span(left)} to go"
    well = "" if not node["health_score"] else f", health score {node['health_score']} (0 is well)"
    eligible = "yes" if node["eligible"] else f"no: {word(node['ineligible_reasons'])}"
    yield "eligible", f"{eligible}{well}"
    yield "members", ", ".join(f"{count} {state}" for state, count in told["members"].items())
    yield (
        "addresses",
        (
            f"{counts['owned']} of {counts['total']} here, {counts['unassigned']} unassigned, "
            f"{counts['conflicts']} in conflict"
        ),
    )
    stale = ", STALE: the files say something else" if config["stale"] else ""
    yield "config", f"generation {config['generation']}, digest {config['digest']}{stale}"
    yield "reload", _last_reload(config.get("last_reload"))
    if "last_failover" in remarks:
        yield "failover", _last_failover(remarks["last_failover"])
    for pending in config["pending_restart"]:
        yield "restart", f"needed for {pending['path']}: {word(pending.get('reason'))}"


def _last_reload(last: Answer | None) -> str:
    if not last or not last.get("at"):
        return "none yet"
    errors = f", {last['errors'][0]}" if last.get("errors") else ""
    return f"{last['result']} {age(last['at'])} ago by {last['trigger']}{errors}"


def _last_failover(last: Answer | None) -> str:
    if last is None:
        return "none yet"
    return (
        f"{last['ip']} from {last['from']} to {last['to']} {age(last['at'])} ago, "
        f"{last['cause']}, "
        f"took {last['total_seconds'] * 1000:.0f} ms"
    )


def _facts(told: Answer) -> None:
    width = max(map(len, told), default=0) + 2
    for key, value in told.items():
        click.echo(f"{key:<{width}}{word(value)}")


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _column(title: str) -> Column:
    return Column(title.upper().replace("_", " "), lambda row: row.get(title), title == "reasons")
