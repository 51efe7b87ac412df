"""The commands `wayout keyring …` and `wayout keygen`: gossip keys, and their rotation."""

from __future__ import annotations

import secrets
import sys
from typing import TYPE_CHECKING

import click

from agent.cli.asking import (
    EXIT_FAILED,
    EXIT_USAGE,
    ask,
    complain,
    fail,
    json_option,
    print_json,
    socket_option,
)
from agent.cli.tables import Column, draw, show

if TYPE_CHECKING:
    from agent.client import Answer

PATIENCE = 30.0
"""Seconds: two questions to every member, and a write to its disk."""
KEY_TEXT_MAX = 256
ROTATION = "A rotation is: keygen, add, use, remove the old one; 'keyring list' between the steps."

KEY_COLUMNS = (
    Column("KEY", lambda row: row["fingerprint"]),
    Column("USED BY", lambda row: row["used_by"], folds=True),
    Column("ACCEPTED BY", lambda row: row["accepted_by"], folds=True),
    Column("MISSING ON", lambda row: row["missing_on"], folds=True),
)


@click.command()
@click.option(
    "--bits",
    type=click.Choice(["128", "192", "256"]),
    default="256",
    show_default=True,
    help="Length of the key.",
)
@json_option
def keygen(bits: str, *, as_json: bool) -> None:
    """Make a new gossip key and print it; every line of a keyring file is one."""
    from agent.keys.file import encoded, fingerprint

    key = secrets.token_bytes(int(bits) // 8)
    if as_json:
        print_json({"key": encoded(key), "fingerprint": fingerprint(key), "bits": int(bits)})
    else:
        click.echo(encoded(key))


@click.group(epilog=ROTATION)
def keyring() -> None:
    """Show and rotate the keys that gossip is encrypted with, on every member."""


@keyring.command("list")
@socket_option
@json_option
def list_(socket_path: str | None, *, as_json: bool) -> None:
    """Show every key as a fingerprint, and which member accepts it."""
    told = ask(socket_path, "keyring_list", timeout=PATIENCE)
    if as_json:
        print_json(told)
    else:
        show(draw(KEY_COLUMNS, told["keys"]))
    mute = [row["name"] for row in told["members"] if not row["answered"]]
    if mute:
        complain("warning", [f"no answer from {', '.join(mute)}"])
    if told["foreign"]:
        complain("warning", [f"{', '.join(told['foreign'])} cannot be asked, being no wayout"])


key_argument = click.argument("key", metavar="KEY|-")
node_option = click.option("--node", metavar="NAME", help="Only on this member.")
force_option = click.option(
    "--force", is_flag=True, help="Even if members do not answer or cannot be asked."
)


@keyring.command()
@key_argument
@node_option
@socket_option
@json_option
def add(key: str, node: str | None, socket_path: str | None, *, as_json: bool) -> None:
    """Let every member accept KEY (base64; - reads it from standard input)."""
    _change("add", key, socket_path, as_json=as_json, node=node)


@keyring.command()
@key_argument
@node_option
@force_option
@socket_option
@json_option
def use(key: str, node: str | None, socket_path: str | None, *, force: bool, as_json: bool) -> None:
    """Encrypt with KEY (or its fingerprint), once every member accepts it."""
    _change("use", key, socket_path, as_json=as_json, node=node, force=force)


@keyring.command()
@key_argument
@node_option
@force_option
@socket_option
@json_option
def remove(
    key: str, node: str | None, socket_path: str | None, *, force: bool, as_json: bool
) -> None:
    """Accept KEY (or its fingerprint) no more, once no member encrypts with it."""
    _change("remove", key, socket_path, as_json=as_json, node=node, force=force)


def _change(
    operation: str, key: str, socket_path: str | None, *, as_json: bool, **more: object
) -> None:
    text = sys.stdin.readline(KEY_TEXT_MAX).strip() if key == "-" else key
    if not text:
        fail("there is no key on standard input", EXIT_USAGE)
    told = ask(
        socket_path, "keyring_change", timeout=PATIENCE, operation=operation, key=text, **more
    )
    if as_json:
        print_json(told)
    else:
        _tell(told)
    if told["failed"]:
        sys.exit(EXIT_FAILED)


_WORDS = {"add": "accept", "use": "encrypt with", "remove": "no longer accept"}


def _tell(told: Answer) -> None:
    done = told["done"]
    verb = _WORDS[told["operation"]]
    click.echo(f"{len(done)} members {verb} {told['fingerprint']}: {', '.join(done) or '-'}")
    complain("error", [f"{name}: {error}" for name, error in told["failed"].items()])
    if told["foreign"]:
        complain("warning", [f"{', '.join(told['foreign'])} cannot be asked, being no wayout"])
