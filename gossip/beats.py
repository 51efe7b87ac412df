"""The second socket on the gossip port: the kernel steers plain heartbeats to it.

Heartbeats are most of what an idle node is sent, and nobody need be woken for one: whoever watches
looks before it misses anybody, and reads from the kernel's time stamp when each one came. All the
rest goes to the first socket of the group, as everything does where the kernel cannot tell.
Sources: socket(7) SO_REUSEPORT and SO_TIMESTAMPNS, SO_ATTACH_REUSEPORT_CBPF (Linux 4.5).
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import socket
import time
from struct import Struct
from typing import TYPE_CHECKING

from gossip import refusals
from gossip.beat import PREFIX
from gossip.wire import checksum, codec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SO_TIMESTAMPNS = 35
_SO_ATTACH_REUSEPORT_CBPF = 51
_INSTRUCTION, _PROGRAM, _TIME = Struct("=HBBI"), Struct("@HP"), Struct("@qq")
_LOAD_BYTE, _LOAD_WORD, _JUMP_EQUAL, _RETURN = 0x30, 0x20, 0x15, 0x06
TURN = 64
"""Heartbeats that are taken before others on the loop have their turn."""
BEAT_MAX = 2048
Waiting = tuple[bytes, object, float]
NOTES = socket.CMSG_SPACE(_TIME.size)
_WORD = int.from_bytes(bytes([codec.USER]) + PREFIX, "big")
# The word that begins a heartbeat, behind the checksum if there is one: socket 1, else socket 0.
_STEERING = (
    (_LOAD_BYTE, 0, 0, 0),
    (_JUMP_EQUAL, 0, 2, checksum.KIND),
    (_LOAD_WORD, 0, 0, checksum.OVERHEAD),
    (_JUMP_EQUAL, 2, 3, _WORD),
    (_LOAD_WORD, 0, 0, 0),
    (_JUMP_EQUAL, 0, 1, _WORD),
    (_RETURN, 0, 0, 1),
    (_RETURN, 0, 0, 0),
)


def share(first: socket.socket) -> None:
    """To be called before `first` is bound: others of ours may have the same address."""
    with contextlib.suppress(OSError):
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


class Beats:
    """Opened beside `first`, which is bound; without the kernel's help there is nothing to read.

    `beaten` is called when some wait, while that is wanted.
    """

    def __init__(self, first: socket.socket, beaten: Callable[[], None]) -> None:
        self._beaten = beaten
        self._hearing = False
        self._looked = 0.0
        self._socket = _second(first)

    def hearken(self, *, wanted: bool) -> None:
        """Be woken by each, or not at all; to be called on the loop."""
        if wanted == self._hearing or self._socket is None:
            return
        self._hearing = wanted
        loop = asyncio.get_running_loop()
        if wanted:
            loop.add_reader(self._socket, self._beaten)
        else:
            loop.remove_reader(self._socket)

    def take(self, now: float) -> tuple[list[Waiting], OSError | None]:
        """Those that wait, with how many seconds they did, and what failed on the way, if anything.

        Where more wait than a turn may take, `beaten` is called again in the next.
        """
        taken: list[Waiting] = []
        looked, self._looked = self._looked, now
        failure = None
        for _ in range(TURN if self._socket is not None else 0):
            assert self._socket is not None
            try:
                data, source, age = _read(self._socket)
            except BlockingIOError:
                break
            except OSError as failed:
                failure = failed
            else:
                taken.append((data, source, min(age, now - looked)))
        else:
            if self._socket is not None:
                asyncio.get_running_loop().call_soon(self._beaten)
        return taken, failure

    def refused(self) -> Iterator[tuple[str, int]]:
        """Where nobody listens: the kernel tells either socket of what was sent by the first."""
        return iter(()) if self._socket is None else refusals.take(self._socket)

    def close(self) -> None:
        """Idempotent."""
        self.hearken(wanted=False)
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _second(first: socket.socket) -> socket.socket | None:
    beats = socket.socket(first.family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        _steer(first)
        beats.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        beats.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        refusals.ask_for(beats)
        beats.bind(first.getsockname())
    except OSError:
        beats.close()
        return None
    return beats


def _read(beats: socket.socket) -> tuple[bytes, object, float]:
    data, notes, _, source = beats.recvmsg(BEAT_MAX, NOTES)
    age = 0.0
    for level, kind, note in notes:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(note) == _TIME.size:
            seconds, nanoseconds = _TIME.unpack(note)
            age = time.time() - seconds - nanoseconds / 1e9
    return data, source, max(age, 0.0)


def _steer(first: socket.socket) -> None:
    code = ctypes.create_string_buffer(b"".join(_INSTRUCTION.pack(*each) for each in _STEERING))
    program = _PROGRAM.pack(len(_STEERING), ctypes.addressof(code))
    first.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_REUSEPORT_CBPF, program)
