"""What membership tells the controller, the log and the counters."""

from random import Random

import pytest
from structlog.testing import capture_logs

from agent.inputs import MembersChanged
from agent.mailbox import Mailbox
from agent.membership import REMINDER, Membership
from agent.metrics import Metrics
from gossip.events import Dropped, Synced, SyncFailed
from gossip.machine import Machine
from gossip.peer import Address, Identity
from gossip.tuning import Tuning
from gossip.wire.packet import Envelope

HERE, THERE = Address("192.0.2.1", 7955), Address("192.0.2.2", 7955)


class Desk:
    """A membership on a machine that knows nobody, and a clock that is set by hand."""

    def __init__(self):
        self.now = 0.0
        self.mailbox = Mailbox()
        self.metrics = Metrics()
        machine = Machine(Identity("n1", HERE), Tuning(), Envelope(), Random(1), self.now)
        self.membership = Membership(
            self.mailbox, self.metrics, lambda _: (), machine, lambda: self.now
        )

    def levels(self, *reasons):
        """The levels at which failed push/pulls are logged."""
        with capture_logs() as logged:
            for reason in reasons:
                self.membership.hear(SyncFailed(THERE, join=True, reason=reason))
        return [line["log_level"] for line in logged if line["event"] == "gossip.sync_failed"]


@pytest.fixture
def desk():
    return Desk()


async def test_who_is_alone_sees_itself(desk):
    assert await desk.mailbox.take(None) == (MembersChanged(),)
    assert list(desk.membership.seen().members) == ["n1"]


def test_a_version_that_does_not_fit_is_a_warning_once_in_a_while(desk):
    assert desk.levels("versions", "versions") == ["warning", "debug"]
    desk.now += REMINDER - 0.1
    assert desk.levels("versions") == ["debug"]
    desk.now += 0.1
    assert desk.levels("versions") == ["warning"]


def test_other_failures_of_push_pulls_are_for_those_who_look_closely(desk):
    assert desk.levels("no_answer", "refused") == ["debug", "debug"]
    assert desk.levels("versions") == ["warning"]


async def test_the_first_push_pull_is_told_and_remembered(desk):
    await desk.mailbox.take(None)
    assert not desk.membership.seen().synced
    with capture_logs() as logged:
        desk.membership.hear(Synced(THERE, join=True))
        desk.membership.hear(Synced(THERE, join=False))

    assert [line["event"] for line in logged] == ["gossip.joined"]
    assert await desk.mailbox.take(None) == (MembersChanged(),)
    assert desk.membership.seen().synced


@pytest.mark.parametrize("reason", ["too_slow", "too_many_streams", "no_key_fits"])
def test_what_is_dropped_is_counted_by_reason(desk, reason):
    desk.membership.hear(Dropped(THERE, reason))

    assert f'dropped_total{{reason="{reason}"}} 1.0' in desk.metrics.render().decode()
