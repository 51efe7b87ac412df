"""The questions of one node: how many may be out, which wait, and which were never answered."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from egress.model import Question

if TYPE_CHECKING:
    from collections.abc import Callable

    from egress.decision import Timing, View
    from egress.track import Track


class Asker:
    """Hands out questions in the order in which they were wanted, a bounded number at a time."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._queue: deque[Track] = deque()
        self._out = 0

    def want(self, track: Track) -> None:
        """Ask about it as soon as there is room; wanted twice is wanted once."""
        track.wants = True
        if not track.queued:
            track.queued = True
            self._queue.append(track)

    def expire(self, track: Track, now: float) -> None:
        """A question without a reply for so long will not get one."""
        pending = track.check.pending
        if pending is not None and now >= pending + self._timing.lost_reply:
            self.answered(track)

    def answered(self, track: Track) -> None:
        """Its question is no longer out."""
        track.check.pending = None
        self._out -= 1

    def questions(
        self, view: View, now: float, asked: Callable[[Track], None]
    ) -> tuple[Question, ...]:
        """What to ask now; `asked` is told of each."""
        found: list[Question] = []
        held_back: list[Track] = []
        while self._queue and self._out < self._timing.breadth:
            track = self._queue.popleft()
            track.queued = False
            interface = interface_of(track, view)
            if not track.wants or interface is None:
                continue
            if track.check.pending is not None:
                held_back.append(track)
                continue
            track.wants = False
            track.check.pending = now
            self._out += 1
            controls = tuple(ip for ip in view.controls.get(interface, ()) if ip != track.ip)
            found.append(Question(track.ip, interface, controls))
            asked(track)
        for track in held_back:
            self.want(track)
        return tuple(found)


def interface_of(track: Track, view: View) -> str | None:
    """Where an address is, or else where it belongs."""
    if track.binding is not None:
        return track.binding.interface
    place = view.places.get(track.ip)
    return None if place is None else place.interface
