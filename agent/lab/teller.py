"""How a story of the lab reaches people: lines and tables, drawn by the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Teller(Protocol):
    """Where a story is told."""

    def say(self, text: str, tone: str = "plain") -> None:
        """One line; `tone` is plain, head, good, bad or dim."""
        ...

    def table(self, columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> None:
        """Rows by the titles of their columns."""
        ...


class Silent(Teller):
    """Says nothing, for those who want the figures alone."""

    def say(self, text: str, tone: str = "plain") -> None:
        """Nothing."""

    def table(self, columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> None:
        """Nothing."""
