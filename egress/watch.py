"""The event socket: wakes us when links or addresses changed by another hand than ours.

Events are hints and dumps are truth: whoever is woken looks for himself. So events conflate, and
a lost one (ENOBUFS) is as good as one that was read.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from egress import bpf, rtnetlink
from egress.model import PROTOCOL
from egress.rtnetlink import Address, Link

if TYPE_CHECKING:
    from egress.echoes import Echoes, Key

RTMGRP = 0x1 | 0x10 | 0x100  # links, IPv4 addresses, IPv6 addresses
RECEIVE_BUFFER = 4 << 20
"""Bytes of events that may wait; 2000 additions at once overran 8 KiB, and 3000 nearly 416 KiB."""
DATAGRAMS_PER_TURN = 128
"""Read at most so many before others on the loop have their turn: a third of a millisecond."""
LINKS_MAX = 16384
"""Links remembered to tell news from repetition."""
REMOVERS_MAX = 1024
SO_RCVBUFFORCE = 33

_BLIND = rtnetlink.IFA_F_TENTATIVE | rtnetlink.IFA_F_DADFAILED
_SKF_AD_NLATTR = 0xFFFFF000 + 12  # the kernel's own search for a netlink attribute
NOT_OURS = (
    (0x28, 0, 0, 4),  # the type, which BPF reads in network order
    (0x15, 0, 9, socket.htons(rtnetlink.RTM_NEWADDR)),
    (0x30, 0, 0, 18),  # its flags
    (0x45, 7, 0, _BLIND),
    (0x01, 0, 0, rtnetlink.IFA_PROTO),
    (0x00, 0, 0, 24),  # attributes begin here
    (0x20, 0, 0, _SKF_AD_NLATTR),
    (0x15, 3, 0, 0),
    (0x07, 0, 0, 0),
    (0x50, 0, 0, 4),
    (0x15, 1, 0, PROTOCOL),
    (0x06, 0, 0, 0xFFFFFFFF),
    (0x06, 0, 0, 0),
)
"""Drops new addresses that wear our mark: renewals, of which there may be thousands a second."""


class Watch:
    """Hears of changes from the moment it is made; reads them once somebody waits."""

    def __init__(self, echoes: Echoes) -> None:
        self._echoes = echoes
        self._news: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._links: dict[int, Link] = {}
        self._programs: dict[int, str] = {}
        self.removers: dict[Key, str] = {}
        """Who took away which address last, as far as the kernel tells: of IPv4 alone."""
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE
        )
        with contextlib.suppress(PermissionError):
            self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
        bpf.attach(self._socket, NOT_OURS)
        self._socket.bind((0, RTMGRP))

    async def changed(self) -> None:
        """Return when something changed since the last call, or may have."""
        if self._news is None:
            self._news = asyncio.Event()
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._socket.fileno(), self._read)
        await self._news.wait()
        self._news.clear()

    def _read(self) -> None:
        assert self._news is not None
        self._programs.clear()
        for _ in range(DATAGRAMS_PER_TURN):
            try:
                data = self._socket.recv(65536)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self._links.clear()  # What they last said may be among what was lost.
                self._news.set()
                return
            if any(self._is_news(message) for message in rtnetlink.decode(data)):
                self._news.set()

    def _is_news(self, message: rtnetlink.Message) -> bool:
        if isinstance(message, Address):
            assert self._loop is not None
            news = not self._echoes.recognises(message, self._loop.time())
            if news and message.gone and message.pid:
                self._blame(message)
            return news
        if not isinstance(message, Link):
            return False
        if message.gone:
            return self._links.pop(message.index, None) is not None
        if self._links.get(message.index) == message:
            return False  # The kernel repeats itself when a counter or a group changed.
        if len(self._links) < LINKS_MAX:
            self._links[message.index] = message
        return True

    def _blame(self, message: Address) -> None:
        """Remember the program while it lives; `ip` ends within milliseconds."""
        if message.pid not in self._programs:
            self._programs[message.pid] = _program(message.pid)
        key = (message.packed, message.index)
        self.removers.pop(key, None)
        self.removers[key] = self._programs[message.pid]
        if len(self.removers) > REMOVERS_MAX:
            del self.removers[next(iter(self.removers))]

    def close(self) -> None:
        """Hear nothing any more."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._socket.fileno())
        self._socket.close()


def _program(pid: int) -> str:
    """The program behind a netlink socket, whose number is most often that of its process."""
    try:
        name = Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return f"a program that has ended (pid {pid})"
    return f"{''.join(each for each in name if each.isprintable())} (pid {pid})"
