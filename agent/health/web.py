"""Asks a URL. aiohttp is loaded by the first check that needs it, and knows no other place here."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING

from agent.health.aside import StuckError, told
from agent.health.verdict import failed, passed

if TYPE_CHECKING:
    from aiohttp import ClientSession, StreamReader
    from aiohttp.abc import AbstractResolver, ResolveResult

    from agent.health.names import Names
    from agent.health.verdict import Result
    from config.schema.health import CheckEntry

READ_MAX = 65536
"""Bytes in which text is looked for."""
PASSES = range(200, 400)
HEADERS = {"User-Agent": "wayout-health", "Accept-Encoding": "identity"}


async def ask(check: CheckEntry, names: Names, patience: float) -> Result:
    """GET, on a connection of its own, so that a dead backend is not hidden by a living one."""
    import aiohttp

    assert check.url is not None
    try:
        async with (
            asyncio.timeout(patience),
            _session(check, names, patience) as session,
            session.get(check.url, allow_redirects=False, headers=HEADERS) as response,
        ):
            return await _judged(check, response.status, response.content)
    except StuckError:
        return failed("an earlier look-up of the name still hangs")
    except TimeoutError:
        return failed(f"no answer in {patience:g} s")
    except aiohttp.ClientConnectorError as error:
        return failed(told(error.os_error))
    except aiohttp.ClientError as error:
        return failed(str(error) or type(error).__name__)
    except (OSError, ValueError) as error:
        return failed(told(error))


async def _judged(check: CheckEntry, status: int, content: StreamReader) -> Result:
    expected = status in check.status if check.status else status in PASSES
    if not expected:
        return failed(f"status {status}")
    if check.contains is not None and check.contains.encode() not in await _beginning(content):
        return failed(f"status {status} without the text")
    return passed(f"status {status}")


async def _beginning(content: StreamReader) -> bytes:
    found = b""
    while len(found) < READ_MAX and (piece := await content.read(READ_MAX - len(found))):
        found += piece
    return found


def _session(check: CheckEntry, names: Names, patience: float) -> ClientSession:
    import aiohttp

    connector = aiohttp.TCPConnector(
        ssl=trust(check), force_close=True, resolver=_resolver(names, patience)
    )
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())


def _resolver(names: Names, patience: float) -> AbstractResolver:
    from aiohttp.abc import AbstractResolver, ResolveResult

    class Resolver(AbstractResolver):
        """Looks names up aside, as all checks do."""

        async def resolve(
            self,
            host: str,
            port: int = 0,
            family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - all are found
        ) -> list[ResolveResult]:
            return [
                ResolveResult(
                    hostname=host,
                    host=address,
                    port=port,
                    family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                    proto=socket.IPPROTO_TCP,
                    flags=socket.AI_NUMERICHOST,
                )
                for address in await names.find(host, port, patience)
            ]

        async def close(self) -> None:
            """Nothing is kept."""

    return Resolver()


def trust(check: CheckEntry) -> ssl.SSLContext | bool:
    """Whose certificates are believed; OSError if `ca_file` is no good."""
    if not check.verify:
        return False
    if check.ca_file is None:
        return True
    return ssl.create_default_context(cafile=check.ca_file)
