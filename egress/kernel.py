"""What ownership asks of the host: a `Kernel` that holds addresses and a `Lan` that hears them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from egress.model import Binding, Observed, Question, Reply


class KernelError(Exception):
    """The kernel refused `action` (bind, renew, unbind, observe, announce, ask)."""

    def __init__(self, action: str, errno: int, message: str) -> None:
        super().__init__(f"{action}: {message}")
        self.action = action
        self.errno = errno
        self.message = message


class Kernel(Protocol):
    """Addresses of this host. All calls are idempotent, batched, and never hold the loop."""

    async def observe(self) -> Observed:
        """Everything there is now, read from the kernel."""
        ...

    async def bind(
        self, bindings: Sequence[Binding], lease: float
    ) -> Mapping[Binding, KernelError]:
        """Add with our mark and a lifetime of `lease` seconds; returns those that failed."""
        ...

    async def renew(
        self, bindings: Sequence[Binding], lease: float
    ) -> Mapping[Binding, KernelError]:
        """Start the lifetime of bound addresses anew; one that is gone is re-created (K55)."""
        ...

    async def unbind(self, bindings: Sequence[Binding]) -> Mapping[Binding, KernelError]:
        """Remove; an address that is not there is a success."""
        ...

    async def changed(self) -> None:
        """Return when links or addresses changed by another hand than ours, or may have."""
        ...


class Lan(Protocol):
    """The segment behind an interface."""

    async def ask(self, questions: Sequence[Question]) -> tuple[Reply, ...]:
        """Ask four times within 150 ms and collect who answers; all questions in parallel."""
        ...

    async def announce(self, bindings: Sequence[Binding], *, first: bool) -> None:
        """Gratuitous ARP or unsolicited NA; repeats are paced, first ones are not."""
        ...
