"""What the admin socket understands: each verb with its arguments and the answer of the desk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent import release
from agent.desk import EXIT_USAGE, DeskError, rows_named

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agent.desk import JSON, Desk, Document

    Answer = Callable[["Desk", "Arguments"], Awaitable[JSON | list[Document]]]

LONGEST_TEXT = 253
LONGEST_TIME = 366 * 86400.0
LARGEST_COUNT = 1 << 53
HISTORY_LIMIT = 1000
RESTART_WITHIN = 30.0
LONGEST_RESTART = 600.0
"""A wish that is forgotten must not make a stop of next week keep the addresses."""


class Arguments:
    """The arguments of one request; each is taken as what it must be, or `DeskError`."""

    def __init__(self, given: Mapping[str, object]) -> None:
        self._given = given

    def text(self, name: str, default: str | None = None) -> str:
        """A short text; required if there is no default."""
        value = self._given.get(name, default)
        if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TEXT:
            raise DeskError(
                f"argument {name!r} must be a text of 1-{LONGEST_TEXT} letters", EXIT_USAGE
            )
        return value

    def has(self, name: str) -> bool:
        """Whether it was given, and is not null."""
        return self._given.get(name) is not None

    def flag(self, name: str, *, default: bool = False) -> bool:
        """True or false."""
        value = self._given.get(name, default)
        if not isinstance(value, bool):
            raise DeskError(f"argument {name!r} must be true or false", EXIT_USAGE)
        return value

    def seconds(self, name: str, default: float | None = None) -> float | None:
        """A length of time, or None."""
        value = self._given.get(name, default)
        if value is None:
            return None
        # True is an int to Python, but nobody means one second by it.
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise DeskError(f"argument {name!r} must be a number of seconds", EXIT_USAGE)
        if not 0 <= value <= LONGEST_TIME:
            raise DeskError(f"argument {name!r} must be 0-{LONGEST_TIME:.0f} seconds", EXIT_USAGE)
        return float(value)

    def count(self, name: str, default: int | None = None) -> int | None:
        """A whole number, or None."""
        value = self._given.get(name, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < LARGEST_COUNT:
            raise DeskError(f"argument {name!r} must be a whole number from 0 on", EXIT_USAGE)
        return value


@dataclass(frozen=True, slots=True)
class Verb:
    """`takes` names the arguments; a verb that `changes` something is logged with its caller."""

    answer: Answer
    takes: frozenset[str] = frozenset()
    changes: bool = False


def find(name: object, given: Mapping[str, object]) -> Verb:
    """The verb of a request whose arguments are all known to it, or `DeskError`."""
    verb = VERBS.get(name) if isinstance(name, str) else None
    if verb is None:
        raise DeskError(f"the daemon does not know the verb {str(name)[:40]!r}", EXIT_USAGE)
    if unknown := sorted(given.keys() - verb.takes):
        raise DeskError(f"{name} takes no argument {unknown[0][:40]!r}", EXIT_USAGE)
    return verb


async def _status(desk: Desk, _: Arguments) -> Document:
    return desk.status()


async def _members(desk: Desk, _: Arguments) -> list[Document]:
    return desk.members()


async def _egress_list(desk: Desk, _: Arguments) -> list[Document]:
    return desk.egress_list()


async def _egress_show(desk: Desk, given: Arguments) -> list[Document]:
    return _rows(desk, given.text("name"))


async def _egress_explain(desk: Desk, given: Arguments) -> Document:
    name = given.text("name")
    try:
        return desk.egress_explain(str(_rows(desk, name)[0]["name"]))
    except LookupError:
        raise _unknown(name) from None


def _rows(desk: Desk, name: str) -> list[Document]:
    rows = rows_named(desk.egress_list(), name)
    if not rows:
        raise _unknown(name)
    return rows


def _unknown(name: str) -> DeskError:
    return DeskError(f"there is no egress {name!r}, 'wayout egress list' shows all", EXIT_USAGE)


async def _history(desk: Desk, given: Arguments) -> list[Document]:
    return desk.history(given.count("limit", HISTORY_LIMIT) or 0)


async def _remarks(desk: Desk, _: Arguments) -> Document:
    return desk.remarks()


async def _history_after(desk: Desk, given: Arguments) -> Document:
    return await desk.history_after(given.count("after"), HISTORY_LIMIT)


async def _picture(desk: Desk, _: Arguments) -> list[Document]:
    return await desk.picture()


async def _drain(desk: Desk, given: Arguments) -> Document:
    return await desk.drain(wait=given.flag("wait"), seconds=given.seconds("seconds"))


async def _undrain(desk: Desk, _: Arguments) -> Document:
    return await desk.undrain()


async def _restart_prepare(desk: Desk, given: Arguments) -> Document:
    seconds = given.seconds("seconds", RESTART_WITHIN) or 0.0
    if seconds > LONGEST_RESTART:
        raise DeskError(f"a restart begins within {LONGEST_RESTART:.0f} seconds", EXIT_USAGE)
    return await desk.restart_prepare(seconds)


async def _reload(desk: Desk, given: Arguments) -> Document:
    return await desk.reload(
        trigger="socket",
        wait=given.flag("wait", default=True),
        dry_run=given.flag("dry_run"),
        allow_removal=given.flag("allow_removal"),
        timeout=given.seconds("seconds", 30.0) or 30.0,
    )


async def _config_show(desk: Desk, given: Arguments) -> Document:
    which = given.text("which", "running")
    if which not in ("running", "configured"):
        raise DeskError("argument 'which' must be running or configured", EXIT_USAGE)
    return desk.config_show(
        which=which, origin=given.flag("origin"), changed_only=given.flag("changed_only")
    )


async def _config_status(desk: Desk, _: Arguments) -> Document:
    return desk.config_status()


async def _config_drift(desk: Desk, _: Arguments) -> Document:
    return desk.config_drift()


async def _config_peer(desk: Desk, given: Arguments) -> Document:
    return await desk.config_peer(given.text("name"))


async def _keyring_list(desk: Desk, _: Arguments) -> Document:
    return await desk.keyring_list()


async def _keyring_change(desk: Desk, given: Arguments) -> Document:
    return await desk.keyring_change(
        operation=given.text("operation"),
        key=given.text("key"),
        node=given.text("node") if given.has("node") else None,
        force=given.flag("force"),
    )


async def _version(_desk: Desk, _: Arguments) -> Document:
    return {**release.describe()}


async def _ready(desk: Desk, _: Arguments) -> Document:
    ready, reasons = desk.ready()
    return {"ready": ready, "reasons": [*reasons]}


VERBS: Mapping[str, Verb] = {
    "status": Verb(_status),
    "members": Verb(_members),
    "egress_list": Verb(_egress_list),
    "egress_show": Verb(_egress_show, frozenset({"name"})),
    "egress_explain": Verb(_egress_explain, frozenset({"name"})),
    "history": Verb(_history, frozenset({"limit"})),
    "history_after": Verb(_history_after, frozenset({"after"})),
    "picture": Verb(_picture),
    "remarks": Verb(_remarks),
    "drain": Verb(_drain, frozenset({"wait", "seconds"}), changes=True),
    "undrain": Verb(_undrain, changes=True),
    "restart_prepare": Verb(_restart_prepare, frozenset({"seconds"}), changes=True),
    "reload": Verb(
        _reload, frozenset({"wait", "dry_run", "allow_removal", "seconds"}), changes=True
    ),
    "config_show": Verb(_config_show, frozenset({"which", "origin", "changed_only"})),
    "config_status": Verb(_config_status),
    "config_drift": Verb(_config_drift),
    "config_peer": Verb(_config_peer, frozenset({"name"})),
    "keyring_list": Verb(_keyring_list),
    "keyring_change": Verb(
        _keyring_change, frozenset({"operation", "key", "node", "force"}), changes=True
    ),
    "version": Verb(_version),
    "ready": Verb(_ready),
}
