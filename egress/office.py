"""What everybody who works on addresses shares: the node, its dice, and what is to be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from egress.asking import Asker
from egress.chronicle import Chronicle
from egress.vigil import Vigil

if TYPE_CHECKING:
    from random import Random

    from egress.decision import Timing
    from egress.model import Announce, Binding, Claim


class Office:
    """Owned by `Moves`.

    `calm_at`: until then we may have missed what others did, because we did not run, or were
    fenced. `live_since`: since when each living member has been in touch without a break;
    `carrier_since`: since when each link has had carrier.
    """

    def __init__(self, me: str, timing: Timing, rng: Random) -> None:
        self.me = me
        self.timing = timing
        self.rng = rng
        self.asker = Asker(timing)
        self.chronicle = Chronicle(me)
        self.vigil = Vigil()
        self.calm_at = float("-inf")
        self.live_since: dict[str, float] = {}
        self.carrier_since: dict[str, float] = {}
        self.publish: list[Claim] = []
        self.announce: list[Announce] = []
        self.restores: list[Binding] = []
