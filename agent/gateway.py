"""Does a gateway answer? What decides between two equal halves of a partition."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from agent.inputs import GatewayAnswered
from egress.kernel import KernelError
from egress.model import Question

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent.mailbox import Mailbox
    from egress.kernel import Lan
    from egress.model import IP

PATIENCE = 1.0

log = structlog.get_logger("wayout.egress")


class Gateway:
    """Asked when somebody knocks; the answer goes to the controller."""

    def __init__(
        self,
        lan: Lan,
        gateways: Callable[[], Mapping[str, Sequence[IP]]],
        mailbox: Mailbox,
    ) -> None:
        self._lan = lan
        self._gateways = gateways
        self._mailbox = mailbox
        self._wanted = asyncio.Event()

    def knock(self) -> None:
        """Ask soon; several knocks are one question."""
        self._wanted.set()

    async def run(self) -> None:
        """Part of the daemon."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            self._mailbox.put(GatewayAnswered(await self._answers()))

    async def _answers(self) -> bool | None:
        questions = [
            Question(ip, interface) for interface, ips in self._gateways().items() for ip in ips
        ]
        if not questions:
            return None
        try:
            async with asyncio.timeout(PATIENCE):
                replies = await self._lan.ask(questions)
        except (KernelError, TimeoutError) as error:
            log.warning("egress.gateway_unasked", reason=str(error) or "timeout")
            return None
        return any(reply.macs for reply in replies)
