"""ARP and neighbour discovery as Ethernet frames: made and read, never answered here.

Sources: RFC 826 (ARP), RFC 5227 (probes and conflicts), RFC 4861 (neighbour discovery), and
kernel facts K11 (what makes a Linux neighbour take a new MAC).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address, IPv6Address
from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from egress.model import IP

ETH_ARP, ETH_IPV6, ETH_VLAN = 0x0806, 0x86DD, 0x8100
BROADCAST = b"\xff" * 6
NO_MAC = b"\0" * 6
UNKNOWN4 = IPv4Address(0)
UNKNOWN6 = IPv6Address(0)
ALL_NODES = IPv6Address("ff02::1")
SOLICITED = int(IPv6Address("ff02::1:ff00:0"))
ICMPV6, SOLICITATION, ADVERTISEMENT = 58, 135, 136
HOP_LIMIT = 255
"""Neighbour discovery with a smaller one came through a router and does not count."""
OVERRIDE = 0x20000000
SOURCE_MAC, TARGET_MAC = 1, 2

_ETHERNET = Struct("!6s6sH")
_ARP = Struct("!HHBBH6s4s6s4s")
_IPV6 = Struct("!IHBB16s16s")
_ND = Struct("!BBHI16s")
_OPTION = Struct("!BB6s")
_PSEUDO = Struct("!16s16sII")


class Kind(Enum):
    """What a frame does: ask for an address, or say where it is."""

    REQUEST = "request"
    REPLY = "reply"


@dataclass(frozen=True, slots=True)
class Sighting:
    """A frame about `target`, sent by `mac`.

    `sender`: the address that the sender speaks as, None in a probe. A reply, and a request that
    its sender makes about its own address, say "`sender` is at `mac`".
    """

    kind: Kind
    mac: str
    sender: IP | None
    target: IP

    @property
    def claims(self) -> IP | None:
        """The address that this frame says is at `mac`, if it says so of any."""
        return self.target if self.kind is Kind.REPLY else self.sender

    @property
    def probe(self) -> bool:
        """Whether somebody asks for an address in order to take it (RFC 5227, RFC 4862)."""
        return self.kind is Kind.REQUEST and self.sender is None


def arp_request(mac: str, sender: IPv4Address | None, target: IPv4Address) -> bytes:
    """Who has `target`? Without a sender it is a probe, which no neighbour cache learns from."""
    return _arp(1, mac, sender or UNKNOWN4, NO_MAC, target)


def arp_announcements(mac: str, ip: IPv4Address) -> tuple[bytes, bytes]:
    """`ip` is at `mac`: as a request, and as a reply whose target MAC is our own.

    A reply with another target is ignored within a second of the neighbour's last refresh.
    """
    return _arp(1, mac, ip, NO_MAC, ip), _arp(2, mac, ip, _packed(mac), ip)


def solicitation(mac: str, sender: IPv6Address | None, target: IPv6Address) -> bytes:
    """Who has `target`? Without a sender it is the form of duplicate address detection."""
    group = IPv6Address(SOLICITED | int(target) & 0xFFFFFF)
    option = b"" if sender is None else _OPTION.pack(SOURCE_MAC, 1, _packed(mac))
    body = _ND.pack(SOLICITATION, 0, 0, 0, target.packed) + option
    return _icmp(mac, sender or UNKNOWN6, group, body)


def advertisement(mac: str, ip: IPv6Address) -> bytes:
    """`ip` is at `mac`, unasked, to all nodes; with the override flag, or caches keep the old."""
    option = _OPTION.pack(TARGET_MAC, 1, _packed(mac))
    body = _ND.pack(ADVERTISEMENT, 0, 0, OVERRIDE, ip.packed) + option
    return _icmp(mac, ip, ALL_NODES, body)


def read(frame: bytes) -> Sighting | None:
    """What an Ethernet frame says of an address; None for anything else, and for junk."""
    if len(frame) < _ETHERNET.size:
        return None
    _, source, kind = _ETHERNET.unpack_from(frame)
    start = _ETHERNET.size
    if kind == ETH_VLAN and len(frame) >= start + 4:
        kind = int.from_bytes(frame[start + 2 : start + 4], "big")
        start += 4
    if kind == ETH_ARP:
        return _read_arp(frame, start)
    return _read_nd(frame, start, source) if kind == ETH_IPV6 else None


def _arp(operation: int, mac: str, sender: IPv4Address, to: bytes, target: IPv4Address) -> bytes:
    own = _packed(mac)
    head = _ETHERNET.pack(BROADCAST, own, ETH_ARP)
    body = _ARP.pack(1, 0x0800, 6, 4, operation, own, sender.packed, to, target.packed)
    return head + body


def _icmp(mac: str, sender: IPv6Address, to: IPv6Address, body: bytes) -> bytes:
    pseudo = _PSEUDO.pack(sender.packed, to.packed, len(body), ICMPV6)
    checked = body[:2] + checksum(pseudo + body).to_bytes(2, "big") + body[4:]
    head = _ETHERNET.pack(b"\x33\x33" + to.packed[12:], _packed(mac), ETH_IPV6)
    packet = _IPV6.pack(6 << 28, len(body), ICMPV6, HOP_LIMIT, sender.packed, to.packed)
    return head + packet + checked


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _read_arp(frame: bytes, start: int) -> Sighting | None:
    if len(frame) < start + _ARP.size:
        return None
    link, protocol, size, length, operation, mac, sender, _, target = _ARP.unpack_from(frame, start)
    if (link, protocol, size, length) != (1, 0x0800, 6, 4) or operation not in {1, 2}:
        return None
    speaker = IPv4Address(sender)
    who = None if speaker == UNKNOWN4 else speaker
    if operation == 1:
        return Sighting(Kind.REQUEST, mac.hex(":"), who, IPv4Address(target))
    return Sighting(Kind.REPLY, mac.hex(":"), who, speaker)


def _read_nd(frame: bytes, start: int, source: bytes) -> Sighting | None:
    if len(frame) < start + _IPV6.size + _ND.size:
        return None
    _, length, following, hops, sender, to = _IPV6.unpack_from(frame, start)
    begin = start + _IPV6.size
    body = frame[begin : begin + length]
    if following != ICMPV6 or hops != HOP_LIMIT or len(body) < _ND.size or len(body) != length:
        return None
    kind, code, _, _, target = _ND.unpack_from(body)
    if code or kind not in {SOLICITATION, ADVERTISEMENT}:
        return None
    if checksum(_PSEUDO.pack(sender, to, length, ICMPV6) + body):
        return None
    speaker = IPv6Address(sender)
    who = None if speaker == UNKNOWN6 else speaker
    mac = _option(body, SOURCE_MAC if kind == SOLICITATION else TARGET_MAC) or source
    word = Kind.REQUEST if kind == SOLICITATION else Kind.REPLY
    return Sighting(word, mac.hex(":"), who, IPv6Address(target))


def _option(body: bytes, wanted: int) -> bytes | None:
    at = _ND.size
    while at + _OPTION.size <= len(body):
        kind, units, mac = _OPTION.unpack_from(body, at)
        if kind == wanted:
            return bytes(mac)
        if units == 0:
            return None
        at += 8 * units
    return None


def _packed(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


# Classic BPF (bpf(4)): load half-word or byte at an offset, jump if equal, return.
_LDH, _LDB, _JEQ, _RET = 0x28, 0x30, 0x15, 0x06
_ALL, _NOTHING = (_RET, 0, 0, 0xFFFFFFFF), (_RET, 0, 0, 0)

ARP_FILTER = ((_LDH, 0, 0, 12), (_JEQ, 0, 1, ETH_ARP), _ALL, _NOTHING)
"""Program for SO_ATTACH_FILTER: ARP frames alone."""

ND_FILTER = (
    (_LDH, 0, 0, 12),
    (_JEQ, 0, 6, ETH_IPV6),
    (_LDB, 0, 0, 20),
    (_JEQ, 0, 4, ICMPV6),
    (_LDB, 0, 0, 54),
    (_JEQ, 1, 0, SOLICITATION),
    (_JEQ, 0, 1, ADVERTISEMENT),
    _ALL,
    _NOTHING,
)
"""Program for SO_ATTACH_FILTER: neighbour solicitations and advertisements alone."""
