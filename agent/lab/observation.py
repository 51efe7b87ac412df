"""Watching through the observer: starts it in its namespace, and keeps the timeline it tells."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Self

from agent.lab import recorder
from agent.lab.addresses import OBSERVER, OBSERVER_NUMBER, Place
from agent.lab.hosts import INTERFACE
from agent.lab.observer import Order
from agent.lab.processes import LabError, environment
from agent.lab.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from agent.lab.hosts import Network

FASTEST = 0.01
"""Seconds between two questions about one address, as long as there are not too many."""
QUESTIONS_PER_SECOND = 5000.0
"""More would cost the observer, and every host that has to answer, too much of a core."""
CHUNK = 1 << 16
END_PATIENCE = 3.0


def interval(ips: int) -> float:
    """How often so many addresses can be asked for."""
    return max(FASTEST, ips / QUESTIONS_PER_SECOND)


class Observation:
    """A running observer; leave the `with` block to end it.

        with Observation(network, ips) as seen:
            seen.until(lambda: seen.timeline.macs(…), patience=10)

    `timeline` is as new as the last call of `look` or `until`.
    """

    def __init__(self, network: Network, ips: Iterable[str], every: float | None = None) -> None:
        asked = tuple(ips)
        self.timeline = Timeline(every or interval(len(asked)))
        place = Place(OBSERVER, OBSERVER_NUMBER)
        task = Order(INTERFACE, place.mac, place.ip4, place.ip6, asked, self.timeline.interval)
        program = (sys.executable, "-I", "-m", "agent.lab.observer", task.text())
        self._argv = network.inside(OBSERVER, program)
        self._rest = b""

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(  # noqa: S603 - our own program, by argument vector
            self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            start_new_session=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.process.communicate(timeout=END_PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()

    def look(self, seconds: float = 0.0) -> None:
        """Take in what the observer tells for so long; LabError if it has ended."""
        limit = time.monotonic() + seconds
        while True:
            self._take(max(limit - time.monotonic(), 0.0))
            if time.monotonic() >= limit:
                return

    def until(self, true: Callable[[], bool], patience: float) -> bool:
        """Look until `true()`; False if it is not after `patience` seconds."""
        limit = time.monotonic() + patience
        while not true():
            left = limit - time.monotonic()
            if left <= 0:
                return False
            self._take(left)
        return True

    def caught_up(self, at: float) -> bool:
        """Wait until all answers to the questions up to a moment are in."""
        return self.until(lambda: self.timeline.until >= at, END_PATIENCE)

    def _take(self, seconds: float) -> None:
        output = self.process.stdout
        assert output is not None
        ready, _, _ = select.select([output], [], [], seconds)
        if not ready:
            return
        chunk = os.read(output.fileno(), CHUNK)
        if not chunk:
            raise LabError(f"the observer has ended, {self._complaint()}")
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for each in lines:
            self.timeline.fold(recorder.read(each.decode()))

    def _complaint(self) -> str:
        _, said = self.process.communicate(timeout=END_PATIENCE)
        return said.decode(errors="replace").strip().rpartition("\n")[2] or "without a word"
