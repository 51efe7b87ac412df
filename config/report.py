"""What came of a reload, for logs, commands and the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from config.changes import notable
from config.problems import lines

if TYPE_CHECKING:
    from config.changes import Change, Pending
    from config.problems import Problem
    from config.tree import Plain

CODE_OK = 0
CODE_REJECTED = 2
CODE_PENDING = 3
CODE_ROLLED_BACK = 5


class Result(Enum):
    """`unchanged`: nothing in force differs. `rejected`: nothing was touched.

    `rolled_back`: a part failed while it was changed over, and all are as they were.
    """

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    REJECTED = "rejected"
    ROLLED_BACK = "rolled_back"


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict on one candidate. `at` is an RFC 3339 time.

    `inconsistent`: a roll-back failed as well; only a restart makes things certain again.
    `seconds`: how long each phase took. `parts`: who acts on each change, by its path.
    """

    result: Result
    trigger: str
    at: str
    generation: int
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    changes: tuple[Change, ...] = ()
    pending_restart: tuple[Pending, ...] = ()
    dry_run: bool = False
    inconsistent: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether the candidate is valid and in force as far as it can be."""
        return self.result in (Result.APPLIED, Result.UNCHANGED)

    @property
    def code(self) -> int:
        """The exit code of the command that asked."""
        if self.result is Result.REJECTED:
            return CODE_REJECTED
        if self.result is Result.ROLLED_BACK:
            return CODE_ROLLED_BACK
        return CODE_PENDING if self.pending_restart else CODE_OK

    def summary(self) -> dict[str, Plain]:
        """As `last_reload` in `status --json`."""
        return {
            "at": self.at,
            "trigger": self.trigger,
            "result": self.result.value,
            "errors": [*lines(self.problems)],
        }

    def to_document(self) -> dict[str, Plain]:
        """Everything, for the command that asked."""
        return {
            **self.summary(),
            "code": self.code,
            "generation": self.generation,
            "dry_run": self.dry_run,
            "warnings": [*lines(self.warnings)],
            "changes": [self._row(each) for each in notable(self.changes)],
            "pending_restart": [each.to_plain() for each in self.pending_restart],
            "inconsistent": self.inconsistent,
        }

    def _row(self, change: Change) -> dict[str, Plain]:
        """A change, and the parts of the daemon that act on it."""
        return {**change.to_plain(), "subscribers": [*self.parts.get(change.path, ())]}
