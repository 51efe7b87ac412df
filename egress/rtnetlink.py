"""Address and link messages of rtnetlink: bytes that are patched going out and sliced coming in.

Encoding through a library costs 150 us of Python for each address, decoding 40 us. So an address
message is encoded once and patched (`Template`), and what comes in is read by offset (`decode`).
Decoding is total: any bytes in, whole messages out; a torn or absurd message ends the walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from egress.model import IP, Network

RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK = 16, 17, 18
RTM_NEWADDR, RTM_DELADDR, RTM_GETADDR = 20, 21, 22
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP_INTR, NLM_F_DUMP = 0x1, 0x4, 0x10, 0x300
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200
IFA_ADDRESS, IFA_LOCAL, IFA_CACHEINFO, IFA_FLAGS, IFA_PROTO = 1, 2, 6, 8, 11
IFA_F_NODAD, IFA_F_DADFAILED, IFA_F_TENTATIVE, IFA_F_NOPREFIXROUTE = 0x02, 0x08, 0x40, 0x200
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MASTER, IFLA_LINKINFO, IFLA_EXT_MASK = 1, 3, 10, 18, 29
IFLA_INFO_KIND = 1
SKIP_STATS = 8
IFF_UP, IFF_RUNNING, IFF_LOWER_UP = 0x1, 0x40, 0x10000
AF_INET, AF_INET6 = 2, 10
FOREVER = 0xFFFFFFFF

_HEADER = Struct("=IHHII")
_ATTRIBUTE = Struct("=HH")
_ADDRESS = Struct("=BBBBI")
_LINK = Struct("=BxHiII")
_WORD = Struct("=I")
_SIGNED = Struct("=i")
_LIFETIMES = Struct("=II")
_BODY = _HEADER.size
_ADDRESS_ATTRIBUTES = _BODY + _ADDRESS.size
_LINK_ATTRIBUTES = _BODY + _LINK.size
_NESTED = 0x7FFF  # the two top bits of a type are flags
_OF_ADDRESS = frozenset({IFA_ADDRESS, IFA_LOCAL, IFA_CACHEINFO, IFA_FLAGS, IFA_PROTO})
_OF_LINK = frozenset({IFLA_ADDRESS, IFLA_IFNAME, IFLA_MASTER, IFLA_LINKINFO})
_OF_INFO = frozenset({IFLA_INFO_KIND})
_TEXT = frozenset({1})
_SIZES = {AF_INET: 4, AF_INET6: 16}


@dataclass(slots=True)
class Address:
    """An address that is there (or, with `gone`, no more). `valid` is None for ever.

    `packed` and `base` are what IFA_LOCAL and IFA_ADDRESS said; they differ on point-to-point
    links alone. `mark` is IFA_PROTO, 0 without one. `pid` is the socket that asked for it.
    Not frozen: a dump makes ten thousand of them, and freezing triples their price.
    """

    index: int
    packed: bytes
    base: bytes
    prefix: int
    flags: int
    mark: int
    valid: float | None
    gone: bool
    pid: int

    @property
    def ip(self) -> IP:
        """The local address."""
        return unpacked(self.packed)

    @property
    def network(self) -> Network:
        """The subnet behind the link."""
        if len(self.base) == 4:  # noqa: PLR2004 - bytes of an IPv4 address
            return IPv4Network((self.base, self.prefix), strict=False)
        return IPv6Network((self.base, self.prefix), strict=False)

    @property
    def usable(self) -> bool:
        """Neither waiting for duplicate address detection nor refused by it."""
        return not self.flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)


@dataclass(frozen=True, slots=True)
class Link:
    """A network interface that is there (or, with `gone`, no more)."""

    index: int
    name: str
    mac: str
    carrier: bool
    master: int | None
    kind: str | None
    gone: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the request `sequence`; `errno` 0 is success, `text` the kernel's words."""

    sequence: int
    errno: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class End:
    """A dump is complete, or ended with `errno`."""

    sequence: int
    errno: int


Message = Address | Link | Verdict | End


def unpacked(packed: bytes) -> IP:
    """The address that four or sixteen bytes stand for."""
    if len(packed) == 4:  # noqa: PLR2004 - bytes of an IPv4 address
        return IPv4Address(packed)
    return IPv6Address(packed)


def decode(data: bytes) -> Iterator[Message]:
    """The messages of one datagram, those we do not know left out."""
    offset = 0
    while offset + _BODY <= len(data):
        length, kind, flags, sequence, pid = _HEADER.unpack_from(data, offset)
        end = offset + length
        if length < _BODY or end > len(data):
            return
        message: Message | None = None
        if kind in (RTM_NEWADDR, RTM_DELADDR):
            message = _address(data, offset, end, gone=kind == RTM_DELADDR, pid=pid)
        elif kind in (RTM_NEWLINK, RTM_DELLINK):
            message = _link(data, offset, end, gone=kind == RTM_DELLINK)
        elif kind == NLMSG_ERROR:
            message = _verdict(data, offset, end, sequence, flags)
        elif kind == NLMSG_DONE:
            message = End(sequence, _errno(data, offset, end))
        if message is not None:
            yield message
        offset = end + (-end & 3)


def ends(data: bytes, sequence: int) -> bool:
    """Whether the answer to request `sequence` ends in this datagram."""
    last = (NLMSG_ERROR, NLMSG_DONE)
    return any(kind in last and number == sequence for kind, _, number in _headers(data))


def torn(data: bytes) -> bool:
    """Whether the list changed while it was dumped, so that entries may be missing."""
    return any(flags & NLM_F_DUMP_INTR for _, flags, _ in _headers(data))


def _headers(data: bytes) -> Iterator[tuple[int, int, int]]:
    offset = 0
    while offset + _BODY <= len(data):
        length, kind, flags, sequence, _ = _HEADER.unpack_from(data, offset)
        if length < _BODY:
            return
        yield kind, flags, sequence
        offset += length + (-length & 3)


def attributes(data: bytes, offset: int, end: int, wanted: frozenset[int]) -> dict[int, bytes]:
    """The values of the `wanted` attributes between `offset` and `end`; the last one wins."""
    found: dict[int, bytes] = {}
    header = _ATTRIBUTE.unpack_from
    last = min(end, len(data)) - 4
    while offset <= last:
        length, kind = header(data, offset)
        if length < 4 or offset + length > end:  # noqa: PLR2004 - an attribute's header
            break
        if kind & _NESTED in wanted:
            found[kind & _NESTED] = data[offset + 4 : offset + length]
        offset += length + 3 & ~3
    return found


def _address(data: bytes, offset: int, end: int, *, gone: bool, pid: int) -> Address | None:
    if offset + _ADDRESS_ATTRIBUTES > end:
        return None
    family, prefix, flags, _, index = _ADDRESS.unpack_from(data, offset + _BODY)
    found = attributes(data, offset + _ADDRESS_ATTRIBUTES, end, _OF_ADDRESS)
    get = found.get
    base = get(IFA_ADDRESS) or get(IFA_LOCAL, b"")
    packed = get(IFA_LOCAL, base)
    size = _SIZES.get(family)
    if len(packed) != size or len(base) != size or prefix > 8 * size:
        return None
    if len(wide := get(IFA_FLAGS, b"")) == _WORD.size:
        (flags,) = _WORD.unpack(wide)
    mark = (get(IFA_PROTO) or b"\0")[0]
    valid = _valid(get(IFA_CACHEINFO, b""))
    return Address(index, packed, base, prefix, flags, mark, valid, gone, pid)


def _valid(cacheinfo: bytes) -> float | None:
    if len(cacheinfo) < _LIFETIMES.size:
        return None
    seconds: int = _LIFETIMES.unpack_from(cacheinfo)[1]
    return None if seconds == FOREVER else float(seconds)


def _link(data: bytes, offset: int, end: int, *, gone: bool) -> Link | None:
    if offset + _LINK_ATTRIBUTES > end:
        return None
    family, _, index, flags, _ = _LINK.unpack_from(data, offset + _BODY)
    if family:  # A bridge talks about its ports with messages that look like those of links.
        return None
    found = attributes(data, offset + _LINK_ATTRIBUTES, end, _OF_LINK)
    master = found.get(IFLA_MASTER, b"")
    info = found.get(IFLA_LINKINFO, b"")
    kind = attributes(info, 0, len(info), _OF_INFO).get(IFLA_INFO_KIND)
    heard = IFF_UP | IFF_RUNNING | IFF_LOWER_UP
    return Link(
        index=index,
        name=_text(found.get(IFLA_IFNAME, b"")),
        mac=found.get(IFLA_ADDRESS, b"").hex(":"),
        carrier=flags & heard == heard,
        master=_WORD.unpack(master)[0] if len(master) == _WORD.size else None,
        kind=None if kind is None else _text(kind),
        gone=gone,
    )


def _verdict(data: bytes, offset: int, end: int, sequence: int, flags: int) -> Verdict:
    error = _errno(data, offset, end)
    if not flags & NLM_F_ACK_TLVS:
        return Verdict(sequence, error)
    # The kernel's own words follow the request's header, and its body unless that was capped.
    start = offset + _BODY + _SIGNED.size + _HEADER.size
    if not flags & NLM_F_CAPPED and start <= end:
        (asked,) = _WORD.unpack_from(data, offset + _BODY + _SIGNED.size)
        start += max(0, asked - _HEADER.size)
    return Verdict(sequence, error, _text(attributes(data, start, end, _TEXT).get(1, b"")))


def _errno(data: bytes, offset: int, end: int) -> int:
    if offset + _BODY + _SIGNED.size > end:
        return 0
    return max(0, -int(_SIGNED.unpack_from(data, offset + _BODY)[0]))


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("utf-8", "replace")


class Template:
    """One encoded address message; `stamp` gives copies with other addresses.

    Every attribute that the message has is patched where it stands, so the set is always
    complete: a `replace` that leaves one out takes it away from the address (K56).
    """

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded
        self._addresses: list[int] = []
        self._lifetimes: int | None = None
        offset = _ADDRESS_ATTRIBUTES
        while offset + 4 <= len(encoded):
            length, kind = _ATTRIBUTE.unpack_from(encoded, offset)
            if kind in (IFA_ADDRESS, IFA_LOCAL):
                self._addresses.append(offset + 4)
            elif kind == IFA_CACHEINFO:
                self._lifetimes = offset + 4
            offset += max(4, length + (-length & 3))

    def stamp(
        self, packed: bytes, index: int, lifetimes: tuple[int, int], sequence: int, *, ack: bool
    ) -> bytes:
        """A copy for `packed` on link `index`; `lifetimes` are preferred and valid seconds."""
        message = bytearray(self._encoded)
        _, kind, flags, _, _ = _HEADER.unpack_from(message)
        flags |= NLM_F_ACK if ack else 0
        _HEADER.pack_into(message, 0, len(message), kind, flags, sequence, 0)
        _WORD.pack_into(message, _BODY + 4, index)
        for place in self._addresses:
            message[place : place + len(packed)] = packed
        if self._lifetimes is not None:
            _LIFETIMES.pack_into(message, self._lifetimes, *lifetimes)
        return bytes(message)


def dump_addresses(sequence: int) -> bytes:
    """Ask for every address of both families."""
    return _request(RTM_GETADDR, sequence, _ADDRESS.pack(0, 0, 0, 0, 0))


def dump_links(sequence: int) -> bytes:
    """Ask for every link, without the counters, which are most of the bytes."""
    mask = _ATTRIBUTE.pack(8, IFLA_EXT_MASK) + _WORD.pack(SKIP_STATS)
    return _request(RTM_GETLINK, sequence, _LINK.pack(0, 0, 0, 0, 0) + mask)


def _request(kind: int, sequence: int, body: bytes) -> bytes:
    flags = NLM_F_REQUEST | NLM_F_DUMP
    return _HEADER.pack(_BODY + len(body), kind, flags, sequence, 0) + body
