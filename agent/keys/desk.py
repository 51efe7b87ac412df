"""What commands get to see of keys, and may wish: documents in, documents out, no key ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.desk import EXIT_USAGE, DeskError
from agent.keys import file
from agent.keys.ring import KeysError
from agent.keys.words import Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent.desk import Document
    from agent.keys.rotation import Rotation
    from config.schema.settings import Settings

    Held = Mapping[str, tuple[str, ...] | None]


class KeyDesk:
    """One for a daemon."""

    def __init__(self, rotation: Rotation, settings: Callable[[], Settings]) -> None:
        self._rotation = rotation
        self._settings = settings

    async def listed(self) -> Document:
        """`keyring list --json`."""
        try:
            held = await self._rotation.survey()
            foreign = self._rotation.foreign()
        except KeysError as error:
            raise DeskError(str(error)) from None
        gossip = self._settings().gossip
        return {
            "encryption": gossip.encryption.value,
            "file": gossip.keyring_file,
            "keys": [_key(print_, held) for print_ in _prints(held)],
            "members": [_member(name, prints) for name, prints in held.items()],
            "foreign": [*foreign],
        }

    async def change(self, operation: str, key: str, *, only: str | None, force: bool) -> Document:
        """`keyring add|use|remove --json`."""
        try:
            what = Operation(operation)
        except ValueError:
            raise DeskError("an operation is add, use or remove", EXIT_USAGE) from None
        try:
            key_ = self._key(what, key)
            outcomes = await self._rotation.change(what, key_, only=only, force=force)
        except KeysError as error:
            raise DeskError(str(error)) from None
        return {
            "operation": what.value,
            "fingerprint": file.fingerprint(key_),
            "done": [name for name, error in outcomes.items() if not error],
            "failed": {name: error for name, error in outcomes.items() if error},
            "foreign": [*self._rotation.foreign()],
        }

    def _key(self, operation: Operation, text: str) -> bytes:
        """From base64, or for a key that is there already from its fingerprint."""
        if text.startswith(file.PREFIX):
            if operation is Operation.ADD:
                raise DeskError("a fingerprint is no key: give the key itself", EXIT_USAGE)
            return self._rotation.keys.find(text)
        try:
            return file.decoded(text)
        except ValueError as error:
            raise DeskError(str(error), EXIT_USAGE) from None


def _prints(held: Held) -> list[str]:
    """All fingerprints, each once, those that most encrypt with first."""
    every = [print_ for prints in held.values() for print_ in prints or ()]
    using = [prints[0] for prints in held.values() if prints]
    return sorted(set(every), key=lambda each: (-using.count(each), -every.count(each), each))


def _key(print_: str, held: Held) -> Document:
    answered = {name: prints for name, prints in held.items() if prints is not None}
    return {
        "fingerprint": print_,
        "used_by": [name for name, prints in answered.items() if prints[:1] == (print_,)],
        "accepted_by": [name for name, prints in answered.items() if print_ in prints],
        "missing_on": [name for name, prints in answered.items() if print_ not in prints],
    }


def _member(name: str, prints: tuple[str, ...] | None) -> Document:
    return {
        "name": name,
        "answered": prints is not None,
        "uses": prints[0] if prints else None,
        "accepts": [*(prints or ())],
    }
