"""What the kernel knows of datagrams that came to nothing: the error queue of a socket.

With IP_RECVERR an ICMP error about an earlier datagram does two things. It stands in the error
queue, with the destination it is about; and it fails the next call on the socket, whoever that is
meant for. So whoever asks for the queue must empty it at every failure, and say again what failed:
an entry left there keeps the socket ready for ever, and a loop that waits for it never sleeps.
Source: ip(7), ipv6(7), recvmsg(2).
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIONS = {
    socket.AF_INET: (socket.IPPROTO_IP, 11),  # IP_RECVERR
    socket.AF_INET6: (socket.IPPROTO_IPV6, 25),  # IPV6_RECVERR
}
FLAGS = int(socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
ENTRIES_MAX = 1024
"""Entries taken at once; the kernel bounds the queue by the receive buffer."""
NOTES_BYTES = 512
_EXTENDED_ERROR = struct.Struct("=IBBBBII")


def ask_for(datagrams: socket.socket) -> None:
    """Let the kernel tell; where it cannot, everything else works just the same."""
    with contextlib.suppress(OSError):
        datagrams.setsockopt(*OPTIONS[datagrams.family], 1)


def take(datagrams: socket.socket) -> Iterator[tuple[str, int]]:
    """Empty the queue; the destinations where a living host said that nobody listens."""
    for _ in range(ENTRIES_MAX):
        try:
            _, notes, _, target = datagrams.recvmsg(0, NOTES_BYTES, FLAGS)
        except BlockingIOError:
            return
        except OSError:
            continue  # the failure of an earlier call, which is reported first
        if target and any(_nobody_listens(note) for _, _, note in notes):
            yield target[0], target[1]


def _nobody_listens(note: bytes) -> bool:
    if len(note) < _EXTENDED_ERROR.size:
        return False
    return bool(_EXTENDED_ERROR.unpack_from(note)[0] == errno.ECONNREFUSED)
