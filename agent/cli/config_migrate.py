"""`wayout config migrate`: bring files of an older format to the present one."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent.cli.asking import EXIT_FAILED, complain, fail
from agent.cli.config_words import DEFAULT_PATH, EXIT_INVALID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from config.documents import Text
    from config.migrate import Migrated


@click.command()
@click.argument("path", default=DEFAULT_PATH)
@click.option("--write", is_flag=True, help="Replace the files; the old ones stay beside them.")
def migrate(path: str, *, write: bool) -> None:
    """Show, or with --write make, what brings old files to the present format.

    Comments and order stay. Nothing is written if the result would not be valid.
    """
    from config.load import Source, surroundings
    from config.migrate import migrate as migrated
    from config.parse import parse
    from config.problems import ConfigError, lines

    source = Source(Path(path), surroundings())
    try:
        files = source.snapshot().files
        done = migrated(files)
        parse(done.files, source.around)
    except ConfigError as error:
        complain("error", lines(error.problems))
        sys.exit(EXIT_INVALID)
    pairs = [(old, new) for old, new in zip(files, done.files, strict=True) if old != new]
    if not pairs:
        click.echo(f"{path}: is of the present format, nothing to do")
        return
    if not write:
        for old, new in pairs:
            click.echo("".join(_difference(old, new)), nl=False)
        return
    _replace(pairs, done)


def _difference(old: Text, new: Text) -> Iterator[str]:
    before = old.data.decode("utf-8-sig").splitlines(keepends=True)
    after = new.data.decode("utf-8-sig").splitlines(keepends=True)
    return difflib.unified_diff(before, after, old.name, new.name)


def _replace(pairs: list[tuple[Text, Text]], done: Migrated) -> None:
    # Drop-ins first: should the main file fail, it is still of the old version and says so.
    for old, new in reversed(pairs):
        target = Path(old.name).resolve()
        try:
            kept = _replaced(target, new.data, done.since)
        except OSError as error:
            fail(f"cannot write {target}, {error.strerror}, mend that and repeat", EXIT_FAILED)
        click.echo(f"wrote {target}, the old one is {kept}")
    for each in done.remarks:
        click.echo(f"  {each}")


def _replaced(target: Path, data: bytes, since: int) -> Path:
    """Whole or not at all, with the rights of the old file; returns where that is kept."""
    kept = _free(target, since)
    shutil.copy2(target, kept)
    beside = target.with_name(f".{target.name}.new")
    shutil.copy2(target, beside)
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(target)
    return kept


def _free(target: Path, since: int) -> Path:
    """A name that nobody has, and that no reader takes for a drop-in."""
    number, name = 0, f"{target.name}.v{since}.bak"
    while target.with_name(name).exists():
        number += 1
        name = f"{target.name}.v{since}.{number}.bak"
    return target.with_name(name)
