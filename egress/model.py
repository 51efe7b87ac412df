"""The words of ownership: what an egress is, who may carry it, and who says so.

Names are plain strings, addresses `ipaddress` objects, times loop seconds unless said otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

IP = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

PROTOCOL = 0x45
"""IFA_PROTO that marks an address as bound by us (Linux >= 5.18)."""


class Failback(Enum):
    """When an address goes back to the node that scores higher."""

    IMMEDIATE = "immediate"
    DELAYED = "delayed"
    NEVER = "never"


class Cause(StrEnum):
    """Why an address changes hands; the closed list of `history`."""

    NODE_DEAD = "node_dead"
    NODE_LEFT = "node_left"
    DRAIN = "drain"
    FAILBACK = "failback"
    SELECTOR = "selector"
    CAPACITY = "capacity"
    CONFIG = "config"
    CONFLICT = "conflict"
    HEALTH = "health"
    PARTITION = "partition"
    LEASE = "lease"
    GUARD = "guard"
    START = "start"


@dataclass(frozen=True, slots=True)
class Expression:
    """One match expression: `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selector:
    """Which members may carry an egress; the empty selector takes all."""

    labels: tuple[tuple[str, str], ...] = ()
    expressions: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Egress:
    """One object: an egress IP (one for each family, IPv4 first), with one owner for all.

    `failover` false means that it stays with its owner and goes nowhere else.
    """

    name: str
    ips: tuple[IP, ...]
    selector: Selector = Selector()
    priority: int = 0
    failback: Failback = Failback.DELAYED
    pin: str | None = None
    interface: str | None = None
    failover: bool = True


@dataclass(frozen=True, slots=True)
class Candidate:
    """A wayout member as ownership sees it.

    `present`: alive or suspect. `unreachable`: the watchers cannot reach it. `reasons`: why it
    may not own anything (from its metadata); empty means eligible. `capacity`: how many
    addresses at most, None without a limit. `healthy_since`: since when it has been present and
    eligible without a break. `macs`: hardware addresses of its egress interfaces, lower case.
    `networks`: subnets on those interfaces; empty when unknown. `lease`: its lease in seconds.
    `addresses`: its own addresses there. `lacks`: interfaces that egresses name and that it cannot
    use now; the empty name stands for where it puts those that name none.
    """

    name: str
    present: bool = True
    left: bool = False
    unreachable: bool = False
    reasons: tuple[str, ...] = ()
    weight: float = 1.0
    capacity: int | None = None
    labels: tuple[tuple[str, str], ...] = ()
    healthy_since: float = 0.0
    macs: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()
    lease: float = 3.0
    restarting: bool = False
    addresses: tuple[IP, ...] = ()
    lacks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Claim:
    """The published statement "I carry this IP" (or, with `held` false, "I carry it no more").

    `at` is the claimant's wall clock (Unix seconds), for people alone; nothing is decided by it.
    `to`: of a release, the one member that may bind without asking the wire; None, or a `to`
    that got lost on the way, obliges everybody to ask. `why`: of a release, for people alone.
    """

    ip: IP
    epoch: int
    owner: str
    held: bool
    at: float = 0.0
    to: str | None = None
    why: Cause | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """Who should carry an egress, who comes next, and the rule that decided.

    `rule` is one of: pinned, sticky, failback, score, none. `reason` says why nobody can when
    `owner` is None.
    """

    owner: str | None
    standby: str | None
    rule: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, order=True)
class Binding:
    """An address on an interface, always /32 or /128."""

    ip: IP = field(compare=False)
    interface: str
    key: tuple[int, int, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (self.ip.version, int(self.ip), self.interface))


@dataclass(frozen=True, slots=True)
class Interface:
    """A link of this host; `networks` are those of its addresses that are not ours."""

    name: str
    index: int
    mac: str
    carrier: bool
    networks: tuple[Network, ...] = ()
    addresses: tuple[IP, ...] = ()
    master: str | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """An address that the kernel has, foreign ones included.

    `ours`: it wears our IFA_PROTO. `valid`: seconds that its lifetime has left, None for ever.
    `prefix`: its length; ours are 32 or 128.
    """

    binding: Binding
    ours: bool
    valid: float | None
    prefix: int
    usable: bool = True


@dataclass(frozen=True, slots=True)
class Observed:
    """What the kernel says, at one moment."""

    interfaces: tuple[Interface, ...] = ()
    bound: tuple[Bound, ...] = ()

    @property
    def ours(self) -> frozenset[Binding]:
        """Bindings that wear our mark."""
        return frozenset(each.binding for each in self.bound if each.ours)


@dataclass(frozen=True, slots=True)
class Bind:
    """Put an address on its interface, with a lease."""

    binding: Binding


@dataclass(frozen=True, slots=True)
class Unbind:
    """Take an address off its interface."""

    binding: Binding


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell the LAN where an address is; `first` ones are never paced."""

    binding: Binding
    first: bool


Step = Bind | Unbind | Announce


@dataclass(frozen=True, slots=True)
class Failure:
    """A step that the kernel refused; `errno` 0 stands for a timeout."""

    step: Step
    errno: int
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a plan."""

    done: tuple[Step, ...] = ()
    failed: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """Ask the LAN who answers for `ip`; `controls` are addresses that ought to answer.

    Silence counts only if a control answered in the same moment.
    """

    ip: IP
    interface: str
    controls: tuple[IP, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """Who answered a question between `asked` and `heard` (loop seconds).

    `macs`: all that answered for the address, our own excluded. `control`: a control answered;
    None when there was none to ask. `carrier`: the link had carrier all the while. `rivals`:
    MACs of others that probed for the same address in the same moment (ARP probe or neighbour
    solicitation without a sender address, RFC 5227 §2.1.1), our own excluded.
    """

    question: Question
    macs: frozenset[str]
    control: bool | None
    carrier: bool
    asked: float
    heard: float
    rivals: frozenset[str] = frozenset()
