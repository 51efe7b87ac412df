"""The words in which ownership is decided: what is looked at, what is wished, and why.

A `View` is one moment of the world as the controller sees it; a `Decision` is everything that
should follow from it. Times are loop seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from egress.claims import Claims
    from egress.model import (
        IP,
        Announce,
        Assignment,
        Binding,
        Candidate,
        Cause,
        Claim,
        Egress,
        Observed,
        Question,
    )
    from egress.placement import Placement

NEVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long things take and stay true, in seconds (DESIGN §5, §10).

    `window`: what asking the LAN four times takes. `fresh`: how long silence is good for once
    the asking is over; it must stay below the spacing of two windows, or a second asker begins
    after our last question and ends before we answer. `grant`: how long a release to us by name
    replaces the asking, if we have been in touch with who released it for `acquaintance` (longer
    than healing takes). `courtesy`: how long others leave it to the heir that a release names.
    `carrier`: how long a link must have been up before silence counts where there is nobody else
    to ask. `vigil`: how often the host of a restarting member is asked about.
    `tick`: how often we look at the clock while nobody else does; `stall`: a gap of so much
    between two looks means that we did not run.
    """

    window: float = 0.15
    fresh: float = 0.08
    grant: float = 0.5
    courtesy: float = 0.5
    acquaintance: float = 10.0
    lost_reply: float = 1.0
    recheck: float = 0.1
    ahead: float = 2.0
    ahead_slow: float = 0.5
    blind: float = 0.25
    blind_max: float = 2.0
    taken: float = 0.5
    taken_max: float = 2.0
    stranger: float = 0.5
    stranger_max: float = 8.0
    overdue: float = 1.5
    carrier: float = 3.0
    vigil: float = 1.0
    announcements: tuple[float, ...] = (0.0, 0.2, 1.3, 2.5, 10.0)
    restores: int = 5
    restore_window: float = 60.0
    restore_max: float = 1.0
    damping: float = 60.0
    tick: float = 0.25
    stall: float = 0.5
    breadth: int = 512
    """Questions that may be unanswered at one moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the controller sees. A view that changed is another object, never the same one.

    `assignments`: by egress name. `places`: where each IP belongs on this host, or why nowhere.
    `controls`: by interface, addresses that ought to answer (the gateway first). `ready`: synced
    and gathered, so that new addresses may be bound. `fenced`: on the small side of a partition.
    `silent`: members whose heartbeats are missing, without a verdict yet. `ahead`: the assignments
    as they would be if those, and the restarting ones, were lost; where it says nothing, the
    standby prepares for that.
    `lost`: members that went missing lately, and when each was last heard. `takeover_not_before`:
    by lost member, the time before which nobody binds what it carried.
    """

    egresses: tuple[Egress, ...]
    assignments: Mapping[str, Assignment]
    claims: Claims
    candidates: Mapping[str, Candidate]
    places: Mapping[IP, Placement]
    observed: Observed
    controls: Mapping[str, tuple[IP, ...]] = field(default_factory=dict)
    ready: bool = True
    fenced: bool = False
    draining: bool = False
    silent: frozenset[str] = frozenset()
    ahead: Mapping[str, Assignment] = field(default_factory=dict)
    lost: Mapping[str, float] = field(default_factory=dict)
    takeover_not_before: Mapping[str, float] = field(default_factory=dict)


class Stage(Enum):
    """Where an address stands on this node."""

    IDLE = "idle"
    WAITING = "waiting"
    CHECKING = "checking"
    BLOCKED = "blocked"
    BINDING = "binding"
    BOUND = "bound"
    RELEASING = "releasing"


@dataclass(frozen=True, slots=True)
class Phase:
    """A stage, since when, and what it is about: a member, a MAC or a reason."""

    stage: Stage
    detail: str | None = None
    since: float = 0.0


class Kind(Enum):
    """What can be wrong with an address on this node."""

    ADDRESS_CONFLICT = "AddressConflict"
    NO_INTERFACE = "NoInterface"
    UNCONFIRMED = "Unconfirmed"
    BIND_ERROR = "BindError"
    ADDRESS_REMOVED = "AddressRemoved"
    FOREIGN_ADDRESS = "ForeignAddress"


@dataclass(frozen=True, slots=True)
class Condition:
    """Something an operator should know; `mac` is who answers in a conflict."""

    kind: Kind
    mac: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One finished change of owner, as this node saw it; unknown times are None.

    `to` this node: it took over, and knows all times. Another: it was handed over to that heir,
    which counts the move. None: given up without an heir; `bound` is when it was gone then.
    `lost`: when the old owner was last heard; `detected`: when we knew that it is gone, or that
    it released the address.
    """

    ip: IP
    name: str
    origin: str | None
    to: str | None
    cause: Cause
    lost: float | None = None
    detected: float | None = None
    elected: float | None = None
    checked: float | None = None
    bound: float
    announced: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What should be so from now on.

    `desired`: all bindings this node should have. `bind_by`: of those that it does not have yet,
    the time after which the kernel must not be told any more (look again instead). `publish`:
    claims without a wall clock (`at` 0). `damped`: addresses given up because somebody keeps
    removing them; while there are any this node had better call itself unfit. `mute`: members that
    are said to restart, but whose hosts are silent on the LAN: not restarting but unreachable.
    `restores`: bindings that another hand took away, and that are about to be put back.
    `deadline`: call again then at the latest.
    """

    desired: frozenset[Binding]
    bind_by: Mapping[Binding, float]
    asks: tuple[Question, ...]
    announcements: tuple[Announce, ...]
    publish: tuple[Claim, ...]
    phases: Mapping[IP, Phase]
    conditions: Mapping[IP, Condition]
    moves: tuple[Move, ...]
    damped: frozenset[IP]
    mute: frozenset[str]
    deadline: float
    restores: tuple[Binding, ...] = ()
