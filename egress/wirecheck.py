"""What the LAN's answers to "who has this address?" mean, and when to ask again.

Only silence allows binding, and only while it is fresh; every other answer puts the next
question off by a pause that fits it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from egress.decision import Timing
    from egress.model import Reply

SLACK = 0.25
"""Seconds beyond the window after which a reply says more about us than about the LAN."""


class Answer(Enum):
    """Who answered, as far as it matters."""

    SILENT = "silent"
    BLIND = "blind"
    RIVAL = "rival"
    HOST = "host"
    MEMBER = "member"
    STRANGER = "stranger"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer; `who` is a member's name, or a MAC that belongs to none; `mac` what was seen.

    SILENT: nobody, and we would have heard. BLIND: nobody, but that says nothing. RIVAL: nobody,
    but a member that goes before us asks as well. HOST: the host of a member that is gone.
    MEMBER: a living one. STRANGER: somebody else.
    """

    answer: Answer
    who: str | None = None
    mac: str | None = None

    def doubted(self) -> Verdict:
        """The same, but silence says nothing."""
        return Verdict(Answer.BLIND, "new_link") if self.answer is Answer.SILENT else self


@dataclass(frozen=True, slots=True)
class Company:
    """Whose MACs are whose, who lives, and who goes before us for the address in question."""

    owners: Mapping[str, str]
    live: Callable[[str], bool]
    outranks: Callable[[str], bool]
    me: str


def judge(reply: Reply, company: Company, window: float) -> Verdict:
    """The meaning of one reply."""
    named = {mac: company.owners.get(mac) for mac in sorted(reply.macs)}
    others = {mac: name for mac, name in named.items() if name != company.me}
    if others:
        return _answered(others, company)
    late = reply.heard - reply.asked > window + SLACK
    if late or not reply.carrier or reply.control is False:
        return Verdict(Answer.BLIND, "no_carrier" if not reply.carrier else "no_control")
    for mac in sorted(reply.rivals):
        rival = company.owners.get(mac)
        if rival is None or (rival != company.me and company.outranks(rival)):
            return Verdict(Answer.RIVAL, rival or mac, mac)
    return Verdict(Answer.SILENT)


def _answered(others: Mapping[str, str | None], company: Company) -> Verdict:
    # The worst news counts: a stranger stays, a living member will speak, a dead one's host ends.
    hosts: list[Verdict] = []
    members: list[Verdict] = []
    for mac, name in others.items():
        if name is None:
            return Verdict(Answer.STRANGER, mac, mac)
        if company.live(name):
            members.append(Verdict(Answer.MEMBER, name, mac))
        else:
            hosts.append(Verdict(Answer.HOST, name, mac))
    return (members or hosts)[0]


class Check:
    """The asking about one address: what was heard last, and when to ask again."""

    __slots__ = ("last", "next_at", "pause", "pending", "silence", "stubborn_since")

    def __init__(self) -> None:
        self.pending: float | None = None
        self.last: Verdict | None = None
        self.silence = float("-inf")
        self.next_at = float("-inf")
        self.pause = 0.0
        self.stubborn_since: float | None = None

    def expects(self, reply: Reply) -> bool:
        """It answers the question that is out, not an earlier one that was given up."""
        return self.pending is not None and reply.asked >= self.pending

    def silent(self, now: float, fresh: float) -> bool:
        """Nobody answered, just now."""
        return now - self.silence <= fresh

    def forget(self) -> None:
        """Start anew; a question that is still out stays out."""
        self.last = None
        self.silence = self.next_at = float("-inf")
        self.pause = 0.0
        self.stubborn_since = None

    def hear(self, verdict: Verdict, heard: float, timing: Timing, rng: Random) -> None:
        """Take in an answer; sets when to ask again."""
        if self.last is None or self.last.answer is not verdict.answer:
            self.pause = 0.0
        self.last = verdict
        self.silence = heard if verdict.answer is Answer.SILENT else float("-inf")
        if verdict.answer is not Answer.HOST:
            self.stubborn_since = None
        elif self.stubborn_since is None:
            self.stubborn_since = heard
        self.next_at = heard + self._pause_after(verdict.answer, timing, rng)

    def overdue(self, lease: float, now: float, timing: Timing) -> bool:
        """A dead member's host answers longer than its lease can explain."""
        since = self.stubborn_since
        return since is not None and now - since > lease + timing.overdue

    def back_off(self, shortest: float, longest: float, rng: Random) -> float:
        """The next pause of a doubling series; up to a quarter less, so that crowds disperse."""
        self.pause = min(longest, self.pause * 2 if self.pause else shortest)
        return self.pause * rng.uniform(0.75, 1.0)

    def _pause_after(self, answer: Answer, timing: Timing, rng: Random) -> float:
        match answer:
            case Answer.SILENT:
                return 0.0
            case Answer.HOST:
                return timing.recheck
            case Answer.RIVAL:
                # It may have begun just now: our last question comes after it would have bound.
                return rng.uniform(0.9, 1.4) * timing.window
            case Answer.BLIND:
                return self.back_off(timing.blind, timing.blind_max, rng)
            case Answer.MEMBER:
                return self.back_off(timing.taken, timing.taken_max, rng)
            case Answer.STRANGER:
                return self.back_off(timing.stranger, timing.stranger_max, rng)
            case _:
                assert_never(answer)
