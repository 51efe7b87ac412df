"""Stories of the lab on a terminal, or as plain lines where there is none."""

from __future__ import annotations

import sys
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import click

from agent.cli.tables import Column, draw, show
from agent.lab.teller import Silent, Teller

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TONES: dict[str, dict[str, Any]] = {
    "head": {"bold": True},
    "good": {"fg": "green"},
    "bad": {"fg": "red", "bold": True},
    "dim": {"dim": True},
}


class Spoken(Teller):
    """Tells it on standard output; colours and weights are for terminals alone."""

    def say(self, text: str, tone: str = "plain") -> None:
        """One line, at once: a story is watched while it happens."""
        click.secho(text, **TONES.get(tone, {}))
        sys.stdout.flush()

    def table(self, columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> None:
        """Rows by the titles of their columns."""
        shown = [Column(title, itemgetter(title)) for title in columns]
        show(draw(shown, [dict(row) for row in rows]))
        sys.stdout.flush()


def teller(*, silent: bool) -> Teller:
    """One that speaks, or one that does not."""
    return Silent() if silent else Spoken()
