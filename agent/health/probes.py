"""One prober for each check: asks once and says what was found; never raises for a bad answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, assert_never

from agent.health import web
from agent.health.aside import StuckError, told
from agent.health.files import FileLook
from agent.health.names import Names
from agent.health.program import Program
from agent.health.verdict import failed, passed
from config.schema.health import CheckType
from egress.kernel import KernelError
from egress.model import Question

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from agent.health.verdict import Result
    from config.schema.health import CheckEntry
    from egress.kernel import Lan
    from egress.model import IP, Interface

    Prober = Callable[[], Awaitable[Result]]

ASKING = 0.3
"""Seconds that asking the LAN takes at least: four questions in 150 ms, and the answers."""
CLOSING = 0.2
"""Seconds for the end of a connection that has told all it should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Senses:
    """What probers may look at; `links` are the interfaces that may carry egress IPs."""

    links: Callable[[], Sequence[Interface]]
    interfaces: Callable[[], Sequence[Interface]]
    gateways: Callable[[], Mapping[str, Sequence[IP]]]
    lan: Lan


def prober(name: str, check: CheckEntry, senses: Senses) -> Prober:
    """How this check asks, with what it has to remember from one round to the next."""
    match check.type:
        case CheckType.CARRIER:
            return partial(_carrier, check, senses)
        case CheckType.GATEWAY:
            return partial(_gateway, check, senses)
        case CheckType.TCP:
            return partial(_tcp, check, Names())
        case CheckType.HTTP:
            return partial(web.ask, check, Names(), check.timeout)
        case CheckType.EXEC:
            return partial(Program(check.command).run, name, check.timeout)
        case CheckType.FILE:
            return partial(FileLook(check).run, check.timeout)
        case _:
            assert_never(check.type)


async def _carrier(check: CheckEntry, senses: Senses) -> Result:
    if check.interface is None:
        links = senses.links()
        if not links:
            return failed("there is no egress interface")
    else:
        links = [each for each in senses.interfaces() if each.name == check.interface]
        if not links:
            return failed(f"there is no {check.interface}")
    down = [each.name for each in links if not each.carrier]
    return failed(f"no carrier on {', '.join(down)}") if down else passed()


async def _gateway(check: CheckEntry, senses: Senses) -> Result:
    questions = _questions(check, senses)
    if not questions:
        return failed("there is no gateway to ask")
    try:
        async with asyncio.timeout(max(check.timeout, ASKING)):
            replies = await senses.lan.ask(questions)
    except TimeoutError:
        return failed("the LAN could not be asked in time")
    except KernelError as error:
        return failed(error.message)
    mute = [str(reply.question.ip) for reply in replies if not reply.macs]
    # One of several gateways is enough; an address that is named must answer itself.
    return failed(f"{', '.join(mute)} does not answer") if len(mute) == len(replies) else passed()


def _questions(check: CheckEntry, senses: Senses) -> list[Question]:
    if check.address is not None:
        near = [
            each.name
            for each in senses.interfaces()
            if check.interface in {each.name, None} and _reaches(each, check.address)
        ]
        return [Question(check.address, name) for name in near]
    wished = check.interface
    links = {each.name for each in senses.links()} if wished is None else {wished}
    return [
        Question(ip, name) for name, ips in senses.gateways().items() if name in links for ip in ips
    ]


def _reaches(link: Interface, ip: IP) -> bool:
    return any(net.version == ip.version and ip in net for net in link.networks)


async def _tcp(check: CheckEntry, names: Names) -> Result:
    assert check.target is not None
    assert check.target.port is not None
    host, port = check.target.host, check.target.port
    try:
        async with asyncio.timeout(check.timeout):
            return await _connected(await names.find(host, port, check.timeout), port)
    except StuckError:
        return failed("an earlier look-up of the name still hangs")
    except TimeoutError:
        return failed(f"no connection in {check.timeout:g} s")
    except (OSError, ValueError) as error:
        return failed(told(error))


async def _connected(addresses: Sequence[str], port: int) -> Result:
    refusal = OSError("the name has no address")
    for address in addresses:
        try:
            _, writer = await asyncio.open_connection(address, port)
        except OSError as error:
            refusal = error
            continue
        writer.close()
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(CLOSING):
                await writer.wait_closed()
        return passed()
    raise refusal
