"""A netlink socket with a thread of its own, because the kernel may put whoever asks to sleep.

Requests of rtnetlink run inside `send`, under a lock that the whole machine shares: while a
hundred pods are torn down it is held for tens of milliseconds at a time, and longer. The loop
must not wait there, so each lane has one thread, and requests take turns: a piece of a bulk,
then the urgent address, then the next piece.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import socket
from concurrent.futures import ThreadPoolExecutor
from struct import Struct
from typing import TYPE_CHECKING

from egress import rtnetlink

if TYPE_CHECKING:
    from collections.abc import Sequence

SOL_NETLINK = 270
NETLINK_CAP_ACK, NETLINK_EXT_ACK = 10, 11
CHUNK = 65536
"""No datagram of the kernel is longer; dumps come in 32 KiB."""
ANSWER_MAX = 65536
"""Datagrams in one answer: 2 GiB of dump."""
_PATIENCE = Struct("=qq")


class Lane:
    """Requests to rtnetlink, one at a time, off the loop."""

    def __init__(self, name: str, patience: float) -> None:
        self._patience = patience
        self._sequence = itertools.count(1)
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.setsockopt(SOL_NETLINK, NETLINK_CAP_ACK, 1)
        self._socket.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        # The kernel answers before `send` returns; this only bounds a bug.
        self._socket.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, _PATIENCE.pack(max(1, int(patience)), 0)
        )
        self._socket.bind((0, 0))
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    @property
    def pid(self) -> int:
        """The number by which the kernel knows this socket."""
        return int(self._socket.getsockname()[0])

    def numbers(self, count: int) -> list[int]:
        """Sequence numbers for `count` requests."""
        return [number & 0xFFFFFFFF for number in itertools.islice(self._sequence, count)]

    async def ask(self, requests: Sequence[bytes], last: int) -> list[bytes]:
        """Send all requests at once; the datagrams up to the answer to number `last`.

        OSError as the socket gives it; TimeoutError when the kernel took longer than patience,
        and then the requests may still take effect.
        """
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._patience):
            return await loop.run_in_executor(self._thread, self._exchange, requests, last)

    def _exchange(self, requests: Sequence[bytes], last: int) -> list[bytes]:
        self._socket.send(b"".join(requests))
        answers: list[bytes] = []
        while len(answers) < ANSWER_MAX:
            answers.append(self._socket.recv(CHUNK))
            if rtnetlink.ends(answers[-1], last):
                return answers
        raise OSError(errno.EMSGSIZE, "the answer has no end")

    def close(self) -> None:
        """Let go of the socket once the thread is out of the kernel; nobody waits for that."""
        self._thread.submit(self._socket.close)
        self._thread.shutdown(wait=False)
