"""A scenario and its run: a cluster gathers, things happen to it, and figures come of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gossip.simulator.link import Link
from gossip.simulator.measure import HOUR, alarms, counters, death, quantiles, rates
from gossip.simulator.network import Network, gather
from gossip.tuning import Tuning, default, fast, memberlist_lan

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from gossip.effects import Effects
    from gossip.machine import Machine
    from gossip.simulator.measure import Alarms, Counters, Death, Quantiles, Rates

PRESETS: dict[str, Callable[[], Tuning]] = {
    "default": default,
    "fast": fast,
    "memberlist-lan": memberlist_lan,
}
SETTLE = 10.0
"""Seconds of virtual time that a cluster is given to gather before anything is measured."""
MOST_NODES = 5000
WATCH_VIEWS = 1.0
"""Seconds between two looks at how many opinions there are."""


class ScenarioError(ValueError):
    """A scenario that cannot be run; the text says why and what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """So many processes stop for `seconds`, again and again `every` so many seconds."""

    nodes: int
    seconds: float
    every: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is simulated; `owners` carry addresses, `kill` hosts die in the first half.

    The first to die are owners if there are any. `duration` is virtual seconds after the cluster
    has gathered.
    """

    nodes: int
    owners: int = 1
    kill: int = 0
    duration: float = 60.0
    seed: int = 1
    link: Link = field(default_factory=Link)
    stall: Stall | None = None
    tuning: Tuning = field(default_factory=Tuning)

    def __post_init__(self) -> None:
        checks = {
            f"{self.nodes} nodes, give 2 to {MOST_NODES}": not 2 <= self.nodes <= MOST_NODES,  # noqa: PLR2004
            f"{self.owners} owners of {self.nodes} nodes, give at most as many as nodes": (
                not 0 <= self.owners <= self.nodes
            ),
            f"{self.kill} of {self.nodes} nodes killed, leave one at least": (
                not 0 <= self.kill < self.nodes
            ),
            f"a duration of {self.duration:g} s, give more than nothing": self.duration <= 0,
            "more stalled nodes than nodes, stall fewer": (
                self.stall is not None and not 0 < self.stall.nodes <= self.nodes
            ),
            "a stall is not shorter than its period, stall for less or less often": (
                self.stall is not None and not 0 < self.stall.seconds < self.stall.every
            ),
        }
        for message, wrong in checks.items():
            if wrong:
                raise ScenarioError(message)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of it until `seconds` after the gathering; `views` are pairs of time and count."""

    scenario: Scenario
    seconds: float
    deaths: tuple[Death, ...]
    alarms: Alarms
    rates: Rates
    owner_rates: Rates
    views: tuple[tuple[float, int], ...]
    digest: str

    @property
    def detection(self) -> Quantiles | None:
        """From a death until the first other node was sure."""
        return quantiles(each.detected for each in self.deaths if each.detected is not None)

    def known_by(self, share: float) -> Quantiles | None:
        """From a death until this share of the others knew."""
        times = (each.known_by(share) for each in self.deaths)
        return quantiles(each for each in times if each is not None)

    @property
    def undetected(self) -> int:
        """Deaths that nobody has noticed yet."""
        return sum(each.detected is None for each in self.deaths)

    def per_node_hour(self, count: int) -> float:
        """A count as a rate."""
        return count / max(self.scenario.nodes * self.seconds / HOUR, 1e-12)


class Run:
    """One scenario under way; `advance` until `done`, `result` at any time."""

    def __init__(self, scenario: Scenario, dice: Callable[[int], Random]) -> None:
        self.scenario = scenario
        self.network = Network(scenario.seed, dice, link=scenario.link, tuning=scenario.tuning)
        self.names = [f"n{number}" for number in range(scenario.nodes)]
        self.owners = self.names[: scenario.owners]
        self._views: list[tuple[float, int]] = []
        self._killed: list[str] = []
        gather(self.network, self.names)
        self._ready = self.network.now + SETTLE
        self._end = self._ready + scenario.duration
        self._begun: float | None = None
        self._before: Counters = {}

    @property
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""
        whole = SETTLE + self.scenario.duration
        return min(1.0, 1.0 - (self._end - self.network.now) / whole)

    @property
    def done(self) -> bool:
        """Whether its time is over."""
        return self.network.now >= self._end

    def advance(self, seconds: float) -> None:
        """Let so much virtual time pass, but not more than there is."""
        until = min(self.network.now + seconds, self._end)
        if self._begun is None:
            self.network.run(min(until, self._ready) - self.network.now)
            if self.network.now < self._ready:
                return
            self._begin()
        self.network.run(max(0.0, until - self.network.now))

    def result(self) -> Result:
        """What is known so far."""
        network, begun = self.network, self._begun
        seconds = 0.0 if begun is None else network.now - begun
        sent = counters(network.running())
        owners = {name: sent[name] for name in self.owners if name in sent}
        deaths = tuple(
            death(network, network.hosts[name], owner=name in self.owners) for name in self._killed
        )
        return Result(
            self.scenario,
            seconds,
            deaths,
            alarms(network, network.now if begun is None else begun),
            rates(self._before, sent, seconds),
            rates(self._before, owners, seconds),
            tuple(self._views),
            network.digest,
        )

    def _begin(self) -> None:
        network, scenario = self.network, self.scenario
        self._begun = network.now
        for name in self.owners:
            network.do(name, _carry)
        self._before = counters(network.running())
        self._look()
        for number in range(scenario.kill):
            phase = (number + network.random.random()) / scenario.kill
            victim = self._victim(number)
            # An owner is watched a moment after it has begun to carry.
            when = self._begun + (0.1 + 0.4 * phase) * scenario.duration
            network.at(when, lambda victim=victim: self._kill(victim))  # type: ignore[misc]
        if scenario.stall is not None:
            for name in self.names[-scenario.stall.nodes :]:
                offset = network.random.random() * scenario.stall.every
                network.at(network.now + offset, lambda name=name: self._stall(name))  # type: ignore[misc]

    def _victim(self, number: int) -> str:
        if number < len(self.owners):
            return self.owners[number]
        return self.names[-1 - (number - len(self.owners))]

    def _kill(self, name: str) -> None:
        self._killed.append(name)
        self.network.crash(name)

    def _stall(self, name: str) -> None:
        stall = self.scenario.stall
        assert stall is not None
        self.network.stall(name, stall.seconds)
        self.network.at(self.network.now + stall.every, lambda: self._stall(name))

    def _look(self) -> None:
        self._views.append((self.network.now - (self._begun or 0.0), self.network.views()))
        self.network.at(self.network.now + WATCH_VIEWS, self._look)


def _carry(machine: Machine, now: float) -> Effects:
    return machine.carry(carrying=True, now=now)


def run(scenario: Scenario, dice: Callable[[int], Random]) -> Result:
    """The whole of it at once."""
    under_way = Run(scenario, dice)
    while not under_way.done:
        under_way.advance(scenario.duration)
    return under_way.result()
