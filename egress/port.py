"""A packet socket on one interface: frames of one ethertype in and out, without waiting."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import socket
from struct import Struct
from typing import TYPE_CHECKING

from egress import bpf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from egress.bpf import Instruction

ARP, IPV6 = 0x0806, 0x86DD
FRAMES_PER_TURN = 64
"""Read at most so many before others on the loop have their turn."""
FRAME_MAX = 1514
RECEIVE_BUFFER = 1 << 20
"""Bytes that may wait: the answers to some hundred questions come within a millisecond."""
RETRIES = 5
RETRY_PAUSE = 0.001
"""A full send queue empties in less; after five such pauses a frame counts as lost."""

SO_RCVBUFFORCE, SOL_PACKET, PACKET_IGNORE_OUTGOING = 33, 263, 23
_SIOCGIFFLAGS, _SIOCGIFHWADDR, _SIOCGIFINDEX = 0x8913, 0x8927, 0x8933
PACKET_ADD_MEMBERSHIP, PACKET_MR_ALLMULTI = 1, 2
_MEMBERSHIP = Struct("=iHH8s")
_NUMBER = Struct("16si20x")
_FLAGS = Struct("16sH22x")
_HARDWARE = Struct("16sH6s16x")
_CARRIER = 0x1 | 0x40  # IFF_UP and IFF_RUNNING
_FULL = (errno.EAGAIN, errno.ENOBUFS)


class Port:
    """Opened when made; OSError if the interface is missing or we may not.

    `hear` gets each frame with its sender's MAC still in it. Linux before 4.20 also gives us
    copies of our own frames, so whoever listens must leave our own MAC out.
    """

    def __init__(
        self,
        interface: str,
        ethertype: int,
        program: Sequence[Instruction],
        hear: Callable[[str, bytes], None],
    ) -> None:
        self.interface = interface
        self._name = os.fsencode(interface)[:15]
        self._hear = hear
        self._loop = asyncio.get_running_loop()
        # Protocol 0 hears nothing: no frame may slip in before the filter is there.
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
        try:
            self.index = self._number()
            with contextlib.suppress(PermissionError):
                self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
            with contextlib.suppress(OSError):
                self._socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            if ethertype == IPV6:  # Solicitations go to groups that a host which asks is not in.
                self._join_all_groups()
            bpf.attach(self._socket, program)
            self._socket.bind((interface, ethertype))
        except OSError:
            self._socket.close()
            raise
        self._loop.add_reader(self._socket.fileno(), self._read)

    @property
    def current(self) -> bool:
        """Whether the interface of that name is still the one we opened."""
        try:
            return self._number() == self.index
        except OSError:
            return False

    @property
    def carrier(self) -> bool:
        """Whether the link is up and plugged in, at this moment."""
        try:
            answer = fcntl.ioctl(self._socket, _SIOCGIFFLAGS, _FLAGS.pack(self._name, 0))
        except OSError:
            return False
        flags: int = _FLAGS.unpack(answer)[1]
        return flags & _CARRIER == _CARRIER

    @property
    def mac(self) -> str:
        """The hardware address, as it is now."""
        request = _HARDWARE.pack(self._name, 0, b"")
        answer: bytes = fcntl.ioctl(self._socket, _SIOCGIFHWADDR, request)
        return bytes(_HARDWARE.unpack(answer)[2]).hex(":")

    async def send(self, frame: bytes) -> None:
        """Put one frame on the wire; OSError if the link refuses it."""
        for _ in range(RETRIES):
            try:
                self._socket.send(frame)
            except OSError as error:
                if error.errno not in _FULL:
                    raise
                await asyncio.sleep(RETRY_PAUSE)
            else:
                return
        raise OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))

    def close(self) -> None:
        """Hear nothing any more."""
        if not self._loop.is_closed():
            self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    def _number(self) -> int:
        answer = fcntl.ioctl(self._socket, _SIOCGIFINDEX, _NUMBER.pack(self._name, 0))
        return int(_NUMBER.unpack(answer)[1])

    def _join_all_groups(self) -> None:
        wish = _MEMBERSHIP.pack(self.index, PACKET_MR_ALLMULTI, 0, b"")
        self._socket.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, wish)

    def _read(self) -> None:
        for _ in range(FRAMES_PER_TURN):
            try:
                frame = self._socket.recv(FRAME_MAX)
            except BlockingIOError:
                return
            except OSError:
                # Said once when the link goes down; when it is back up, frames come again.
                return
            self._hear(self.interface, frame)
