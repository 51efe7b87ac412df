"""Keys of the whole cluster: what every member accepts, and changes that every member makes.

All of it travels in sealed messages between two members. Members that are no wayout cannot be
asked: a change that might shut them out is refused unless it is forced.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, assert_never

from agent.keys import words
from agent.keys.answering import Answering
from agent.keys.file import fingerprint
from agent.keys.ring import KeysError
from agent.keys.words import Ask, Do, Done, Operation, Tell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent.keys.ring import Keys
    from agent.keys.words import Word
    from gossip.events import UserMessage
    from gossip.node import Node
    from gossip.peer import Member

PATIENCE = 5.0
"""Seconds in which a member must have answered …"""
AGAIN = 1.0
"""… being asked again after so many."""

Answers = dict[str, Tell | Done | None]


class Rotation:
    """One for a daemon; `heard` takes the messages of others, `run` is a part."""

    def __init__(
        self,
        me: str,
        node: Node,
        keys: Keys,
        refused: Callable[[str], None],
        patience: float = PATIENCE,
    ) -> None:
        self._me = me
        self._patience = patience
        self._node = node
        self._clock = asyncio.get_running_loop().time
        self._refused = refused
        self._answering = Answering(keys, self._say, self._clock, os.urandom)
        self._asked: dict[tuple[str, bytes], asyncio.Future[Tell | Done]] = {}
        self.keys = keys

    async def run(self) -> None:
        """Make the changes that others ask for."""
        await self._answering.run()

    def heard(self, event: UserMessage) -> None:
        """A word of a member; what makes no sense, or could have come unsealed, is counted."""
        try:
            self.keys.require_sealed()
            word = words.read(event.value)
        except (KeysError, ValueError) as error:
            self._refused("keys_unsealed" if isinstance(error, KeysError) else "bad_keys")
            return
        match word:
            case Ask():
                self._answering.asked(event.sender, word)
            case Do():
                if not self._answering.wished(event.sender, word):
                    self._refused("keys_replayed")
            case Tell() | Done():
                answer = self._asked.get((event.sender, word.ident))
                if answer is not None and not answer.done():
                    answer.set_result(word)
            case _:
                assert_never(word)

    # What this member wants to know and to change.

    async def survey(self) -> Mapping[str, tuple[str, ...] | None]:
        """The fingerprints of every wayout member, the first encrypts; None for no answer."""
        found: dict[str, tuple[str, ...] | None] = {self._me: self._own()}
        for name, answer in (await self._tellings([each.name for each in self.peers()])).items():
            found[name] = None if answer is None else answer.prints
        return dict(sorted(found.items()))

    async def change(
        self, operation: Operation, key: bytes, *, only: str | None, force: bool
    ) -> Mapping[str, str]:
        """Change the keys of every member, or of `only` one: by name what went wrong, if anything.

        KeysError, with nothing changed, when somebody would be shut out by it.
        """
        self.keys.require_sealed()
        names = self._chosen(only)
        tellings = await self._tellings([each.name for each in self.peers()])
        if operation is not Operation.ADD and not force:
            self._refuse_harm(operation, fingerprint(key), tellings)
        outcomes = dict.fromkeys(names, "no answer: ask again, or look at its log")
        chosen = {name: told for name, told in tellings.items() if name in names}
        outcomes |= await self._doings(operation, key, chosen)
        if self._me in names:
            # Last: until then everybody understands us with the key that we use.
            outcomes[self._me] = await self._change_here(operation, key)
        return dict(sorted(outcomes.items()))

    def peers(self) -> list[Member]:
        """Other members that are there and are wayout."""
        return [each for each in self._present() if each.wayout]

    def foreign(self) -> list[str]:
        """Members that are there and cannot be asked."""
        return sorted(each.name for each in self._present() if not each.wayout)

    def _present(self) -> list[Member]:
        members = self._node.machine.members()
        return [each for each in members if each.health.present and each.name != self._me]

    def _own(self) -> tuple[str, ...]:
        return tuple(fingerprint(key) for key in self.keys.ring().keys)

    def _chosen(self, only: str | None) -> list[str]:
        names = [self._me, *(each.name for each in self.peers())]
        if only is None:
            return names
        if only not in names:
            raise KeysError(f"there is no wayout member {only!r} here: see 'wayout members'")
        return [only]

    def _refuse_harm(
        self, operation: Operation, print_: str, tellings: Mapping[str, Tell | None]
    ) -> None:
        """KeysError if a member would no longer be understood, or cannot say whether it would."""
        if foreign := self.foreign():
            raise KeysError(
                f"{_listed(foreign)} cannot be asked for keys, being no wayout: make the same "
                "change there first (serf keys), then say --force"
            )
        if mute := [name for name, told in tellings.items() if told is None]:
            raise KeysError(f"{_listed(mute)} did not answer, nothing was changed: try again")
        held = {name: told.prints for name, told in tellings.items() if told is not None}
        held[self._me] = self._own()
        if operation is Operation.USE:
            lacking = sorted(name for name, prints in held.items() if print_ not in prints)
            if lacking:
                raise KeysError(
                    f"{_listed(lacking)} would not understand this key: 'wayout keyring add' first"
                )
            return
        using = sorted(name for name, prints in held.items() if prints[:1] == (print_,))
        if using:
            raise KeysError(f"{_listed(using)} still encrypts with it: 'wayout keyring use' first")

    async def _change_here(self, operation: Operation, key: bytes) -> str:
        try:
            await self.keys.change(operation, key)
        except KeysError as error:
            return str(error)
        return ""

    # Questions to others.

    async def _tellings(self, names: list[str]) -> dict[str, Tell | None]:
        self.keys.require_sealed()
        answers = await self._answers({name: Ask(os.urandom(words.IDENT)) for name in names})
        return {
            name: answer if isinstance(answer, Tell) else None for name, answer in answers.items()
        }

    async def _doings(
        self, operation: Operation, key: bytes, tellings: Mapping[str, Tell | None]
    ) -> dict[str, str]:
        wishes = {
            name: Do(os.urandom(words.IDENT), told.challenge, operation, key)
            for name, told in tellings.items()
            if told is not None
        }
        answers = await self._answers(wishes)
        return {name: each.error for name, each in answers.items() if isinstance(each, Done)}

    async def _answers(self, questions: Mapping[str, Ask | Do]) -> Answers:
        """What each member said to its question within our patience; None where nothing came."""
        if not questions:
            return {}
        loop = asyncio.get_running_loop()
        waiting = {
            name: self._asked.setdefault((name, each.ident), loop.create_future())
            for name, each in questions.items()
        }
        until = self._clock() + self._patience
        try:
            while missing := [name for name, each in waiting.items() if not each.done()]:
                left = until - self._clock()
                if left <= 0:
                    break
                for name in missing:
                    self._say(name, questions[name])
                await asyncio.wait([waiting[name] for name in missing], timeout=min(AGAIN, left))
        finally:
            for name, each in questions.items():
                del self._asked[name, each.ident]
        return {name: each.result() if each.done() else None for name, each in waiting.items()}

    def _say(self, name: str, word: Word) -> None:
        machine = self._node.machine
        self._node.perform(machine.send(name, words.KIND, words.to_plain(word), self._clock()))


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} others"  # noqa: PLR2004
