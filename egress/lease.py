"""When a lease is renewed, when it is too late for that, and what "gone" means.

The kernel counts lifetimes in whole seconds and looks about once a second, so an address is gone
at some time between `lease` and `lease` + 1.3 s after its last renewal (measured, kernel facts
K17, K57). A renewal of an expired address re-creates it (K55), hence the margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from egress.model import Binding

SHARE = 4
"""Renewals in the length of one lease."""
MARGIN = 0.5
"""Seconds before the end in which nothing may be renewed any more."""
SLACK = 1.3
"""Seconds by which the kernel may be late to drop an address."""


class Verdict(Enum):
    """`kept`: in time. `straddled`: the send may have crossed the end. `lapsed`: too late."""

    KEPT = "kept"
    STRADDLED = "straddled"
    LAPSED = "lapsed"


def interval(lease: float) -> float:
    """Seconds between two renewals."""
    return lease / SHARE


def renewable(last: float, now: float, lease: float) -> bool:
    """Whether an address that was last renewed at `last` may be renewed at `now`."""
    return now - last < lease - MARGIN


def gone_after(lease: float) -> float:
    """Seconds after the last renewal when the address is certainly gone."""
    return lease + SLACK


@dataclass(slots=True)
class _Held:
    last: float


class Renewals:
    """Bindings that are held, each with its last renewal; owned by the keeper."""

    def __init__(self, lease: float) -> None:
        self.lease = lease
        self._held: dict[Binding, _Held] = {}

    def __contains__(self, binding: Binding) -> bool:
        return binding in self._held

    def __iter__(self) -> Iterator[Binding]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, bindings: Iterable[Binding], now: float) -> None:
        """Bound or adopted at `now`: its lifetime began no earlier."""
        for binding in bindings:
            self._held[binding] = _Held(now)

    def drop(self, bindings: Iterable[Binding]) -> None:
        """No longer ours to renew."""
        for binding in bindings:
            self._held.pop(binding, None)

    def due(self, now: float) -> tuple[Binding, ...]:
        """Those whose turn it is, oldest first."""
        period = interval(self.lease)
        ripe = [each for each, held in self._held.items() if now - held.last >= period]
        return tuple(sorted(ripe, key=lambda each: self._held[each].last))

    def next_due(self) -> float:
        """When the next renewal falls due; infinity when nothing is held."""
        oldest = min((held.last for held in self._held.values()), default=float("inf"))
        return oldest + interval(self.lease)

    def lapsed(self, now: float) -> tuple[Binding, ...]:
        """Those for which it is too late."""
        late = [each for each, held in self._held.items() if not self._renewable(held, now)]
        return tuple(sorted(late))

    def renewed(self, binding: Binding, before: float, after: float) -> Verdict:
        """A renewal was sent between `before` and `after`; what it is worth."""
        held = self._held.get(binding)
        if held is None or not self._renewable(held, before):
            return Verdict.LAPSED
        if not self._renewable(held, after):
            return Verdict.STRADDLED
        held.last = before
        return Verdict.KEPT

    def _renewable(self, held: _Held, now: float) -> bool:
        return renewable(held.last, now, self.lease)
