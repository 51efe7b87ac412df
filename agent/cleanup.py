"""Takes from the kernel of this host everything that wayout put there, and nothing else.

An address is ours if it wears our mark, or if the state file says that we bound it since the host
booted (before Linux 5.18 there are no marks, and other programs strip them).
"""

from __future__ import annotations

import asyncio
import errno
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent.statefile import StateFile
from egress.kernel import KernelError
from egress.netlink import Netlink
from egress.plan import plan

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from egress.model import Binding

PATIENCE = 30.0


class CleanupError(Exception):
    """The kernel could not be asked: what, why, what to do."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What is gone, or would be, and what would not go and why."""

    removed: tuple[Binding, ...]
    failed: Mapping[Binding, str]


async def clean(folder: str | Path, *, dry_run: bool) -> Cleaned:
    """Remove, or only find, what is ours; `folder` is `state.dir`."""
    file = StateFile(folder)
    state = await file.load()
    kernel = Netlink()
    try:
        async with asyncio.timeout(PATIENCE):
            observed = await kernel.observe()
            found = [step.binding for step in plan(frozenset(), observed, state.bound)]
            failed = {} if dry_run or not found else await kernel.unbind(found)
    except KernelError as error:
        raise CleanupError(f"the kernel does not say what is there, {error.message}") from error
    except TimeoutError:
        raise CleanupError(
            f"the kernel did not answer within {PATIENCE:.0f} s, try again"
        ) from None
    finally:
        kernel.close()
    if state.bound and not dry_run:
        await file.save(replace(state, bound=state.bound & failed.keys()))
    said = {binding: _reason(error) for binding, error in failed.items()}
    return Cleaned(tuple(each for each in found if each not in said), said)


def _reason(error: KernelError) -> str:
    if error.errno in {errno.EPERM, errno.EACCES}:
        return "no permission, run it as root or with CAP_NET_ADMIN"
    return error.message
