"""The removal guard: a reload that drops most egresses is a mistake until somebody says not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.problems import Problem

if TYPE_CHECKING:
    from config.layers import Provenance
    from config.schema.settings import Settings

NAMED_MAX = 5
_PATH = ("egress", "egresses")


def removed(old: Settings, new: Settings) -> tuple[str, ...]:
    """Egresses of which neither the name nor any address is left."""
    kept = {ip for each in new.egress.egresses.values() for ip in each.ips}
    return tuple(
        name
        for name, each in sorted(old.egress.egresses.items())
        if name not in new.egress.egresses and not kept.intersection(each.ips)
    )


def guarded(old: Settings, new: Settings, provenance: Provenance) -> Problem | None:
    """The refusal of a candidate that drops more than its own `egress.removal_guard` lets it.

    The share is of all egresses, not of those that this node carries: so every node of a
    cluster comes to the same verdict on the same edit.
    """
    limit, total = new.egress.removal_guard, len(old.egress.egresses)
    lost = removed(old, new)
    if limit is None or not lost or len(lost) <= limit * total:
        return None
    names = ", ".join(lost[:NAMED_MAX]) + (", …" if len(lost) > NAMED_MAX else "")
    message = f"drops {len(lost)} of {total} egresses ({names}), the guard lets {limit:.0%} go"
    hint = "reload with --allow-removal, or write egress.removal_guard: off"
    return Problem(provenance.mark(_PATH), "egress.egresses", message, hint, "removal-guard")
