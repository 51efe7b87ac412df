"""Who may carry an egress; every refusal is a short word that `explain` shows and metrics count."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from egress.model import IP, Candidate, Egress, Expression, Network, Selector


class Refusal(StrEnum):
    """Why a member may not be given an egress now. The set is closed: words become labels.

    The first block is what others see of it, the second what it says of itself, the third is
    about this egress.
    """

    GONE = "gone"
    LEFT = "left"
    UNREACHABLE = "unreachable"
    RESTARTING = "restarting"

    NOT_ELIGIBLE = "not_eligible"
    MAINTENANCE = "maintenance"
    DRAINING = "draining"
    STOPPING = "stopping"
    ISOLATED = "isolated"
    DAMPED = "damped"
    STARTING = "starting"
    NO_CARRIER = "no_carrier"
    NO_INTERFACE = "no_interface"
    UNHEALTHY = "unhealthy"
    """A health check of its own fails; its name follows after a colon."""
    UNFIT = "unfit"
    """Anything else, of a member that is newer than we are."""

    SELECTOR = "selector"
    NO_SUBNET = "no_subnet"


class Vacancy(StrEnum):
    """Why an egress has no owner."""

    OWN_ADDRESS = "own_address"
    """A member has the address as its own."""
    FAILOVER_NONE = "failover_none"
    """It may only live on one node, and that one cannot."""
    NO_CAPACITY = "no_capacity"
    NO_ELIGIBLE_NODE = "no_eligible_node"


def refusal(candidate: Candidate, egress: Egress) -> Refusal | None:
    """Why `candidate` may not be given `egress` now; None when it may."""
    return unwell(candidate) or misfit(candidate, egress)


def tally(candidates: Iterable[Candidate], egress: Egress) -> str:
    """How many candidates are refused for which reason, the most frequent first, for people.

    As in `no_interface 3, draining 1`; `no member` when there is nobody to ask.
    """
    words = Counter(word for each in candidates if (word := refusal(each, egress)))
    ordered = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{word} {count}" for word, count in ordered) or "no member"


def unwell(candidate: Candidate) -> Refusal | None:
    """Why it may be given nothing at all now."""
    if candidate.left:
        return Refusal.LEFT
    if not candidate.present:
        return Refusal.GONE
    if candidate.unreachable:
        return Refusal.UNREACHABLE
    if candidate.restarting:
        return Refusal.RESTARTING
    return unwilling(candidate)


def awaited(candidate: Candidate) -> bool:
    """Whether it is well, or only has not finished its start, which takes seconds."""
    word = unwell(candidate)
    return word is None or (word is Refusal.STARTING and len(candidate.reasons) == 1)


def unwilling(candidate: Candidate) -> Refusal | None:
    """Why it wants nothing, by its own word."""
    if candidate.reasons:
        # What it is about may follow, as in unhealthy:uplink.
        word = candidate.reasons[0].partition(":")[0]
        return Refusal(word) if word in _WORDS else Refusal.UNFIT
    return None if candidate.weight > 0 else Refusal.NOT_ELIGIBLE


def stands(candidate: Candidate) -> bool:
    """Whether it may ever be given anything; a mere lapse does not count."""
    return candidate.weight > 0 and Refusal.NOT_ELIGIBLE not in candidate.reasons


def misfit(candidate: Candidate, egress: Egress) -> Refusal | None:
    """Why this egress is not for this candidate, well or not."""
    if not selects(egress.selector, dict(candidate.labels)):
        return Refusal.SELECTOR
    if (egress.interface or "") in candidate.lacks:
        return Refusal.NO_INTERFACE
    if egress.interface is None and not reaches(candidate.networks, egress.ips):
        return Refusal.NO_SUBNET
    return None


def keeps(candidate: Candidate, egress: Egress) -> bool:
    """Whether it may go on carrying what it carries: suspicion and a restart cost nothing."""
    if not candidate.present or candidate.left:
        return False
    if candidate.restarting:
        return True
    word = unwell(candidate)
    return word is Refusal.STARTING or (word is None and misfit(candidate, egress) is None)


def reaches(networks: Sequence[Network], ips: Sequence[IP]) -> bool:
    """Whether each address lies in one of the networks; yes while none are known."""
    return not networks or all(
        any(ip.version == net.version and ip in net for net in networks) for ip in ips
    )


def selects(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether labels meet every condition; the empty selector takes all."""
    if any(labels.get(key) != value for key, value in selector.labels):
        return False
    return all(_meets(each, labels) for each in selector.expressions)


def _meets(expression: Expression, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression.key)
    match expression.operator:
        case "In":
            return value in expression.values
        case "NotIn":
            # As in Kubernetes, a label that is missing is not in any set.
            return value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case other:
            raise ValueError(f"no such operator: {other}")


_WORDS = frozenset(Refusal)
