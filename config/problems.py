"""What is wrong with a configuration, said so that it can be mended without a manual."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from config.tree import Mark

PROBLEMS_MAX = 50
"""More than this is noise; the rest is counted."""

QUOTED_MAX = 40


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake. `path` is dotted and may be empty; `hint` says what to write instead."""

    mark: Mark
    path: str
    message: str
    hint: str = ""
    rule: str = ""

    def __str__(self) -> str:
        path = f"{self.path}: " if self.path else ""
        hint = f", {self.hint}" if self.hint else ""
        return f"{self.mark}: {path}{self.message}{hint}"


class ConfigError(Exception):
    """The operator must edit something; nothing has been changed."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda each: (each.mark, each.path)))
        super().__init__("\n".join(lines(self.problems)))


def lines(problems: Sequence[Problem]) -> list[str]:
    """One line for each problem, the first ones only if there are very many."""
    shown = [str(each) for each in problems[:PROBLEMS_MAX]]
    if len(problems) > PROBLEMS_MAX:
        shown.append(f"and {len(problems) - PROBLEMS_MAX} more problems")
    return shown


def snake(key: str) -> str:
    """`egressIP` and `Egress-Ip` as this project writes them: `egress_ip`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)
    return spaced.replace("-", "_").replace(" ", "_").lower()


def suggest(key: str, known: Iterable[str]) -> str | None:
    """The known name that `key` was probably meant to be."""
    names = sorted(known)
    plain = snake(key)
    if plain in names:
        return plain
    close = difflib.get_close_matches(plain, names, n=1, cutoff=0.7)
    return close[0] if close else None


def _printable(text: str) -> str:
    # What a file says may end on a terminal, where control characters do things.
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def quoted(value: object) -> str:
    """A value for a message, cut if it is long."""
    text = _printable(str(value))
    return f"'{text[:QUOTED_MAX]}…'" if len(text) > QUOTED_MAX else f"'{text}'"


def dotted(path: Iterable[str | int]) -> str:
    """A path as people write it; keys that contain a dot are quoted, indices bracketed."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            name = _printable(f'"{step}"' if "." in step else step)
            text += f".{name}" if text else name
    return text
