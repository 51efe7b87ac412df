"""One question to the LAN while it is open: who claims the address, who else wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from egress.model import Reply

if TYPE_CHECKING:
    from egress.model import Question

ANSWERS_MAX = 64
"""MACs remembered for one question; more only come from an attacker, and one is enough."""


class Inquiry:
    """What has been heard since `asked`; `own` are the MACs of this host, which do not count."""

    def __init__(self, question: Question, own: frozenset[str], asked: float) -> None:
        self.question = question
        self._own = own
        self._asked = asked
        self._macs: set[str] = set()
        self._rivals: set[str] = set()
        self._controlled = False
        self._carrier = True

    def claimed(self, mac: str) -> None:
        """A frame said that the address is at `mac`."""
        self._note(self._macs, mac)

    def probed(self, mac: str) -> None:
        """Somebody else asked whether the address is free."""
        self._note(self._rivals, mac)

    def controlled(self) -> None:
        """One that ought to answer did, so silence means something."""
        self._controlled = True

    def carried(self, *, carrier: bool) -> None:
        """What the link said at some moment of the asking."""
        self._carrier = self._carrier and carrier

    def reply(self, heard: float) -> Reply:
        """Everything, at the end of the window."""
        return Reply(
            question=self.question,
            macs=frozenset(self._macs),
            control=self._controlled if self.question.controls else None,
            carrier=self._carrier,
            asked=self._asked,
            heard=heard,
            rivals=frozenset(self._rivals),
        )

    def _note(self, heard: set[str], mac: str) -> None:
        if mac not in self._own and len(heard) < ANSWERS_MAX:
            heard.add(mac)
