"""The command `plan`: what would move, before it does; with a daemon's picture or from a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent.cli.asking import (
    EXIT_FAILED,
    EXIT_USAGE,
    complain,
    fail,
    json_option,
    print_json,
    socket_option,
)
from agent.client import ClientError, rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent.cli.tables import Column
    from agent.client import Answer
    from agent.whatif import Picture
    from config.load import Source
    from config.schema.settings import Settings

NAMES_MAX = 10_000
PATIENCE = 30.0


@click.command()
@click.option("--file", "path", metavar="NEW", help="As if every node had this configuration file.")
@click.option("--without", multiple=True, metavar="NODE", help="As if this member were gone.")
@click.option("--with", "joining", multiple=True, metavar="NODE", help="As if this one had come.")
@click.option("--nodes-file", metavar="FILE", help="More of those, one name a line.")
@click.option("--offline", is_flag=True, help="From the file alone, whether a daemon runs or not.")
@socket_option
@json_option
def plan(  # noqa: PLR0913 - one argument for each option
    *,
    socket_path: str | None,
    path: str | None,
    without: tuple[str, ...],
    joining: tuple[str, ...],
    nodes_file: str | None,
    offline: bool,
    as_json: bool,
) -> None:
    """Show what would move, before it does.

    Asks the daemon for members and claims. Where none runs, or with --offline, a file must be
    given, and the members are those named by --with and --nodes-file.
    """
    names = [*joining, *(_names(nodes_file) if nodes_file is not None else ())]
    told = None if offline else _asked(socket_path, needed=path is None)
    if told is None and path is None:
        raise click.UsageError("offline, a configuration is needed: name it with --file")
    if told is None:
        before, after = _from_file(str(path), names, without)
    else:
        before, after = _from_daemon(told, path, names, without)
    _show(before, after, as_json=as_json)


def _asked(socket_path: str | None, *, needed: bool) -> list[Answer] | None:
    """The picture of a daemon; None if none answers and it is not needed."""
    try:
        return rows(socket_path, "picture", timeout=PATIENCE)
    except ClientError as error:
        if needed:
            fail(f"{error.message}; or name a configuration with --file", error.code)
        return None


def _from_daemon(
    told: list[Answer], path: str | None, names: list[str], without: tuple[str, ...]
) -> tuple[Picture, Picture]:
    from agent import picture, whatif

    me, before = picture.read(told)
    _require_known(without, {*before.candidates, *names})
    after = whatif.joined(before, names)
    if path is not None:
        after = whatif.configured(after, _settings(path, after.candidates, me), me)
    return before, whatif.without(after, without)


def _from_file(path: str, names: list[str], without: tuple[str, ...]) -> tuple[Picture, Picture]:
    """Nothing is claimed; with `without`, everything is where those who are there would have it."""
    from agent import whatif

    if not names:
        _settings(path, [], None)  # What is wrong with it is told first.
        fail(
            "there are no members, no daemon is asked: name them with --with or --nodes-file",
            EXIT_USAGE,
        )
    _require_known(without, set(names))
    before = whatif.fresh(_settings(path, names, names[0]), names[0])
    if without:
        before = whatif.settled(before)
    return before, whatif.without(before, without)


def _require_known(names: Iterable[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            listed = ", ".join(sorted(known)[:10]) or "none"
            fail(f"there is no member {name!r}, there are {listed}", EXIT_USAGE)


def _settings(path: str, names: Iterable[str], me: str | None) -> dict[str, Settings]:
    """The file as each node reads it; every problem on stderr and exit code 2."""
    from config.load import Source, surroundings
    from config.problems import ConfigError, lines

    source = Source(Path(path), surroundings())
    try:
        differ = _differs_by_node(source)
        own = _read_as(source, me)
        return {name: _read_as(source, name) if differ and name != me else own for name in names}
    except ConfigError as error:
        complain("error", lines(error.problems))
        sys.exit(EXIT_USAGE)


def _differs_by_node(source: Source) -> bool:
    """Whether the files speak of single nodes or groups; if not, one reading does for all."""
    files = source.snapshot().files
    return any(word in each.data for each in files for word in (b"groups", b"nodes"))


def _read_as(source: Source, name: str | None) -> Settings:
    from dataclasses import replace

    from config.problems import ConfigError

    outcome = replace(source, around=replace(source.around, node=name)).attempt().outcome
    if isinstance(outcome, ConfigError):
        raise outcome
    return outcome.settings


def _names(path: str) -> list[str]:
    try:
        names = Path(path).read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        fail(f"cannot read {path}, {error}, write one name a line", EXIT_FAILED)
    if len(names) > NAMES_MAX:
        fail(f"{path} has more than {NAMES_MAX} names", EXIT_USAGE)
    return list(dict.fromkeys(names))


def _show(before: Picture, after: Picture, *, as_json: bool) -> None:
    from agent import whatif

    found = whatif.plan(before, after)
    if as_json:
        print_json(found)
        return
    from agent.cli.tables import draw, show

    moves, unassigned, load = _tables(found)
    if moves:
        titles = ("ip", "name", "from", "to", "reason")
        show(draw([_column(title) for title in titles], moves))
        click.echo()
    if unassigned:
        show(draw([_column(title) for title in ("ip", "name", "reason")], unassigned))
        click.echo()
    was: dict[str, int] = {}
    for claim in before.claims:
        if claim.held:
            was[claim.owner] = was.get(claim.owner, 0) + 1
    nodes = [
        {"node": name, "now": was.get(name, 0), "then": count}
        for name, count in {**dict.fromkeys(was, 0), **load}.items()
    ]
    show(draw([_column(title) for title in ("node", "now", "then")], nodes))
    total = sum(len(each.ips) for each in after.egresses)
    moved = "nothing moves" if not moves else f"{len(moves)} of {total} IPs move"
    lost = f", {len(unassigned)} have no owner" if unassigned else ""
    click.echo(f"\n{moved}{lost}")


def _tables(found: Mapping[str, object]) -> tuple[list[Answer], list[Answer], dict[str, int]]:
    match found:
        case {"moves": list(moves), "unassigned": list(unassigned), "load": dict(load)}:
            return moves, unassigned, load
        case _:
            raise AssertionError(found)


def _column(title: str) -> Column:
    from agent.cli.tables import Column

    return Column(title.upper(), lambda row: row[title])
