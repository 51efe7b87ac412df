"""The only configuration of structlog: one line a record, JSON unless a person is watching.

Built upon the standard library's loggers, so that a new level reaches loggers that are already
bound (structlog's own filter would not) and foreign libraries come out in the same shape.
"""

from __future__ import annotations

import logging
import os
import re
import select
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from structlog.typing import EventDict, Processor

STDERR = 2
PIECE = 4096
"""PIPE_BUF: a pipe that poll calls writable takes that much at once."""
BLOCKED_PATIENCE_MS = 20
DEPTH_LIMIT = 4
OURS = "wayout"

REDACTED = "[redacted]"
SECRET_NAMES = frozenset(
    {"secret", "token", "password", "passphrase", "authorization", "private_key", "keyring"}
)
# AES keys in base64 (16 and 32 bytes; 24 have no padding to know them by), bearer tokens, PEM.
SECRET_TEXT = re.compile(
    r"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/]{22}==|[A-Za-z0-9+/]{43}=)(?![A-Za-z0-9+/=])"
    r"|(?i:bearer)\s+[A-Za-z0-9._~+/-]{8,}=*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)

_adjusted: set[str] = set()


def configure(
    *,
    level: str = "info",
    shape: str = "auto",
    node: str = "",
    descriptor: int = STDERR,
) -> None:
    """Set everything up; again at any time, for what a reload may change.

    `shape` is auto, json or console; `level` debug, info, warning or error; `node` goes into
    every record.
    """
    person = shape == "console" or (shape == "auto" and os.isatty(descriptor))
    before: list[Processor] = [
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        _Node(node),
        _timestamp,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *before,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    last = _last(person=person, colors=os.isatty(descriptor))
    _use(Unhurried(descriptor), before, last)
    set_levels(level)


def _use(handler: logging.Handler, before: list[Processor], last: list[Processor]) -> None:
    """Make `handler` the only one."""
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=before, processors=last)
    )
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)


def set_levels(level: str, levels: Mapping[str, str] | None = None) -> None:
    """The level of everything of ours, and exceptions for single loggers by name."""
    for name in _adjusted - (levels or {}).keys():
        logging.getLogger(name).setLevel(logging.NOTSET)
    _adjusted.clear()
    logging.getLogger(OURS).setLevel(level.upper())
    for name, single in (levels or {}).items():
        logging.getLogger(name).setLevel(single.upper())
        _adjusted.add(name)


def redact(_logger: object, _method: str, record: EventDict) -> EventDict:
    """No secret leaves in a log line, whether it came under its name or inside a text."""
    return {name: _without_secrets(name, value, DEPTH_LIMIT) for name, value in record.items()}


def _without_secrets(name: str, value: object, depth: int) -> object:
    if name.lower() in SECRET_NAMES:
        return REDACTED
    match value:
        case str():
            return SECRET_TEXT.sub(REDACTED, value)
        case bytes():
            return f"{len(value)} bytes"
        case dict() if depth:
            return {
                str(key): _without_secrets(str(key), each, depth - 1) for key, each in value.items()
            }
        case list() | tuple() | set() | frozenset() if depth:
            return [_without_secrets("", each, depth - 1) for each in value]
        case None | bool() | int() | float():
            return value
        case _:
            return SECRET_TEXT.sub(REDACTED, str(value))


def _last(*, person: bool, colors: bool) -> list[Processor]:
    plain = structlog.dev.plain_traceback
    return [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        # The plain one: a pretty traceback shows locals, and with them keys.
        structlog.processors.format_exc_info,
        redact,
        structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)
        if person
        else structlog.processors.JSONRenderer(ensure_ascii=False),
    ]


class _Node:
    """Puts the name of this node into each record."""

    def __init__(self, node: str) -> None:
        self._node = node

    def __call__(self, _logger: object, _method: str, record: EventDict) -> EventDict:
        if self._node:
            record.setdefault("node", self._node)
        return record


def _timestamp(_logger: object, _method: str, record: EventDict) -> EventDict:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    record["timestamp"] = now.removesuffix("+00:00") + "Z"
    return record


class Unhurried(logging.Handler):
    """Writes to a descriptor without ever waiting for its reader.

    A log collector that hangs would otherwise stop the loop, and with it the renewal of leases.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, or count it as dropped."""
        line = (self.format(record) + "\n").encode(errors="backslashreplace")
        if not self._write(line):
            self._dropped += 1
        elif self._dropped:
            count, self._dropped = self._dropped, 0
            structlog.get_logger("wayout.logs").warning("logs.lines_dropped", count=count)

    def _write(self, line: bytes) -> bool:
        patience = 0
        while line:
            try:
                if not self._poll.poll(patience):
                    return False
                line = line[os.write(self._descriptor, line[:PIECE]) :]
            except OSError:
                return False
            # A line that has begun is worth a moment, for the sake of those who parse it.
            patience = BLOCKED_PATIENCE_MS
        return True
