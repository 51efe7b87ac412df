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
    than carrying it a moment late. Only what wears our mark is touched, and what we bound before
    somebody took the mark away (`known`, from the state directory). A wanted address whose
    interface is missing is left out.
    """
    host = {each.name for each in observed.interfaces}
    ours = [each for each in observed.bound if each.ours or _stripped(each, known)]
    good = {each.binding for each in ours if each.ours and _whole(each)}
    surplus = sorted({each.binding for each in ours} - desired, key=_order)
    missing = sorted((each for each in desired - good if each.interface in host), key=_order)
    steps: list[Step] = [Unbind(binding) for binding in surplus]
    for binding in missing:
        steps += [Bind(binding), Announce(binding, first=True)]
    return tuple(steps)


def _stripped(bound: Bound, known: frozenset[Binding]) -> bool:
    """A foreign `ip addr replace` takes mark and lifetime away (kernel fact K56)."""
    return bound.binding in known and _whole(bound)


def _whole(bound: Bound) -> bool:
    return bound.prefix == bound.binding.ip.max_prefixlen


def _order(binding: Binding) -> tuple[str, tuple[int, int, str]]:
    return binding.interface, binding.key
