"""What members say to each other about keys: four words, each with the name of the question."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, assert_never

from agent.keys.file import LENGTHS

if TYPE_CHECKING:
    from gossip.events import Plain

KIND = 34
"""Kind number of these words among our own messages."""
IDENT = 16
"""Bytes of a challenge and of the name of a question."""
PRINTS_MAX = 16
PRINT_MAX = 40
TEXT_MAX = 400


class Operation(Enum):
    """What can be done to a keyring."""

    ADD = "add"
    USE = "use"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Ask:
    """The question which keys somebody has."""

    ident: bytes


@dataclass(frozen=True, slots=True)
class Tell:
    """These, as fingerprints, of which the first encrypts; `challenge` is good for one change."""

    ident: bytes
    prints: tuple[str, ...]
    challenge: bytes


@dataclass(frozen=True, slots=True)
class Do:
    """Make this change; your challenge was `challenge`."""

    ident: bytes
    challenge: bytes
    operation: Operation
    key: bytes

    def __repr__(self) -> str:
        return f"Do({self.operation.value})"


@dataclass(frozen=True, slots=True)
class Done:
    """What came of it: the keys there are now, and why nothing was done if nothing was."""

    ident: bytes
    prints: tuple[str, ...]
    error: str


Word = Ask | Tell | Do | Done


def to_plain(word: Word) -> list[Plain]:
    """For gossip."""
    match word:
        case Ask(ident):
            return ["ask", ident]
        case Tell(ident, prints, challenge):
            return ["tell", ident, list(prints), challenge]
        case Do(ident, challenge, operation, key):
            return ["do", ident, challenge, operation.value, key]
        case Done(ident, prints, error):
            return ["done", ident, list(prints), error[:TEXT_MAX]]
        case _:
            assert_never(word)


def read(value: object) -> Word:
    """From gossip; ValueError says what is wrong with it, and never what it was."""
    match value:
        case ["ask", bytes(ident)]:
            return Ask(_ident(ident))
        case ["tell", bytes(ident), list(prints), bytes(challenge)]:
            return Tell(_ident(ident), _prints(prints), _ident(challenge))
        case ["do", bytes(ident), bytes(challenge), str(operation), bytes(key)]:
            return Do(_ident(ident), _ident(challenge), _operation(operation), _key(key))
        case ["done", bytes(ident), list(prints), str(error)]:
            return Done(_ident(ident), _prints(prints), _text(error, TEXT_MAX))
        case _:
            raise ValueError("not a word about keys")


def _ident(value: bytes) -> bytes:
    if len(value) != IDENT:
        raise ValueError("a question without a name")
    return value


def _operation(value: str) -> Operation:
    try:
        return Operation(value)
    except ValueError:
        raise ValueError("an unknown operation") from None


def _key(value: bytes) -> bytes:
    if len(value) not in LENGTHS:
        raise ValueError("a key of an impossible length")
    return value


def _prints(values: list[Plain]) -> tuple[str, ...]:
    if len(values) > PRINTS_MAX:
        raise ValueError("more keys than a ring has")
    return tuple(_text(each, PRINT_MAX) for each in values)


def _text(value: object, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest or not value.isprintable():
        raise ValueError("an impossible text")
    return value
