"""`wayout simulate`: the real protocol in virtual time, and what came of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent.cli.act import Duration
from agent.cli.asking import EXIT_USAGE, complain, fail, json_option, print_json
from agent.cli.simulate_words import Share, StallWord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gossip.simulator.scenario import Result, Run
    from gossip.simulator.scenario import Stall as StallOf
    from gossip.tuning import Tuning

INTERRUPTED = 130
STEP = 0.25
"""Virtual seconds between two looks at the clock and the keyboard."""
PRESETS = ("default", "fast", "memberlist-lan")


@click.command()
@click.option("--nodes", type=int, default=10, show_default=True, metavar="N", help="Members.")
@click.option("--owners", type=int, metavar="N", help="How many carry addresses. [default: N/10]")
@click.option("--kill", type=int, default=0, metavar="K", help="How many die, owners first.")
@click.option("--loss", type=Share(), default="0%", metavar="P", help="Lost datagrams: 5% or 0.05.")
@click.option(
    "--stall",
    type=StallWord(),
    metavar="N:TIME:EVERY",
    help="So many processes stop for a time, again and again: 10:500ms:10s.",
)
@click.option("--rtt", type=Duration(), default="1ms", metavar="TIME", help="Mean round trip.")
@click.option("--preset", type=click.Choice(PRESETS), help="Settings of gossip. [default: default]")
@click.option("--config", "path", metavar="FILE", help="Settings of gossip from this file.")
@click.option("--duration", type=Duration(), default="60s", show_default=True, metavar="TIME")
@click.option("--seed", type=int, default=1, show_default=True, help="Replays a run to the bit.")
@click.option("--plot", metavar="FILE", help="Draw it: a name that ends in .png or .svg.")
@json_option
def simulate(  # noqa: PLR0913 - one argument for each option
    *,
    nodes: int,
    owners: int | None,
    kill: int,
    loss: float,
    stall: StallOf | None,
    rtt: float,
    preset: str | None,
    path: str | None,
    duration: float,
    seed: int,
    plot: str | None,
    as_json: bool,
) -> int:
    """Try settings in virtual time: how soon deaths are noticed, false alarms, traffic."""
    from random import Random

    from gossip.simulator.link import Link
    from gossip.simulator.scenario import Run, Scenario, ScenarioError

    draw = _plotter(plot)
    try:
        scenario = Scenario(
            nodes=nodes,
            owners=max(1, nodes // 10) if owners is None else owners,
            kill=kill,
            duration=duration,
            seed=seed,
            # Each way takes a quarter to three quarters of the round trip.
            link=Link(loss=loss, delay=(rtt / 4, rtt * 3 / 4)),
            stall=stall,
            tuning=_tuning(preset, path),
        )
    except ScenarioError as error:
        fail(str(error), EXIT_USAGE)
    run = Run(scenario, Random)
    interrupted = _complete(run)
    _report(run, draw, plot, interrupted=interrupted, as_json=as_json)
    return INTERRUPTED if interrupted else 0


def _report(
    run: Run,
    draw: Any,  # noqa: ANN401 - a function, or None
    plot: str | None,
    *,
    interrupted: bool,
    as_json: bool,
) -> None:
    """Draw and print what is known."""
    result = run.result()
    if draw is not None:
        try:
            draw(result)
        except OSError as error:
            fail(f"cannot write {plot}, {error.strerror}, name another path")
    if as_json:
        print_json(document(result))
    else:
        _show(result)
    if interrupted:
        complain(
            "warning", [f"interrupted after {result.seconds:.1f} of {run.scenario.duration:g} s"]
        )


def _complete(run: Run) -> bool:
    """Run it to its end; true if somebody pressed Ctrl-C before."""
    try:
        for _ in _progress(run):
            run.advance(STEP)
    except KeyboardInterrupt:
        return True
    return False


def _progress(run: Run) -> Iterator[None]:
    """Once for each step there is to do, behind a bar if somebody looks on."""
    if not sys.stderr.isatty():
        while not run.done:
            yield
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{run.scenario.nodes} nodes", total=1.0)
        while not run.done:
            yield
            bar.update(task, completed=run.share)


def _tuning(preset: str | None, path: str | None) -> Tuning:
    from dataclasses import replace

    from gossip.simulator.scenario import PRESETS as TUNINGS

    if path is None:
        return TUNINGS[preset or "default"]()
    if preset is not None:
        fail("--preset and --config exclude each other, give one of them", EXIT_USAGE)
    from agent.wiring import tuning
    from config.load import load
    from config.problems import ConfigError, lines

    try:
        settings = load(path).settings
    except ConfigError as error:
        complain("error", lines(error.problems))
        sys.exit(EXIT_USAGE)
    # The addresses of the simulated hosts are not those that the file allows.
    return replace(tuning(settings), allowed=())


def _plotter(plot: str | None) -> Any:  # noqa: ANN401 - a function, or None
    """What draws the figure, found before the work is done and not after it."""
    if plot is None:
        return None
    from functools import partial

    from agent.cli.simulate_plot import FORMATS, PlotError, prepare

    if Path(plot).suffix not in FORMATS:
        fail(f"{plot} ends in neither .png nor .svg, name it so", EXIT_USAGE)
    if not Path(plot).absolute().parent.is_dir():
        fail(f"{plot} is in a folder that does not exist, make it or name another", EXIT_USAGE)
    try:
        return partial(prepare(), target=Path(plot))
    except PlotError as error:
        fail(str(error), EXIT_USAGE)


def document(result: Result) -> dict[str, Any]:
    """The run as JSON; durations are seconds."""
    from dataclasses import asdict

    def told(quantiles: Any) -> dict[str, float] | None:  # noqa: ANN401 - Quantiles or None
        return None if quantiles is None else asdict(quantiles)

    scenario, alarms = result.scenario, result.alarms
    return {
        "seed": scenario.seed,
        "nodes": scenario.nodes,
        "owners": scenario.owners,
        "killed": len(result.deaths),
        "undetected": result.undetected,
        "loss": scenario.link.loss,
        "duration_seconds": result.seconds,
        "detection_seconds": told(result.detection),
        "known_by_99_percent_seconds": told(result.known_by(0.99)),
        "known_by_all_seconds": told(result.known_by(1.0)),
        "false_suspicions": alarms.suspicions,
        "false_deaths": alarms.deaths,
        "false_unreachable": alarms.unreachable,
        "false_suspicions_per_node_hour": result.per_node_hour(alarms.suspicions),
        "false_deaths_per_node_hour": result.per_node_hour(alarms.deaths),
        "packets_per_second_per_node": result.rates.packets,
        "bytes_per_second_per_node": result.rates.octets,
        "stream_bytes_per_second_per_node": result.rates.stream_octets,
        "packets_per_second_per_owner": result.owner_rates.packets,
        "distinct_views": {
            "max": max((count for _, count in result.views), default=0),
            "last": result.views[-1][1] if result.views else 0,
        },
        "digest": result.digest,
    }


def _show(result: Result) -> None:
    from agent.cli.tables import Column, draw, show

    times = {
        "noticed": result.detection,
        "known by 99 %": result.known_by(0.99),
        "known by all": result.known_by(1.0),
    }
    columns = (
        Column("AFTER A DEATH", lambda row: row["title"]),
        Column("MEDIAN", lambda row: _seconds(row["times"], "p50")),
        Column("P99", lambda row: _seconds(row["times"], "p99")),
        Column("WORST", lambda row: _seconds(row["times"], "max")),
    )
    if result.deaths:
        rows = [{"title": title, "times": found} for title, found in times.items()]
        show(draw(columns, rows))
        click.echo()
    figures = [{"title": title, "value": value} for title, value in _figures(result).items()]
    pair = (
        Column("FIGURE", lambda row: row["title"]),
        Column("VALUE", lambda row: row["value"]),
    )
    show(draw(pair, figures))


def _figures(result: Result) -> dict[str, str]:
    alarms, scenario = result.alarms, result.scenario

    def alarm(count: int) -> str:
        return f"{count} ({result.per_node_hour(count):.3g} per node and hour)"

    return {
        "killed": f"{len(result.deaths)} of {scenario.nodes}, {result.undetected} unnoticed",
        "false suspicions": alarm(alarms.suspicions),
        "false deaths": alarm(alarms.deaths),
        "false verdicts unreachable": alarm(alarms.unreachable),
        "packets a second": f"{result.rates.packets:.1f} a node, "
        f"{result.owner_rates.packets:.1f} an owner",
        "bytes a second": f"{result.rates.octets:.0f} a node, "
        f"{result.rates.stream_octets:.0f} more in streams",
        "views at once": f"{max((each for _, each in result.views), default=0)} at the most",
        "seed, digest": f"{scenario.seed}, {result.digest}",
    }


def _seconds(times: Any, name: str) -> str:  # noqa: ANN401 - Quantiles or None
    return "-" if times is None else f"{getattr(times, name):.3f} s"
