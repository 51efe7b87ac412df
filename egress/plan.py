"""From what is and what should be to ordered steps; empty when there is nothing to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from egress.model import Announce, Bind, Unbind

if TYPE_CHECKING:
    from egress.model import Binding, Bound, Observed, Step


def plan(
    desired: frozenset[Binding],
    observed: Observed,
    known: frozenset[Binding] = frozenset(),
) -> tuple[Step, ...]:
    """Steps that turn `observed` into `desired`.

    Releases come first: a peer may be waiting for the address, and carrying it twice is worse
    than carrying it a moment late. Only what is ours is touched. A wanted address whose
    interface is missing is left out.
    """
    host = {each.name for each in observed.interfaces}
    ours = {each.binding: each for each in observed.bound if _ours(each, known)}
    good = {binding for binding, each in ours.items() if _sound(each)}
    surplus = sorted(ours.keys() - desired, key=_order)
    missing = sorted((each for each in desired - good if each.interface in host), key=_order)
    steps: list[Step] = [Unbind(binding) for binding in surplus]
    for binding in missing:
        steps += [Bind(binding), Announce(binding, first=True)]
    return tuple(steps)


def _ours(bound: Bound, known: frozenset[Binding]) -> bool:
    """What wears our mark, and what we bound before somebody took it away (kernel fact K56).

    With another prefix it is not ours, mark or no mark, for we never bind one. To take it off
    would take more than a binding says.
    """
    whole = bound.prefix == bound.binding.ip.max_prefixlen
    return whole and (bound.ours or bound.binding in known)


def _sound(bound: Bound) -> bool:
    """Whether nothing needs doing about it.

    Without the mark it does, if the lifetime went with it; before Linux 5.18 there are no marks.
    An address that failed its duplicate detection is deleted and bound again (K05b).
    """
    return bound.usable and (bound.ours or bound.valid is not None)


def _order(binding: Binding) -> tuple[str, tuple[int, int, str]]:
    return binding.interface, binding.key
