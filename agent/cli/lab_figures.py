"""The commands `wayout lab observe` and `wayout lab measure`: figures as an observer sees them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from agent.cli.act import Duration
from agent.cli.asking import EXIT_FAILED, complain, json_option, print_json
from agent.cli.lab_words import (
    FEWEST,
    find,
    ips_option,
    name_option,
    nodes_option,
    set_option,
    told,
)
from agent.lab.processes import LabError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent.lab.cluster import Cluster
    from agent.lab.measure import Trial
    from agent.lab.timeline import Timeline

REPEAT_MAX = 10_000
MEASURES = {
    "until another answers": "takeover_seconds",
    "until the last of them is": "all_done_seconds",
    "longest time without an answer": "silence_seconds",
    "time with two answerers": "two_answerers_seconds",
}


class Fault(click.ParamType[str]):
    """The name of a fault that can be measured."""

    name = "fault"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """The same, if there is one of that name."""
        from agent.lab import strikes

        if value == "help":
            for name, kind in {**strikes.KINDS, "sigstop-N": strikes.find("sigstop-5")}.items():
                click.echo(f"{name:<16} {kind.does}")
            raise click.exceptions.Exit
        try:
            strikes.find(str(value))
        except LabError as error:
            self.fail(str(error), param, ctx)
        return str(value)


@click.command()
@click.option(
    "--for",
    "seconds",
    type=Duration(),
    default="5s",
    show_default=True,
    metavar="TIME",
    help="How long.",
)
@click.option("--every", type=Duration(), metavar="TIME", help="How often; 10ms up to 50 IPs.")
@name_option
@json_option
@told
def observe(name: str | None, seconds: float, every: float | None, *, as_json: bool) -> None:
    """Ask the LAN of a running lab who has each IP, and tell who answered."""
    from agent.lab.observation import Observation
    from agent.lab.processes import interruptible

    found = find(name)
    watching = Observation(found.network, found.ips, every)
    with interruptible(), watching as seen, contextlib.suppress(KeyboardInterrupt):
        seen.look(seconds)
    if as_json:
        print_json(seen.timeline.document(found.ips))
    else:
        _show_timeline(found, seen.timeline)


@click.command()
@click.option(
    "--fault",
    type=Fault(),
    default="host-death",
    show_default=True,
    metavar="FAULT",
    help="Which; 'help' lists all.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, REPEAT_MAX),
    default=20,
    show_default=True,
    metavar="N",
    help="How often.",
)
@click.option(
    "--seconds",
    type=Duration(),
    metavar="TIME",
    help="How long to watch before the fault is undone [default: until all IPs have moved].",
)
@nodes_option
@ips_option
@set_option
@name_option
@json_option
@told
def measure(  # noqa: PLR0913 - one argument for each option
    *,
    name: str | None,
    fault: str,
    repeat: int,
    seconds: float | None,
    nodes: int,
    ips: int,
    sets: tuple[str, ...],
    as_json: bool,
) -> int:
    """Do a fault again and again, and tell for how long IPs had no owner, or two.

    In a lab of its own, or in a running one that is named. Where the cluster does not come to
    rest any more, it ends with what was measured until then, and exit code 1.
    """
    from agent.lab import measure as work
    from agent.lab.observation import Observation

    if nodes < FEWEST:
        raise click.BadParameter(f"a take-over takes {FEWEST} nodes", param_hint="--nodes")
    done: list[Trial] = []
    problem = None
    with _lab(name, nodes, ips, sets) as found, Observation(found.network, found.ips) as seen:
        try:
            for trial in work.trials(found, seen, fault, repeat, seconds):
                done.append(trial)
                if not as_json:
                    _tell(trial, len(done), repeat)
        except LabError as error:
            problem = str(error)
        figures = {**work.document(found, seen, fault, done), "problem": problem}
    if as_json:
        print_json(figures)
    else:
        _show_figures(figures)
    if problem is not None:
        complain("error", [f"after {len(done)} of {repeat} times, {problem}"])
    return EXIT_FAILED if problem is not None else 0


@contextlib.contextmanager
def _lab(name: str | None, nodes: int, ips: int, sets: tuple[str, ...]) -> Iterator[Cluster]:
    """A running lab if one is named, else one that goes with the block."""
    from agent.lab import cluster, record
    from agent.lab.processes import interruptible

    if name is not None:
        with interruptible():
            yield find(name)
        return
    with cluster.temporary(record.free("measure"), nodes=nodes, ips=ips, sets=sets) as found:
        yield found


def _tell(trial: Trial, number: int, repeat: int) -> None:
    taken = [each.taken * 1000 for each in trial.losses if each.taken is not None]
    count, doubled = len(trial.losses), sum(each.doubled for each in trial.losses) * 1000
    moved = f"{len(taken)} of {count} IPs taken over" if taken else f"none of {count} IPs moved"
    times = f" after {min(taken):.0f}-{max(taken):.0f} ms" if taken else ""
    extra = f", {len(trial.needless)} others moved without need" if trial.needless else ""
    click.echo(
        f"{number:>4}/{repeat}  {', '.join(trial.victims)}: {moved}{times}, "
        f"{doubled:.0f} ms with two answerers{extra}"
    )


def _show_figures(figures: Mapping[str, Any]) -> None:
    from agent.cli.tables import Column, draw, show

    rows = [{"title": title, **(figures[key] or {})} for title, key in MEASURES.items()]
    columns = (
        Column("FOR EACH IP", lambda row: row["title"]),
        Column("MEDIAN", lambda row: _milliseconds(row.get("median"))),
        Column("P99", lambda row: _milliseconds(row.get("p99"))),
        Column("WORST", lambda row: _milliseconds(row.get("max"))),
    )
    click.echo()
    show(draw(columns, rows))
    click.echo(
        f"\n{figures['does']}: {figures['repeat']} times, {figures['lost']} IPs concerned, "
        f"{figures['not_taken_over']} stayed, {figures['silent_ips']} went unanswered, "
        f"{figures['two_answerers_ips']} had two answerers, {figures['needless_moves']} moved "
        f"without need; asked every {_milliseconds(figures['resolution_seconds'])}, "
        f"{_milliseconds(figures['slowest_seconds'])} at the slowest"
    )


def _show_timeline(found: Cluster, timeline: Timeline) -> None:
    from agent.cli.tables import Column, draw, show

    window = (timeline.began, timeline.until)
    rows = []
    for ip in found.ips:
        silent = max((each.seconds for each in timeline.silences(ip, *window)), default=0.0)
        doubled = sum(each.seconds for each in timeline.overlaps(ip, *window))
        macs = [each.mac for each in timeline.spans(ip)]
        hosts = ", ".join(f"{found.host_of(mac)} {mac}" for mac in macs)
        rows.append({"ip": ip, "hosts": hosts, "silent": silent, "doubled": doubled})
    columns = (
        Column("IP", lambda row: row["ip"]),
        Column("ANSWERED BY", lambda row: row["hosts"], folds=True),
        Column("LONGEST SILENCE", lambda row: _milliseconds(row["silent"])),
        Column("TWO ANSWERERS", lambda row: _milliseconds(row["doubled"])),
    )
    show(draw(columns, rows))


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.0f} ms"
