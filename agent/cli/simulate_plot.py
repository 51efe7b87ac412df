"""The figure of a simulated run: who knew of a death when, and how many views there were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gossip.simulator.scenario import Result

FORMATS = (".png", ".svg")


class PlotError(Exception):
    """No figure can be drawn; the text says what to do."""


def prepare() -> Callable[..., None]:
    """The function that draws; PlotError at once where the library is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        message = "a plot needs matplotlib, which is not installed, pip install wayout[plot]"
        raise PlotError(message) from error

    def draw(result: Result, target: Path) -> None:
        figure = Figure(figsize=(9, 6), layout="constrained")
        known, views = figure.subplots(2, 1)
        _draw_known(known, result)
        _draw_views(views, result)
        figure.savefig(target)

    return draw


def _draw_known(axes: Any, result: Result) -> None:  # noqa: ANN401 - matplotlib's Axes
    for each in result.deaths:
        shares = [100 * (rank + 1) / each.others for rank in range(len(each.known))]
        kind = "owner" if each.owner else "node"
        axes.step(each.known, shares, where="post", label=f"{kind} {each.name}")
    scenario = result.scenario
    axes.set_title(f"{scenario.nodes} nodes, {scenario.link.loss:.0%} loss, seed {scenario.seed}")
    axes.set_xlabel("seconds after the death")
    axes.set_ylabel("% of members that know")
    axes.set_ylim(0, 105)
    if 0 < len(result.deaths) <= 10:  # noqa: PLR2004 - more would hide the curves
        axes.legend()


def _draw_views(axes: Any, result: Result) -> None:  # noqa: ANN401 - matplotlib's Axes
    axes.step([at for at, _ in result.views], [count for _, count in result.views], where="post")
    axes.set_xlabel("seconds")
    axes.set_ylabel("distinct views")
    axes.set_ylim(bottom=0)
