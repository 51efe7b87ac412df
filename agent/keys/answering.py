"""How this member answers others about its keys: what it has, and changes, one at a time.

A change must carry a challenge that this member gave out a moment ago, and each is good once: a
recorded change that is sent again does nothing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

import structlog

from agent.keys import file
from agent.keys.ring import KeysError
from agent.keys.words import IDENT, Do, Done, Tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.keys.ring import Keys
    from agent.keys.words import Ask, Word

CHALLENGE_LIFE = 15.0
CHALLENGES_MAX = 1024
DONE_MAX = 256
"""Outcomes that are told again to whoever did not hear them."""
WAITING_MAX = 64
"""Changes that wait for the disk; more are forgotten, and the asker asks again."""

log = structlog.get_logger("wayout.gossip")


class Answering:
    """`asked` and `told` take the words of others; `run` makes the changes until cancelled."""

    def __init__(
        self,
        keys: Keys,
        say: Callable[[str, Word], None],
        clock: Callable[[], float],
        dice: Callable[[int], bytes],
    ) -> None:
        self._keys = keys
        self._say = say
        self._clock = clock
        self._dice = dice
        self._waiting: asyncio.Queue[tuple[str, Do]] = asyncio.Queue(WAITING_MAX)
        self._challenges: OrderedDict[bytes, tuple[str, float]] = OrderedDict()
        self._done: OrderedDict[tuple[str, bytes], str | None] = OrderedDict()

    def asked(self, sender: str, ask: Ask) -> None:
        """Tell our keys, with a challenge for the sender alone."""
        challenge = self._dice(IDENT)
        self._challenges[challenge] = (sender, self._clock() + CHALLENGE_LIFE)
        if len(self._challenges) > CHALLENGES_MAX:
            self._challenges.popitem(last=False)
        self._say(sender, Tell(ask.ident, self._prints(), challenge))

    def wished(self, sender: str, do: Do) -> bool:
        """Make this change soon; whether its challenge allows it."""
        place = (sender, do.ident)
        if place in self._done:
            # Asked again since our answer was lost: under way, or done.
            if (error := self._done[place]) is not None:
                self._say(sender, Done(do.ident, self._prints(), error))
            return True
        whose, until = self._challenges.pop(do.challenge, ("", 0.0))
        if whose != sender or self._clock() > until or self._waiting.full():
            return False
        self._note(place, None)
        self._waiting.put_nowait((sender, do))
        return True

    async def run(self) -> None:
        """A part: until cancelled."""
        while True:
            sender, do = await self._waiting.get()
            error = ""
            try:
                await self._keys.change(do.operation, do.key)
            except KeysError as refusal:
                error = str(refusal)
            log.info(
                "gossip.keyring_change_asked",
                peer=sender,
                operation=do.operation.value,
                fingerprint=file.fingerprint(do.key),
                outcome=error or "done",
            )
            self._note((sender, do.ident), error)
            self._say(sender, Done(do.ident, self._prints(), error))

    def _note(self, place: tuple[str, bytes], error: str | None) -> None:
        self._done[place] = error
        if len(self._done) > DONE_MAX:
            self._done.popitem(last=False)

    def _prints(self) -> tuple[str, ...]:
        return tuple(file.fingerprint(key) for key in self._keys.ring().keys)
