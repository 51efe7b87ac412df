"""Interfaces, the LAN behind them, and the way to other nodes."""

from __future__ import annotations

import asyncio
import errno
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from agent.sysctls import Finding, Severity
from egress.kernel import KernelError
from egress.lan import Segments
from egress.model import Question
from gossip.peer import Address

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from egress.model import IP, Interface, Observed, Reply
    from egress.placement import Placement

GOSSIP_MTU = 1500
"""Datagrams of gossip take up to 1400 bytes and their headers."""
IPV6_MTU = 1280
ASK_PATIENCE = 5.0
DIAL_PATIENCE = 2.0
OWN_MAX = 16
"""Own addresses that the LAN is asked about."""
SEEDS_MAX = 64


def of_links(links: Sequence[Interface], mtus: Mapping[str, int]) -> Iterator[Finding]:
    """Carrier and size of frames."""
    if not links:
        yield Finding(
            Severity.ERROR,
            "no interface may carry egress IPs",
            "each needs an address of its own, and must be let in by interfaces.allow and .deny",
            "give one an address, or change interfaces.allow",
        )
    for link in links:
        if not link.carrier:
            yield Finding(
                Severity.WARNING,
                f"{link.name} has no carrier",
                "egress IPs of its subnets live on other nodes",
                f"look at the cable, ip link set {link.name} up",
            )
        yield _of_mtu(link.name, mtus.get(link.name))


def _of_mtu(name: str, mtu: int | None) -> Finding:
    what = f"the MTU of {name} is {mtu if mtu is not None else 'not known'}"
    if mtu is not None and mtu < IPV6_MTU:
        why = "IPv6 takes 1280, so no IPv6 egress can be bound there"
        return Finding(Severity.WARNING, what, why, f"ip link set {name} mtu {GOSSIP_MTU}")
    if mtu is not None and mtu < GOSSIP_MTU:
        why = "large datagrams of gossip are sent in pieces, and lost if one of them is"
        return Finding(Severity.NOTE, what, why, f"ip link set {name} mtu {GOSSIP_MTU}")
    return Finding(Severity.OK, what, "gossip fits into one frame")


def of_places(places: Mapping[IP, Placement]) -> Iterator[Finding]:
    """Egress IPs that cannot live on this host."""
    homeless: dict[str, list[str]] = {}
    for ip, place in places.items():
        if place.interface is None:
            homeless.setdefault(place.reason or "no_place", []).append(str(ip))
    for reason, ips in homeless.items():
        some = ", ".join(ips[:3]) + (f" and {len(ips) - 3} more" if len(ips) > 3 else "")  # noqa: PLR2004
        yield Finding(
            Severity.NOTE,
            f"{some} cannot live on this host: {reason}",
            "they live on other nodes, or nowhere",
            "give an interface an address in that subnet, or name one with 'interface'",
        )


def of_kernel(observed: Observed) -> Iterator[Finding]:
    """Addresses that the kernel itself found to be somebody else's."""
    for each in observed.bound:
        if not each.usable and each.prefix == each.binding.ip.max_prefixlen:
            yield Finding(
                Severity.WARNING,
                f"{each.binding.ip} on {each.binding.interface} failed duplicate detection",
                "another host has it, or had it",
                f"ip addr del {each.binding.ip}/{each.prefix} dev {each.binding.interface}",
            )


async def ask_lan(
    links: Sequence[Interface], gateways: Mapping[str, Sequence[IP]]
) -> list[Finding]:
    """Whether another host answers for our own addresses, and whether gateways answer at all."""
    own = [
        Question(ip, link.name, tuple(each for each in gateways.get(link.name, ())[:1]))
        for link in links
        if link.carrier
        for ip in link.addresses
        if not ip.is_link_local
    ][:OWN_MAX]
    if not own:
        return []
    lan = Segments(interfaces=lambda: links, rivals=lambda _: None)
    try:
        async with asyncio.timeout(ASK_PATIENCE):
            replies = await lan.ask(own)
    except (KernelError, TimeoutError) as error:
        why = f"whether addresses are there twice is not known ({str(error) or 'timeout'})"
        return [Finding(Severity.NOTE, "the LAN could not be asked", why)]
    finally:
        lan.close()
    macs = frozenset(link.mac for link in links)
    return list(of_replies(replies, macs))


def of_replies(replies: Sequence[Reply], macs: frozenset[str]) -> Iterator[Finding]:
    """What the answers about our own addresses amount to."""
    fine = True
    for reply in replies:
        others = sorted(reply.macs - macs)
        ip, interface = reply.question.ip, reply.question.interface
        if others:
            fine = False
            yield Finding(
                Severity.ERROR,
                f"{', '.join(others)} answers for {ip}, which this host has on {interface}",
                "two hosts have one address: connections of both break",
                "find it by its MAC (ip neigh, the switch), and give it another address",
            )
    silent = {
        str(reply.question.controls[0]): reply.question.interface
        for reply in replies
        if reply.control is False and reply.question.controls
    }
    for gateway, interface in silent.items():
        fine = False
        yield Finding(
            Severity.WARNING,
            f"the gateway {gateway} does not answer on {interface}",
            "silence of the LAN cannot be trusted, so nothing is taken over there",
            "look at the cable, the VLAN and the firewall of the gateway",
        )
    if fine:
        yield Finding(Severity.OK, "nobody else answers for addresses of this host", "all is well")


async def dial(seeds: Sequence[Address]) -> list[Finding]:
    """Whether other nodes can be reached over TCP; UDP goes the same way, mostly."""
    async with asyncio.TaskGroup() as tasks:
        dialled = [tasks.create_task(_dialled(each)) for each in seeds[:SEEDS_MAX]]
    return [each.result() for each in dialled]


async def _dialled(seed: Address) -> Finding:
    try:
        async with asyncio.timeout(DIAL_PATIENCE):
            _, writer = await asyncio.open_connection(seed.host, seed.port)
        writer.close()
    except TimeoutError:
        return Finding(
            Severity.WARNING,
            f"{seed} does not answer",
            "its host is down, or a firewall drops gossip on the way",
            f"let TCP and UDP port {seed.port} through, both ways",
        )
    except OSError as error:
        refused = error.errno == errno.ECONNREFUSED
        return Finding(
            Severity.NOTE if refused else Severity.WARNING,
            f"{seed}: {error.strerror or error}",
            "no daemon runs there" if refused else "this host does not reach it",
            "start it" if refused else "look at routes and firewalls",
        )
    return Finding(Severity.OK, f"{seed} answers", "this node can join through it")


def of_port(address: Address) -> Finding:
    """Whether gossip could listen; to be asked only where no daemon of ours does."""
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        with socket.socket(family, kind) as probe:
            try:
                probe.bind((address.host, address.port))
            except OSError as error:
                return Finding(
                    Severity.ERROR,
                    f"gossip cannot listen on {address}: {error.strerror}",
                    "a daemon would not start",
                    "stop the program that has the port ('ss -lnp'), or change gossip.bind_port",
                )
    return Finding(Severity.OK, f"gossip can listen on {address}", "the port is free")


def mtus(names: Sequence[str], root: Path = Path("/sys")) -> dict[str, int]:
    """By interface; those that cannot be read are missing."""
    found: dict[str, int] = {}
    for name in names:
        try:
            found[name] = int((root / "class/net" / name / "mtu").read_text())
        except (OSError, ValueError):
            continue
    return found
