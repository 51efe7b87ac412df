"""The observer: asks the LAN who has each address, all the time, and says what changes.

    python -I -m agent.lab.observer '{"interface": "eth0", …}'

It speaks from packet sockets and reads the answers there, so no neighbour cache, its kernel's
own included, has a say. It has none of the addresses and never answers. One line of JSON per
change goes to standard output (`agent.lab.recorder`); it ends when its standard input does, so
it never outlives whoever started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
import time
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from struct import Struct
from typing import TYPE_CHECKING, Final

from agent.lab.recorder import Recorder, line
from egress import bpf, packets
from egress.packets import ARP_FILTER, ETH_ARP, ETH_IPV6, ND_FILTER, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from egress.packets import Sighting

FRAME_MAX = 256
"""An ARP reply has 42 bytes or 60, an advertisement 86."""
KNOWN_MAX = 65536
"""Different frames that are remembered; those of one cluster are far fewer."""
RECEIVE_BUFFER = 1 << 21
SO_TIMESTAMPNS, SO_RCVBUFFORCE = 35, 33
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
_TIMESPEC = Struct("@qq")
_ANCILLARY: Final = socket.CMSG_SPACE(_TIMESPEC.size)


@dataclass(frozen=True, slots=True)
class Order:
    """What to observe: as whom to ask, about what, and how often (seconds)."""

    interface: str
    mac: str
    ip4: str
    ip6: str
    ips: tuple[str, ...]
    interval: float

    def text(self) -> str:
        """As the one argument of the program."""
        names = ("interface", "mac", "ip4", "ip6", "ips", "interval")
        return json.dumps({name: getattr(self, name) for name in names})


def order(text: str) -> Order:
    """Back from the argument."""
    plain = json.loads(text)
    return Order(**{**plain, "ips": tuple(plain["ips"])})


class _Ear:
    """One packet socket, and what the frames on it say."""

    def __init__(self, task: Order, ethertype: int) -> None:
        self._mac = bytes.fromhex(task.mac.replace(":", ""))
        self._asked = frozenset(ip_address(each) for each in task.ips)
        self._known: dict[bytes, tuple[str, str, bool] | None] = {}
        # Protocol 0 hears nothing: no frame may slip in before the filter is there.
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
        with contextlib.suppress(PermissionError):
            self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        with contextlib.suppress(OSError):  # Linux before 4.20
            self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        bpf.attach(self.socket, ARP_FILTER if ethertype == ETH_ARP else ND_FILTER)
        self.socket.bind((task.interface, ethertype))

    def hear(self, recorder: Recorder, offset: float) -> None:
        """Everything that has come; `offset` turns the kernel's wall clock into monotonic time."""
        while True:
            try:
                frame, extra, _, _ = self.socket.recvmsg(FRAME_MAX, _ANCILLARY)
            except BlockingIOError:
                return
            except OSError:  # The link went down; said once.
                return
            if (known := self._meaning(frame)) is None:
                continue
            seconds, nanoseconds = _TIMESPEC.unpack_from(extra[0][2])
            ip, mac, answer = known
            at = round(seconds + nanoseconds / 1e9 + offset, 6)
            recorder.heard(ip, mac, at) if answer else recorder.announced(ip, mac, at)

    def _meaning(self, frame: bytes) -> tuple[str, str, bool] | None:
        # The answers of a host are the same byte for byte, so each is taken apart but once.
        if frame not in self._known:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[frame] = self._read(frame)
        return self._known[frame]

    def _read(self, frame: bytes) -> tuple[str, str, bool] | None:
        sighting = packets.read(frame)
        if sighting is None or sighting.claims not in self._asked:
            return None
        if sighting.kind is Kind.REPLY and frame[:6] == self._mac:
            return str(sighting.claims), sighting.mac, True
        return (str(sighting.claims), sighting.mac, False) if _unasked(sighting) else None


def _unasked(sighting: Sighting) -> bool:
    """Whether it announces: a request about one's own address, or a reply to everybody."""
    return sighting.kind is Kind.REPLY or sighting.sender == sighting.target


class Observer:
    """Asks, listens, and writes down changes."""

    def __init__(self, task: Order) -> None:
        self._interval = task.interval
        self._arp, self._nd = _Ear(task, ETH_ARP), _Ear(task, ETH_IPV6)
        self._frames = [
            (self._nd if ":" in ip else self._arp, _question(task, ip)) for ip in task.ips
        ]

    def run(self) -> None:
        """Until standard input ends or standard output is closed."""
        recorder = Recorder(self._ask())
        due = time.monotonic() + self._interval
        while not self._over(due):
            self._listen(recorder)
            said = recorder.asked(self._ask())
            if said:
                os.write(1, b"".join(line(each).encode() + b"\n" for each in said))
            # What was missed while we could not run is not made up for.
            due = max(due + self._interval, time.monotonic())

    def _listen(self, recorder: Recorder) -> None:
        offset = time.monotonic() - time.time()
        self._arp.hear(recorder, offset)
        self._nd.hear(recorder, offset)

    def _ask(self) -> float:
        began = round(time.monotonic(), 6)
        for ear, frame in self._frames:
            with contextlib.suppress(OSError):  # Unplugged, or the queue is full: nobody hears it.
                ear.socket.send(frame)
        return began

    def _over(self, due: float) -> bool:
        """Wait for the next turn; True if whoever started us is gone or wants no more."""
        ready, _, _ = select.select([0], [], [], max(due - time.monotonic(), 0))
        return bool(ready) and not os.read(0, FRAME_MAX)


def _question(task: Order, ip: str) -> bytes:
    match ip_address(ip):
        case IPv4Address() as target:
            return packets.arp_request(task.mac, IPv4Address(task.ip4), target)
        case IPv6Address() as target:
            return packets.solicitation(task.mac, IPv6Address(task.ip6), target)


def main(argv: Sequence[str]) -> None:
    """Observe until told to end."""
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        Observer(order(argv[1])).run()


if __name__ == "__main__":
    main(sys.argv)
