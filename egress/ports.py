"""The packet sockets of this host: one for each interface and family, opened when first needed."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING

from egress import packets
from egress.port import ARP, IPV6, Port
from egress.refusals import refusal, refusal_of

if TYPE_CHECKING:
    from collections.abc import Callable

PORTS_MAX = 256
"""Packet sockets that may be open."""

_KINDS = {4: (ARP, packets.ARP_FILTER), 6: (IPV6, packets.ND_FILTER)}
_FATAL = (errno.EPERM, errno.EACCES, errno.EMFILE, errno.ENFILE)


@dataclass(frozen=True, slots=True)
class Door:
    """A socket, with the hardware address that its frames go out under."""

    port: Port
    mac: str


class Ports:
    """`hear` gets the interface and each frame that comes in."""

    def __init__(self, hear: Callable[[str, bytes], None]) -> None:
        self._hear = hear
        self._open: dict[tuple[str, int], Port] = {}

    @property
    def macs(self) -> list[str]:
        """The hardware addresses that we speak under."""
        return [port.mac for port in self._open.values() if port.current]

    def door(self, interface: str, version: int, action: str) -> Door | None:
        """For that family there; None if there is no such interface.

        KernelError for `action` if we may not, or if too many are open.
        """
        key = (interface, version)
        port = self._open.get(key)
        if port is not None and not port.current:  # Another interface of the same name.
            port.close()
            del self._open[key]
            port = None
        if port is None and len(self._open) >= PORTS_MAX:
            raise refusal(action, errno.EMFILE)
        try:
            port = self._open[key] = port or Port(interface, *_KINDS[version], self._hear)
            return Door(port, port.mac)
        except OSError as error:
            if error.errno in _FATAL:
                raise refusal_of(action, error) from error
            return None

    def close(self) -> None:
        """Hear and say nothing any more."""
        for port in self._open.values():
            port.close()
        self._open.clear()
