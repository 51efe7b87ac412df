"""The other end of the admin socket: ask the daemon and wait, with the standard library alone.

Nothing is imported that a short command would have to wait for.
"""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any

DEFAULT_SOCKET = "/run/wayout/admin.sock"
REPLY_LIMIT = 64 * 1024 * 1024
CHUNK = 256 * 1024
EXIT_FAILED = 1
EXIT_USAGE = 2

Answer = dict[str, Any]
"""A document of the contract, as JSON gives it."""


class ClientError(Exception):
    """What happened, why, and what to do; `code` is the exit code."""

    def __init__(self, message: str, code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


def call(
    socket_path: str | None, verb: str, *, timeout: float = 10.0, **arguments: object
) -> Answer:
    """The daemon's answer to `verb`, within `timeout` seconds in all; ClientError if there is none.

    `socket_path` None means WAYOUT_SOCKET or the default.
    """
    data = ask(socket_path, verb, timeout=timeout, **arguments)
    if not isinstance(data, dict):
        raise _misunderstood(verb)
    return data


def rows(
    socket_path: str | None, verb: str, *, timeout: float = 10.0, **arguments: object
) -> list[Answer]:
    """As `call`, for a verb whose answer is a list."""
    data = ask(socket_path, verb, timeout=timeout, **arguments)
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise _misunderstood(verb)
    return data


def ask(socket_path: str | None, verb: str, *, timeout: float, **arguments: object) -> object:
    """The answer as it comes."""
    path = socket_path or os.environ.get("WAYOUT_SOCKET") or DEFAULT_SOCKET
    request = json.dumps({"verb": verb, "arguments": arguments}).encode() + b"\n"
    deadline = time.monotonic() + timeout
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.settimeout(timeout)
            connection.connect(path)
            connection.sendall(request)
            line = _line(connection, deadline)
        except OSError as error:
            raise _trouble(error, path, timeout) from error
    return _data(line, verb)


def _line(connection: socket.socket, deadline: float) -> bytes:
    received = bytearray()
    while not received.endswith(b"\n"):
        if len(received) > REPLY_LIMIT:
            raise ClientError("the answer of the daemon is too long, nothing was read")
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        chunk = connection.recv(CHUNK)
        if not chunk:
            break
        received += chunk
    return bytes(received)


def _data(line: bytes, verb: str) -> object:
    if not line:
        raise ClientError("the daemon hung up without an answer, look into its log")
    try:
        reply = json.loads(line)
    except ValueError:
        raise _misunderstood(verb) from None
    match reply:
        case {"ok": True, "data": data}:
            return data
        case {"ok": False, "error": str(message), "code": int(code)}:
            raise ClientError(message, code)
        case _:
            raise _misunderstood(verb)


def _misunderstood(verb: str) -> ClientError:
    return ClientError(
        f"the answer to {verb!r} makes no sense, is the daemon of another version? "
        "compare 'wayout version' with the version in 'wayout status'"
    )


def _trouble(error: OSError, path: str, timeout: float) -> ClientError:
    match error:
        case FileNotFoundError():
            return ClientError(
                f"no daemon at {path}, the socket does not exist, start it "
                "('systemctl start wayout' or 'wayout run') or name its socket with --socket"
            )
        case ConnectionRefusedError():
            return ClientError(
                f"no daemon at {path}, nobody listens on the socket, "
                "start it ('systemctl start wayout' or 'wayout run')"
            )
        case PermissionError():
            return ClientError(
                f"no permission to open {path}, ask as root or as a member of the socket's group"
            )
        case TimeoutError():
            return ClientError(
                f"no answer from the daemon within {timeout:g} s, it may be overloaded or stopped, "
                "look at its log and at 'systemctl status wayout'"
            )
        case BrokenPipeError() | ConnectionResetError():
            return ClientError("the daemon hung up, it may be stopping, try again")
        case _:
            why = error.strerror or error
            return ClientError(f"cannot ask the daemon at {path}, {why}, check --socket")
