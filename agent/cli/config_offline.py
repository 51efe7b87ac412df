"""The `wayout config` commands that need no daemon: check, explain, schema, init."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent.cli.asking import (
    EXIT_FAILED,
    ask_rows,
    complain,
    fail,
    json_option,
    print_json,
    socket_option,
)
from agent.cli.config_words import DEFAULT_PATH, EXIT_INVALID, alive, config_option, tell
from config.problems import ConfigError, Problem, lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from config.schema.settings import Settings


@click.command()
@click.argument("path", default=DEFAULT_PATH)
@click.option("--node", metavar="NAME", help="Read it as this node would.")
@click.option("--labels", multiple=True, metavar="K=V", help="Labels of that node; repeatable.")
@click.option(
    "--all-nodes",
    is_flag=False,
    flag_value="",
    metavar="[FILE]",
    help="Read it as each node under `nodes` would, and each named in FILE.",
)
@click.option("--show", "key", metavar="KEY", help="Tell which nodes have which value of KEY.")
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@click.option("--quiet", is_flag=True, help="Say nothing if all is well.")
def check(  # noqa: PLR0913 - one argument for each option
    path: str,
    node: str | None,
    labels: tuple[str, ...],
    all_nodes: str | None,
    key: str | None,
    *,
    strict: bool,
    quiet: bool,
) -> None:
    """Check a configuration without a daemon; every problem is told at once."""
    option = _option(key) if key else None
    names = [node, *(_names(all_nodes) if all_nodes else ())]
    found = _verdicts(path, names, _labels(labels), and_named=all_nodes is not None)
    complain("error", lines(found.problems))
    if not quiet or strict:
        complain("warning", lines(found.warnings))
    if found.problems or (strict and found.warnings):
        sys.exit(EXIT_INVALID)
    if option is not None:
        tell(_spread(option, found.settings))
    elif not quiet:
        count = f", read as {len(found.settings)} nodes" if len(found.settings) > 1 else ""
        click.echo(f"{path}: valid{count}")


@dataclass(frozen=True, slots=True)
class _Verdicts:
    """What is wrong and doubtful over all nodes, each once, and the settings of each node."""

    problems: list[Problem]
    warnings: list[Problem]
    settings: list[Settings]


def _verdicts(
    path: str, names: Sequence[str | None], labels: Mapping[str, str], *, and_named: bool
) -> _Verdicts:
    from config.load import judged

    problems: dict[Problem, None] = {}
    warnings: dict[Problem, None] = {}
    settings = []
    try:
        for _, outcome in judged(path, names, labels, and_named=and_named):
            if isinstance(outcome, ConfigError):
                problems.update(dict.fromkeys(outcome.problems))
            else:
                warnings.update(dict.fromkeys(outcome.warnings))
                settings.append(outcome.settings)
    except ConfigError as error:
        problems.update(dict.fromkeys(error.problems))
    return _Verdicts([*problems], [*warnings], settings)


def _option(key: str) -> tuple[str, ...]:
    from config.reference import UnknownOptionError, find

    try:
        return find(key)[0]
    except UnknownOptionError as error:
        near = f"did you mean {error.near}?" if error.near else "see 'wayout config schema'"
        fail(f"there is no option {key}, {near}", EXIT_INVALID)


NODES_SHOWN = 8


def _spread(path: tuple[str, ...], nodes: Iterable[Settings]) -> Iterator[str]:
    """One line for each value, the most frequent first, and who has it."""
    from config.leaves import value_at
    from config.render import flow

    holders: dict[str, list[str]] = {}
    for each in nodes:
        holders.setdefault(flow(value_at(each, path)), []).append(each.node.name)
    for value, names in sorted(holders.items(), key=lambda pair: -len(pair[1])):
        more = ", …" if len(names) > NODES_SHOWN else ""
        yield f"{value:<24} {len(names):>5}  {', '.join(names[:NODES_SHOWN])}{more}"


def _labels(given: Iterable[str]) -> dict[str, str]:
    pairs = [each for group in given for each in group.split(",")]
    for each in pairs:
        if "=" not in each:
            message = f"{each!r} has no value, write --labels KEY=VALUE"
            raise click.BadParameter(message, param_hint="--labels")
    return dict(each.split("=", 1) for each in pairs)


def _names(file: str) -> list[str]:
    """The names in a file that has one in a line."""
    try:
        return Path(file).read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        fail(f"cannot read {file}, {error}, write one name a line", EXIT_FAILED)


@click.command()
@click.argument("key")
@config_option
@socket_option
@click.option(
    "--members",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="Work out what depends on the size of the cluster for N members.",
)
@json_option
def explain(
    key: str, path: str, socket_path: str | None, members: int | None, *, as_json: bool
) -> None:
    """Tell everything about one option: who sets it, and what follows from it."""
    from config.load import load
    from config.reference import explain as told_about
    from config.render import flow

    option = _option(key)
    try:
        loaded = load(path)
    except ConfigError:
        loaded = None
    told: dict[str, Any] = {**told_about(key, loaded.provenance if loaded else None)}
    if loaded is not None:
        told |= _worked_out(option, loaded.settings, members or _present(socket_path))
    if as_json:
        print_json(told)
        return
    for name, value in told.items():
        if name == "set_by":
            tell(_setters(told["set_by"]))
        elif name == "works_out":
            tell(f"{'works out':<15} {each}" for each in told["works_out"])
        else:
            word = value if isinstance(value, str) else flow(value)
            click.echo(f"{name.replace('_', ' '):<15} {word}")


def _worked_out(path: tuple[str, ...], settings: Settings, members: int) -> dict[str, Any]:
    """The value in the configuration, and the sums that start from it."""
    from agent.sums import sums
    from config.leaves import value_at
    from config.redact import shown

    found: dict[str, Any] = {"value": shown(path, value_at(settings, path))}
    lines = sums(path, settings, members)
    return {**found, **({"works_out": [*lines]} if lines else {})}


def _present(socket_path: str | None) -> int:
    """How many members there are, as a daemon on this host says; 1 without one."""
    if not alive(socket_path):
        return 1
    return sum(each.get("state") == "alive" for each in ask_rows(socket_path, "members")) or 1


def _setters(rows: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    for each in rows:
        yield f"{'set by':<15} {each['layer']} ({each['at']}): {each['value']}"
    if not rows:
        yield f"{'set by':<15} nobody: the default holds"


@click.command()
@click.option("--json-schema", "form", flag_value="json", default=True, help="(default)")
@click.option("--markdown", "form", flag_value="markdown", help="Print the option table.")
@click.option("--crd", "form", flag_value="crd", help="Print it as a Kubernetes CRD.")
@click.option("--scope", type=click.Choice(["cluster", "group", "node", "process"]))
def schema(form: str, scope: str | None) -> None:
    """Print the schema: JSON Schema for editors, a table of all options, or a CRD."""
    from config.json_schema import json_schema
    from config.reference import markdown, options
    from config.schema.option import Scope

    if form == "markdown" or scope is not None:
        click.echo(markdown(options(Scope(scope) if scope else None)), nl=False)
    elif form == "crd":
        from config.crd import definition

        print_json(definition())
    else:
        print_json(json_schema())


@click.command()
@click.argument("path", default=DEFAULT_PATH)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init(path: str, *, force: bool) -> None:
    """Write a commented configuration that is valid as it is; `-` prints it.

    Beside it, editors find the schema that its first line names.
    """
    from config.json_schema import FILE_NAME, json_schema
    from config.reference import template

    if path == "-":
        click.echo(template(), nl=False)
        return
    target = Path(path)
    if target.exists() and not force:
        fail(f"{path} exists, it may be in use, name another or add --force", EXIT_INVALID)
    try:
        _write(target, template())
        _write(target.with_name(FILE_NAME), json.dumps(json_schema(), indent=1) + "\n")
    except OSError as error:
        fail(f"cannot write {path}, {error.strerror}, name another path", EXIT_FAILED)
    click.echo(f"wrote {path}, check it with 'wayout config check {path}'")


def _write(target: Path, content: str) -> None:
    """Whole or not at all: a half-written file would be a configuration, too."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(target)
