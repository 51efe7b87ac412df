"""Field types for addresses, networks, ports and interfaces.

Addresses are text only and canonical: no prefix length, no port, no zone, no leading zeros.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import NoReturn

from config.problems import quoted
from config.types import Form, refuse, same, text_of

IP = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

PORT_MAX = 65535
INTERFACE_MAX = 15
DIGITS_MAX = 16
_IPV4_WRITE = "write an address such as 192.0.2.40 or 2001:db8::40"
_INTERFACE = re.compile(r"[^\s/:*?\[\]]{1,15}")
_HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9-]+)*\.?")
_RESERVED_V4 = IPv4Network("240.0.0.0/4")
_THIS_V4 = IPv4Network("0.0.0.0/8")
_ORDINARY = frozenset(range(1, 224)) - {127, 169}
"""First bytes of addresses of which none is special in the sense of `unusable`."""


class Auto(Enum):
    """The daemon finds the value out by itself."""

    AUTO = "auto"


AUTO = Auto.AUTO


@dataclass(frozen=True, slots=True)
class OnInterface:
    """The first global address of the interface `name`."""

    name: str

    def __str__(self) -> str:
        return f"iface:{self.name}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to listen."""

    ip: IP
    port: int

    def __str__(self) -> str:
        return f"[{self.ip}]:{self.port}" if self.ip.version == 6 else f"{self.ip}:{self.port}"  # noqa: PLR2004


@dataclass(frozen=True, slots=True)
class Seed:
    """A member to join through: an IP or a name, and a port if it is not everybody's."""

    host: str
    port: int | None = None

    def __str__(self) -> str:
        if self.port is None:
            return self.host
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_ip(value: object) -> IP:
    """One address, or a refusal that names the usual slips."""
    found = text_of(value, _IPV4_WRITE)
    address = _parsed(found)
    if address is None:
        _explain_ip(found)
    if isinstance(address, IPv6Address):
        if address.scope_id:
            refuse(f"is {quoted(found)} with a zone", f"write {found.split('%')[0]}")
        if address.ipv4_mapped:
            refuse(f"is {quoted(found)}", f"write {address.ipv4_mapped}")
    return address


def _explain_ip(found: str) -> NoReturn:
    bare = found.strip().strip("[]")
    if "/" in bare and _is_ip(bare.split("/")[0]):
        refuse(f"is {quoted(found)} with a prefix length", f"write {bare.split('/')[0]}")
    host, _, port = bare.rpartition(":")
    if _decimal(port) and _is_ip(host.strip("[]")) and ("]" in found or "." in host):
        refuse(f"is {quoted(found)} with a port", f"write {host.strip('[]')}")
    if _is_ip(bare):
        refuse(f"is {quoted(found)}", f"write {bare}")
    parts = bare.split(".")
    if all(_decimal(part) for part in parts) and len(parts) == 4:  # noqa: PLR2004
        plain = ".".join(str(int(part)) for part in parts)
        if _is_ip(plain):
            refuse(f"is {quoted(found)} with leading zeros", f"write {plain}")
        large = next(part for part in parts if int(part) > 255)  # noqa: PLR2004
        refuse(f"is {quoted(found)}: {large} is above 255", "write an address")
    refuse(f"is {quoted(found)}, which is no IP address", _IPV4_WRITE)


def _parsed(text: str) -> IP | None:
    try:
        return ip_address(text) if ":" in text else IPv4Address(text)
    except ValueError:
        return None


def _decimal(text: str) -> bool:
    # `isdigit` alone is true of superscripts, which `int` refuses; and no number here is longer.
    return text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX


def _is_ip(text: str) -> bool:
    return _parsed(text) is not None


def unusable(address: IP) -> str | None:
    """Why no interface should carry `address`, or None. The kernel would take most of them."""
    if isinstance(address, IPv4Address) and address.packed[0] in _ORDINARY:
        return None  # Most are, and there may be thousands.
    if address.is_unspecified or (address.version == 4 and address in _THIS_V4):  # noqa: PLR2004
        return "means no address at all"
    if address.is_multicast:
        return "is multicast"
    if address.is_loopback:
        return "is loopback"
    if address.is_link_local:
        return "is link-local"
    if address.version == 4 and address in _RESERVED_V4:  # noqa: PLR2004
        return "is reserved or broadcast"
    return None


def read_usable(value: object) -> IP:
    """An address that a host can carry and answer for."""
    address = read_ip(value)
    why = unusable(address)
    if why:
        refuse(f"is {address}, which {why}", "write an address of your network")
    return address


def _auto_or_ip(value: object) -> IP | Auto:
    return AUTO if value == "auto" else read_ip(value)


def _auto_or_usable(value: object) -> IP | Auto:
    return AUTO if value == "auto" else read_usable(value)


def _node_address(value: object) -> IP | Auto | OnInterface:
    if isinstance(value, str) and value.startswith("iface:"):
        return OnInterface(read_interface(value.removeprefix("iface:")))
    if isinstance(value, str) and _INTERFACE.fullmatch(value) and not _looks_like_ip(value):
        if value != "auto":
            refuse(f"is {quoted(value)}", f"write auto, an address, or iface:{value}")
        return AUTO
    return read_usable(value)


def _looks_like_ip(text: str) -> bool:
    return ":" in text or _decimal(text.replace(".", ""))


def _word(value: IP | Auto | OnInterface) -> str:
    return value.value if isinstance(value, Auto) else str(value)


def read_network(value: object) -> Network:
    """A network with its prefix length and no host bits."""
    found = text_of(value, "write a network such as 10.9.0.0/24")
    if "/" not in found:
        address = read_ip(found)
        refuse(f"is {quoted(found)} without a prefix length", f"write {address}/{_full(address)}")
    base, _, length = found.partition("/")
    address = read_ip(base)
    if not _decimal(length) or int(length) > _full(address):
        wrong = f"is {quoted(found)}: /{length} is no prefix length"
        refuse(wrong, f"write a prefix length from 0 to {_full(address)}")
    network = ip_network((address, int(length)), strict=False)
    if network.network_address != address:
        write = f"write {network}, or {address}/{_full(address)} for this address alone"
        refuse(f"is {quoted(found)} with host bits set", write)
    return network


def _full(address: IP) -> int:
    return address.max_prefixlen


def read_interface(value: object) -> str:
    """An interface name as the kernel takes it."""
    found = text_of(value, "write an interface name such as eth0")
    if len(found) > INTERFACE_MAX:
        refuse(f"is {quoted(found)}", f"an interface name has at most {INTERFACE_MAX} characters")
    if not _INTERFACE.fullmatch(found) or found in (".", ".."):
        refuse(f"is {quoted(found)}", "write an interface name such as eth0")
    return found


def _auto_or_interface(value: object) -> str | Auto:
    return AUTO if value == "auto" else read_interface(value)


def _show_interface(value: str | Auto) -> str:
    return value.value if isinstance(value, Auto) else value


def _glob(value: object) -> str:
    found = text_of(value, "write a pattern such as eth*")
    if not found or any(letter in found for letter in " /\t"):
        refuse(f"is {quoted(found)}", "write a pattern such as eth*")
    return found


def _port(text: str, whole: str) -> int:
    if not _decimal(text) or not 1 <= int(text) <= PORT_MAX:
        refuse(f"is {quoted(whole)}: {quoted(text)} is no port", f"write 1 to {PORT_MAX}")
    return int(text)


def read_endpoint(value: object) -> Endpoint:
    """`address:port`, the IPv6 form with brackets."""
    found = text_of(value, "write an address and a port: 127.0.0.1:9765")
    host, colon, port = found.rpartition(":")
    if not colon or _is_ip(found):
        refuse(f"is {quoted(found)} without a port", "write 127.0.0.1:9765 or [::1]:9765")
    if not host:
        refuse(f"is {quoted(found)} without an address", f"write 0.0.0.0:{port} for all")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        refuse(f"is {quoted(found)} without brackets", f"write [{host}]:{port}")
    return Endpoint(read_ip(host.strip("[]")), _port(port, found))


def _endpoint_or_off(value: object) -> Endpoint | None:
    if value in ("off", False):
        return None
    return read_endpoint(value)


def _show_endpoint(value: Endpoint | None) -> str:
    return "off" if value is None else str(value)


def read_seed(value: object) -> Seed:
    """`host`, `host:port`, an IPv6 address bare or `[address]:port`."""
    found = text_of(value, "write an address or a name, with or without :port")
    if _is_ip(found):
        return Seed(str(read_ip(found)))
    if found.startswith("["):
        inside, _, rest = found[1:].partition("]")
        port = _port(rest.removeprefix(":"), found) if rest else None
        return Seed(str(read_ip(inside)), port)
    host, colon, port_text = found.partition(":")
    if ":" in port_text:
        read_ip(found)
    if _decimal(host.replace(".", "")):
        host = str(read_ip(host))
    elif not _HOST.fullmatch(host):
        refuse(f"is {quoted(found)}", "write an address or a name, with or without :port")
    return Seed(host, _port(port_text, found) if colon else None)


def _text(pattern: str, *examples: str) -> dict[str, object]:
    return {"type": "string", "x-wayout-format": pattern, "examples": list(examples)}


EGRESS_IP = Form(read_usable, str, _text("ip", "192.0.2.40", "2001:db8::40"))
AUTO_OR_IP = Form(_auto_or_ip, _word, _text("auto|ip", "auto", "0.0.0.0"))  # noqa: S104
AUTO_OR_USABLE = Form(_auto_or_usable, _word, _text("auto|ip", "auto", "192.0.2.11"))
NODE_ADDRESS = Form(_node_address, _word, _text("auto|ip|iface:NAME", "auto", "iface:eth0"))
NETWORK = Form(read_network, str, _text("cidr", "10.9.0.0/24"))
INTERFACE = Form(read_interface, same, _text("interface", "eth0"))
AUTO_OR_INTERFACE = Form(_auto_or_interface, _show_interface, _text("auto|interface", "auto"))
GLOB = Form(_glob, same, _text("glob", "eth*"))
ENDPOINT = Form(read_endpoint, str, _text("ip:port", "127.0.0.1:9765"))
ENDPOINT_OR_OFF = Form(_endpoint_or_off, _show_endpoint, _text("ip:port|off", "127.0.0.1:9765"))
SEED = Form(read_seed, str, _text("host[:port]", "192.0.2.11", "[2001:db8::11]:7955"))
