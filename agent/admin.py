"""The admin socket: one JSON request a line, one JSON reply a line, for whoever may open it.

The mode of the socket file is the whole access control; who changed something is logged from
SO_PEERCRED.
"""

from __future__ import annotations

import asyncio
import errno
import grp
import json
import os
import socket
import stat
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from agent.desk import EXIT_FAILED, EXIT_USAGE, DeskError, encode
from agent.verbs import Arguments, find

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.desk import Desk
    from agent.verbs import Verb

REQUEST_LIMIT = 64 * 1024
CONNECTIONS_LIMIT = 32
REQUEST_PATIENCE = 30.0
"""Seconds that a connection may stay silent."""
ANSWER_PATIENCE = 3600.0
"""Seconds that a verb may take; those that wait have shorter limits of their own."""
WRITE_PATIENCE = 10.0
KNOCK_PATIENCE = 1.0
"""Seconds that a living daemon may take to accept a connection."""
PATH_LIMIT = 106
"""Bytes in a socket's path: 108 less the final NUL and the mark of a socket that is not ready."""
MODE = 0o660

log = structlog.get_logger("wayout.admin")


class AdminServer:
    """Serves `desk` on one socket; another path is another server, started before this closes."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._identity: tuple[int, int] | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._retired = False

    async def start(self, path: str | Path, *, mode: int = MODE, group: str | None = None) -> None:
        """Listen on `path`; OSError with a clear text if that cannot be.

        The socket of a dead daemon is replaced, that of a living one is not.
        """
        self._path = Path(path)
        await asyncio.to_thread(_require_free, self._path)
        listener = _listener(self._path, mode, group)
        self._identity = _identity(self._path)
        self._server = await asyncio.start_unix_server(
            self._converse, sock=listener, limit=REQUEST_LIMIT, backlog=CONNECTIONS_LIMIT
        )

    async def close(self) -> None:
        """Stop listening, end every conversation, and take our own socket file away."""
        if self._server is None or self._path is None:
            return
        self._server.close()
        serving = [task for task in self._serving if task is not asyncio.current_task()]
        for task in serving:
            task.cancel()
        if serving:
            await asyncio.wait(serving, timeout=WRITE_PATIENCE)
        self._unlink(self._path)
        self._server = None

    async def retire(self) -> None:
        """Stop listening; who has asked gets an answer: it may be about this very change."""
        if self._server is not None and self._path is not None:
            self._retired = True
            self._server.close()
            self._unlink(self._path)

    @property
    def busy(self) -> bool:
        """Whether a conversation goes on."""
        return bool(self._serving)

    def _unlink(self, path: Path) -> None:
        # A successor may already have put its own socket there.
        if _identity(path) == self._identity:
            path.unlink(missing_ok=True)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            if len(self._serving) > CONNECTIONS_LIMIT:
                await _write(writer, _failure("too many connections, try again", EXIT_FAILED))
                return
            while await self._exchange(reader, writer) and not self._retired:
                pass
        except (ConnectionError, TimeoutError):
            log.debug("admin.connection_lost")
        finally:
            self._serving.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its reply; False when there is nothing more to be said."""
        try:
            async with asyncio.timeout(REQUEST_PATIENCE):
                line = await reader.readline()
        except ValueError:
            await _write(writer, _failure("the request is larger than 64 KiB", EXIT_USAGE))
            return False
        if not line:
            return False
        await _write(writer, await self._reply(line, writer))
        return True

    async def _reply(self, line: bytes, writer: asyncio.StreamWriter) -> bytes:
        try:
            name, given = _request(line)
            verb = find(name, given)
        except DeskError as refusal:
            return _failure(refusal.message, refusal.code)
        reply, outcome = await self._answer(verb, given)
        if verb.changes:
            log.info("admin.verb_called", verb=name, outcome=outcome, **_caller(writer))
        return reply

    async def _answer(self, verb: Verb, given: Mapping[str, object]) -> tuple[bytes, str]:
        try:
            async with asyncio.timeout(ANSWER_PATIENCE):
                data = await verb.answer(self._desk, Arguments(given))
        except DeskError as refusal:
            return _failure(refusal.message, refusal.code), refusal.message
        except TimeoutError:
            return _failure("the daemon took too long", EXIT_FAILED), "timeout"
        return b'{"ok":true,"data":' + await encode(data) + b"}\n", "ok"


def _request(line: bytes) -> tuple[str, dict[str, object]]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        raise DeskError("the request is no JSON", EXIT_USAGE) from None
    match request:
        case {"verb": str(name), **rest}:
            given = rest.pop("arguments", {})
            if not rest and isinstance(given, dict):
                return name, given
        case _:
            pass
    raise DeskError('a request is {"verb": "…", "arguments": {…}}', EXIT_USAGE)


def _failure(message: str, code: int) -> bytes:
    reply = {"ok": False, "error": message, "code": code}
    return json.dumps(reply, ensure_ascii=False).encode() + b"\n"


async def _write(writer: asyncio.StreamWriter, reply: bytes) -> None:
    writer.write(reply)
    async with asyncio.timeout(WRITE_PATIENCE):
        await writer.drain()


def _caller(writer: asyncio.StreamWriter) -> dict[str, int]:
    layout = struct.Struct("3i")
    raw = writer.get_extra_info("socket").getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, layout.size
    )
    pid, uid, gid = layout.unpack(raw)
    return {"pid": pid, "uid": uid, "gid": gid}


def _require_free(path: Path) -> None:
    """Raise unless nothing is at `path`, or the socket of a daemon that is no more.

    The folder is made if need be: only a service manager would have made it before.
    """
    if len(os.fsencode(path)) > PATH_LIMIT:
        raise OSError(errno.ENAMETOOLONG, f"socket path of more than {PATH_LIMIT} bytes", str(path))
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    try:
        found = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found):
        raise OSError(errno.EEXIST, "something that is no socket is in the way", str(path))
    with socket.socket(socket.AF_UNIX) as knock:
        knock.settimeout(KNOCK_PATIENCE)
        try:
            knock.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return
        except TimeoutError:
            # A full backlog: whoever listens there is busy, not dead.
            pass
    raise OSError(errno.EADDRINUSE, "another wayout daemon listens on this socket", str(path))


def _listener(path: Path, mode: int, group: str | None) -> socket.socket:
    """A listening socket that appears at `path` in one step, with its mode already right."""
    unready = path.with_name(path.name + "~")
    unready.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(os.fspath(unready))
        unready.chmod(mode)
        if group is not None:
            _give(unready, group)
        listener.listen(CONNECTIONS_LIMIT)
        unready.rename(path)
    except OSError as error:
        listener.close()
        raise OSError(error.errno, error.strerror, str(path)) from error
    return listener


def _give(path: Path, group: str) -> None:
    try:
        os.chown(path, -1, grp.getgrnam(group).gr_gid)
    except (KeyError, PermissionError) as error:
        log.warning("admin.group_unusable", group=group, reason=str(error))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
