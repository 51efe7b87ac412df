"""What all addresses come to, kept up to date one by one and copied only when it changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from egress.decision import Phase, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from egress.decision import Condition
    from egress.model import IP, Binding
    from egress.track import Track


class Ledger:
    """The whole of a decision; the public attributes are never changed, only replaced."""

    def __init__(self) -> None:
        self.desired: frozenset[Binding] = frozenset()
        self.bind_by: Mapping[Binding, float] = {}
        self.phases: Mapping[IP, Phase] = {}
        self.conditions: Mapping[IP, Condition] = {}
        self.damped: frozenset[IP] = frozenset()
        self._desired: set[Binding] = set()
        self._bind_by: dict[Binding, float] = {}
        self._phases: dict[IP, Phase] = {}
        self._conditions: dict[IP, Condition] = {}
        self._damped: set[IP] = set()
        self._stale = False

    def note(self, track: Track, now: float) -> None:
        """Take in where an address stands now."""
        wished, by = _wished(track, now)
        condition = track.condition or track.trouble
        damped = now < track.damped_until
        shown = (track.stage, track.detail, track.since, condition, damped)
        if wished is not track.wished or by != track.wished_by:
            self._wish(track, wished, by)
        if track.shown == shown:
            return
        track.shown = shown
        self._stale = True
        self._phases[track.ip] = Phase(track.stage, track.detail, track.since)
        if condition is None:
            self._conditions.pop(track.ip, None)
        else:
            self._conditions[track.ip] = condition
        (self._damped.add if damped else self._damped.discard)(track.ip)

    def strike(self, track: Track) -> None:
        """The address is no longer in the configuration, nor here."""
        self._wish(track, None, None)
        self._phases.pop(track.ip, None)
        self._conditions.pop(track.ip, None)
        self._damped.discard(track.ip)

    def freeze(self) -> None:
        """Renew the public attributes if anything changed."""
        if self._stale:
            self._stale = False
            self.desired = frozenset(self._desired)
            self.bind_by = dict(self._bind_by)
            self.phases = dict(self._phases)
            self.conditions = dict(self._conditions)
            self.damped = frozenset(self._damped)

    def _wish(self, track: Track, wished: Binding | None, by: float | None) -> None:
        self._stale = True
        if track.wished is not None:
            self._desired.discard(track.wished)
            self._bind_by.pop(track.wished, None)
        track.wished, track.wished_by = wished, by
        if wished is not None:
            self._desired.add(wished)
            if by is not None:
                self._bind_by[wished] = by


def _wished(track: Track, now: float) -> tuple[Binding | None, float | None]:
    """The binding that an address should have now, and until when it may be made."""
    if track.stage is Stage.BINDING:
        return track.binding, track.bind_by
    if track.stage is not Stage.BOUND or (track.restoring and now < track.restore_at):
        return None, None
    return track.binding, track.bind_by if track.restoring else None
