"""The command `bundle`: a redacted archive for those who are to help."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent.cli.asking import complain, fail, socket_option
from agent.cli.config_words import config_option
from agent.client import ClientError, ask

if TYPE_CHECKING:
    from collections.abc import Iterator

VERB_PATIENCE = 10.0
COMMAND_PATIENCE = 10.0
LOG_LINES = 5000
VERBS: dict[str, tuple[str, dict[str, object]]] = {
    "status.json": ("status", {}),
    "members.json": ("members", {}),
    "egress.json": ("egress_list", {}),
    "history.json": ("history", {"limit": 10_000}),
    "config.json": ("config_show", {"which": "running", "origin": True}),
    "config-status.json": ("config_status", {}),
    "version.json": ("version", {}),
    "ready.json": ("ready", {}),
    "picture.json": ("picture", {}),
}
COMMANDS = {
    "addresses.txt": ("ip", "-d", "address"),
    "routes.txt": ("ip", "route", "show", "table", "all"),
    "rules.txt": ("ip", "rule"),
    "neighbours.txt": ("ip", "neighbour"),
    "nftables.txt": ("nft", "list", "ruleset"),
    "journal.txt": ("journalctl", "-u", "wayout", "-n", str(LOG_LINES), "--no-pager", "-o", "cat"),
}


@click.command()
@click.option("-o", "--output", metavar="FILE", help="Where to; a name of its own in this folder.")
@config_option
@socket_option
def bundle(path: str, socket_path: str | None, output: str | None) -> None:
    """Write what the daemon and this host say of themselves into one archive, without secrets.

    Status, members, egress IPs, history, configuration, doctor, versions, and the last log lines
    of the service if there are any. Prints the path of the archive.
    """
    from agent.bundle import Redactor, archive, name_of

    now = time.time()
    parts: dict[str, object] = {}
    trouble: list[str] = []
    node = platform.node()
    for name, (verb, arguments) in VERBS.items():
        try:
            parts[name] = ask(socket_path, verb, timeout=VERB_PATIENCE, **arguments)
        except ClientError as error:
            trouble.append(f"{name}: {error.message}")
    match parts.get("status.json"):
        case {"node": {"name": str(name)}}:
            node = name
        case _:
            complain("warning", ["no daemon answers, the archive has only what this host says"])
    parts["doctor.json"] = _doctor(path, running="status.json" in parts)
    parts["host.txt"] = "\n".join(_host()) + "\n"
    for name, command in COMMANDS.items():
        parts[name] = _said(command)
    parts["missing.txt"] = "\n".join([*trouble, ""])
    at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    target = Path(output or name_of(node, at))
    folder = name_of(node, at).removesuffix(".tar.gz")
    data = archive(parts, Redactor.of(_key_files(path, parts)), folder, now)
    try:
        _write(target, data)
    except OSError as error:
        fail(f"cannot write {target}, {error.strerror}, name another place with -o")
    click.echo(target)


def _doctor(path: str, *, running: bool) -> list[dict[str, str]]:
    from agent.doctor.examination import examine
    from agent.logs import configure

    configure(level="error", shape="console", node="")
    return [
        {"severity": each.severity.value, "what": each.what, "why": each.why, "fix": each.fix}
        for each in asyncio.run(examine(path, running=running))
    ]


def _host() -> Iterator[str]:
    yield f"kernel {' '.join(platform.uname())}"
    yield f"python {sys.version.split()[0]}"
    from importlib.metadata import distributions

    from agent.release import VERSION

    yield f"wayout {VERSION}"
    found = {f"{each.metadata['Name']} {each.version}" for each in distributions()}
    yield from sorted(found, key=str.lower)


def _said(command: tuple[str, ...]) -> str:
    """What a program prints, or why it does not."""
    program = shutil.which(command[0])
    if program is None:
        return f"{command[0]} is not there\n"
    try:
        done = subprocess.run(  # noqa: S603 - fixed commands
            [program, *command[1:]],
            capture_output=True,
            timeout=COMMAND_PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{command[0]}: {error}\n"
    return (done.stdout + done.stderr).decode(errors="replace")


def _key_files(path: str, parts: dict[str, Any]) -> list[str]:
    """Files with keys, by the daemon's word and by the configuration on disk."""
    from config.load import load
    from config.problems import ConfigError

    found = []
    match parts.get("config.json"):
        case {"settings": {"gossip": {"keyring_file": str(file)}}}:
            found.append(file)
        case _:
            pass
    try:
        configured = load(path).settings.gossip.keyring_file
    except ConfigError:
        configured = None
    return [*found, *([configured] if configured is not None else [])]


def _write(target: Path, data: bytes) -> None:
    """For the eyes of who asked for it: addresses and names of hosts are no public matter."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
