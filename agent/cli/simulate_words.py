"""Words of `wayout simulate` that are more than a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent.cli.act import Duration

if TYPE_CHECKING:
    from gossip.simulator.scenario import Stall


class Share(click.ParamType[float]):
    """A share of a whole: 5% or 0.05, less than all."""

    name = "share"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Between 0 and 1."""
        word = str(value).strip()
        try:
            share = float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
        except ValueError:
            self.fail(f"{word!r} is no share, write 5% or 0.05", param, ctx)
        if not 0 <= share < 1:
            self.fail(f"{word} is not between 0% and 100%, write 5% or 0.05", param, ctx)
        return share


class StallWord(click.ParamType["Stall"]):
    """How many processes stop, for how long and how often: 10:500ms:10s."""

    name = "stall"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Stall:
        """A stall."""
        from gossip.simulator.scenario import Stall

        parts = str(value).split(":")
        if len(parts) != 3 or not parts[0].isdecimal():  # noqa: PLR2004 - as the metavar says
            self.fail(f"{value!r} is no stall, write NODES:TIME:EVERY as 10:500ms:10s", param, ctx)
        times = [Duration().convert(each, param, ctx) for each in parts[1:]]
        return Stall(nodes=int(parts[0]), seconds=times[0], every=times[1])
