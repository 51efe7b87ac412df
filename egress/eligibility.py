"""Who may carry an egress; every refusal is a short word that `explain` shows and metrics count."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from egress.model import Candidate, Egress, Expression, Selector

GONE, UNREACHABLE, SELECTOR, NO_SUBNET = "gone", "unreachable", "selector", "no_subnet"
OWN_ADDRESS = "own_address"


def refusal(candidate: Candidate, egress: Egress) -> str | None:
    """Why `candidate` may not be given `egress` now; None when it may."""
    if not candidate.present or candidate.left:
        return GONE
    if candidate.unreachable:
        return UNREACHABLE
    return unfit(candidate, egress)


def unfit(candidate: Candidate, egress: Egress) -> str | None:
    """Why a living `candidate` may not carry `egress`, by what it says of itself."""
    if candidate.reasons:
        return candidate.reasons[0]
    if not selects(egress.selector, dict(candidate.labels)):
        return SELECTOR
    if any(ip in candidate.addresses for ip in egress.ips):
        return OWN_ADDRESS
    if egress.interface is None and candidate.networks and not _reaches(candidate, egress):
        return NO_SUBNET
    return None


def _reaches(candidate: Candidate, egress: Egress) -> bool:
    return all(
        any(ip.version == net.version and ip in net for net in candidate.networks)
        for ip in egress.ips
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
