"""Configuration, state folder and keys: whether a daemon could start with them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from agent import security
from agent.sysctls import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from config.problems import Problem
    from config.schema.settings import Settings

NO_CONFIG = Finding(
    Severity.NOTE,
    "there is no configuration yet",
    "everything was looked at as with the defaults",
    "'wayout config init' writes one, or name yours with --config",
)
ROOM = 16 * 1024 * 1024
"""Bytes that the state folder should have left: history and state take up to 12 MiB."""


def of_config(path: str, problems: Iterable[Problem], *, valid: bool) -> Iterator[Finding]:
    """Errors, or warnings of a configuration that is valid."""
    from config.problems import lines

    told = lines(list(problems))
    severity = Severity.WARNING if valid else Severity.ERROR
    why = "it is probably not what was meant" if valid else "a daemon would not start with it"
    for each in told:
        yield Finding(severity, each, why, f"edit it, then 'wayout config check {path}'")
    if not told:
        yield Finding(Severity.OK, f"{path} is valid", "a daemon can start with it")


def of_state(folder: str) -> Iterator[Finding]:
    """Whether what outlives the process can be kept, and by us alone."""
    path = Path(folder)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        above = next(each for each in path.parents if each.exists())
        can = os.access(above, os.W_OK)
        yield Finding(
            Severity.OK if can else Severity.ERROR,
            f"{path} is not there yet",
            "it is made at the start" if can else "and cannot be made: bindings are forgotten",
            "" if can else f"mkdir -p {path}",
        )
        return
    except OSError as error:
        yield Finding(Severity.ERROR, f"{path}: {error.strerror}", "nothing can be kept there")
        return
    yield from _of_folder(path, mode)


def _of_folder(path: Path, mode: int) -> Iterator[Finding]:
    if not stat.S_ISDIR(mode) or not os.access(path, os.W_OK | os.X_OK):
        yield Finding(
            Severity.ERROR,
            f"{path} is no folder that we may write to",
            "which addresses are ours, drains and history are forgotten at a restart",
            f"chown root {path}; chmod 755 {path}",
        )
    elif mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        yield Finding(
            Severity.WARNING,
            f"everybody may write to {path}",
            "whoever changes the state file makes us drop addresses that are not ours",
            f"chmod o-w {path}",
        )
    elif (left := _left(path)) < ROOM:
        yield Finding(
            Severity.WARNING,
            f"{path} has {left // 1024} KiB left",
            "state and history can soon not be written any more",
            "make room on that disk",
        )
    else:
        yield Finding(Severity.OK, f"{path} can be written", "state outlives a restart")


def of_keys(settings: Settings) -> Iterator[Finding]:
    """Whether the gossip keys can be used."""
    try:
        found = security.envelope(settings)
    except (OSError, ValueError) as error:
        yield Finding(
            Severity.ERROR,
            f"gossip.keyring_file: {error}",
            "a daemon would not start with it",
            "'wayout keygen' makes a key; one base64 key in a line, chmod 0600",
        )
        return
    if found.keyring is None:
        yield Finding(
            Severity.NOTE,
            "gossip is not encrypted",
            "whoever reaches the port can say that nodes are dead",
            "set gossip.encryption and gossip.keyring_file",
        )
    else:
        yield Finding(Severity.OK, "the gossip keys can be used", "gossip is encrypted")


def _left(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize
