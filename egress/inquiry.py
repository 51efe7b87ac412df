"""A round of questions to the LAN while it is open: who claims what, who else wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from egress.model import Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from egress.model import IP, Question

Place = tuple[str, "IP"]
"""An address on the link of an interface."""

ANSWERS_MAX = 64
"""MACs remembered for one question; more only come from an attacker, and one is enough."""


class Round:
    """All that was asked at `asked` and what has been heard since.

    `own` are the MACs of this host, which do not count.
    """

    def __init__(self, questions: Sequence[Question], own: frozenset[str], asked: float) -> None:
        self.asked = asked
        self._questions = questions
        self._own = own
        self._macs: dict[Place, set[str]] = {(each.interface, each.ip): set() for each in questions}
        self._rivals: dict[Place, set[str]] = {place: set() for place in self._macs}
        self._controls = {
            (each.interface, control): False for each in questions for control in each.controls
        }
        self._dark: set[str] = set()

    @property
    def controls(self) -> tuple[Place, ...]:
        """Each address that ought to answer, once."""
        return tuple(self._controls)

    def claimed(self, place: Place, mac: str) -> None:
        """A frame said that the address is at `mac`."""
        self._note(self._macs.get(place), mac)

    def probed(self, place: Place, mac: str) -> None:
        """Somebody asked whether the address is free."""
        self._note(self._rivals.get(place), mac)

    def answered(self, place: Place) -> None:
        """Somebody answered a question of ours; if he ought to, silence means something."""
        if place in self._controls:
            self._controls[place] = True

    def dark(self, interface: str) -> None:
        """The link had no carrier at some moment of the asking."""
        self._dark.add(interface)

    def replies(self, heard: float) -> tuple[Reply, ...]:
        """Everything, at the end of the window, in the order of the questions."""
        return tuple(self._reply(each, heard) for each in self._questions)

    def _reply(self, question: Question, heard: float) -> Reply:
        place = (question.interface, question.ip)
        answers = [self._controls[question.interface, each] for each in question.controls]
        return Reply(
            question=question,
            macs=frozenset(self._macs[place]),
            control=any(answers) if answers else None,
            carrier=question.interface not in self._dark,
            asked=self.asked,
            heard=heard,
            rivals=frozenset(self._rivals[place]),
        )

    def _note(self, heard: set[str] | None, mac: str) -> None:
        if heard is not None and mac not in self._own and len(heard) < ANSWERS_MAX:
            heard.add(mac)
