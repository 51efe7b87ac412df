"""What members ask each other over TCP: the configuration that a peer runs, redacted.

A question is answered at once from a text that was made when the settings changed, so a curious
peer costs nothing but the bytes.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from agent.desk import EXIT_USAGE, DeskError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.desk import Document
    from gossip.events import Plain
    from gossip.node import Node

CONFIG = 1
"""Kind number of the question for the running configuration."""
PATIENCE = 15.0
"""Seconds; gossip itself gives a conversation ten."""
TEXTS = ("name", "version", "digest", "node_digest")


class Peers:
    """Both sides of the question."""

    def __init__(self, node: Node, clock: Callable[[], float]) -> None:
        self._node = node
        self._clock = clock
        self._told = ""
        node.machine.serve(CONFIG, self._answer)

    def tell(self, text: str) -> None:
        """What others get to see from now on."""
        self._told = text

    async def config(self, name: str) -> Document:
        """What `name` runs; DeskError if it is no member of ours or does not answer."""
        member = self._node.machine.member(name)
        if member is None or not member.wayout:
            raise DeskError(f"there is no wayout member {name!r}, see 'wayout members'", EXIT_USAGE)
        answer: asyncio.Future[Plain] = asyncio.get_running_loop().create_future()

        def done(value: Plain) -> None:
            if not answer.done():
                answer.set_result(value)

        machine = self._node.machine
        self._node.perform(machine.request(name, CONFIG, None, self._clock(), done))
        try:
            async with asyncio.timeout(PATIENCE):
                value = await answer
        except TimeoutError:
            value = None
        if not isinstance(value, str) or not value:
            raise DeskError(
                f"{name} did not answer: it may be gone, starting, of an older version, or the TCP "
                "port of gossip is blocked; 'wayout members' shows its state"
            )
        return await asyncio.to_thread(_read, name, value)

    def _answer(self, sender: str, value: Plain) -> Plain:
        del sender, value
        return self._told


def _read(name: str, text: str) -> Document:
    """What came from the network is taken for nothing but what it must be."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("settings"), dict):
        raise DeskError(f"the answer of {name} makes no sense, compare 'wayout members' versions")
    generation = found.get("generation")
    return {
        **{key: str(found.get(key) or "") for key in TEXTS},
        "name": name,
        "generation": generation if isinstance(generation, int) else 0,
        "settings": found["settings"],
    }
