"""Carrying out a plan, in the right order and with patience."""

import asyncio
import errno
from ipaddress import ip_address

import pytest

from egress.actuator import PIECE, apply
from egress.kernel import KernelError
from egress.model import Announce, Bind, Binding, Unbind


class Host:
    """A kernel and a LAN that write down what they are told, in order."""

    def __init__(self, refuse=(), mute=(), slow=0.0):
        self.heard = []
        self.addresses = set()
        self.refuse, self.mute, self.slow = set(refuse), set(mute), slow

    async def bind(self, bindings, lease):
        await asyncio.sleep(self.slow)
        self.heard.append(("bind", tuple(bindings), lease))
        failed = {
            b: KernelError("bind", errno.EEXIST, "taken") for b in bindings if b in self.refuse
        }
        self.addresses |= set(bindings) - failed.keys()
        return failed

    async def unbind(self, bindings):
        self.heard.append(("unbind", tuple(bindings)))
        self.addresses -= set(bindings)
        return {b: KernelError("unbind", 1, "no") for b in bindings if b in self.refuse}

    async def announce(self, bindings, *, first):
        if bindings[0].interface in self.mute:
            raise KernelError("announce", errno.ENETDOWN, "down")
        self.heard.append(("announce", tuple(bindings), first))


def binding(number, interface="eth0"):
    return Binding(ip_address(0x0A000000 + number), interface)


async def carry_out(steps, host, patience=5.0, **limits):
    return await apply(steps, host, host, lease=3.0, patience=patience, **limits)


async def test_releases_come_before_binds_whatever_the_order_of_the_plan():
    host = Host()
    old, new = binding(1), binding(2)

    outcome = await carry_out([Bind(new), Announce(new, first=True), Unbind(old)], host)

    assert [each[0] for each in host.heard] == ["unbind", "bind", "announce"]
    assert outcome.failed == ()
    assert outcome.done == (Bind(new), Announce(new, first=True), Unbind(old))


async def test_each_piece_is_announced_before_the_next_one_is_bound():
    host = Host()
    many = [binding(number) for number in range(PIECE + 1)]

    await carry_out([s for b in many for s in (Bind(b), Announce(b, first=True))], host)

    assert [(each[0], len(each[1])) for each in host.heard] == [
        ("bind", PIECE),
        ("announce", PIECE),
        ("bind", 1),
        ("announce", 1),
    ]


async def test_an_address_that_could_not_be_bound_is_not_announced():
    good, bad = binding(1), binding(2)
    host = Host(refuse=[bad])
    steps = [Bind(good), Announce(good, first=True), Bind(bad), Announce(bad, first=True)]

    outcome = await carry_out(steps, host)

    assert ("announce", (good,), True) in host.heard
    assert [(each.step, each.errno) for each in outcome.failed] == [
        (Bind(bad), errno.EEXIST),
        (Announce(bad, first=True), errno.EEXIST),
    ]


async def test_a_link_that_is_down_does_not_silence_the_others():
    here, there = binding(1, "eth0"), binding(2, "eth1")
    host = Host(mute=["eth0"])

    outcome = await carry_out([Announce(here, first=False), Announce(there, first=False)], host)

    assert host.heard == [("announce", (there,), False)]
    assert [each.errno for each in outcome.failed] == [errno.ENETDOWN]


async def test_ipv4_is_bound_before_ipv6():
    host = Host()
    six, four = Binding(ip_address("fd00::1"), "eth0"), binding(1)

    await carry_out([Bind(six), Bind(four)], host)

    assert host.heard == [("bind", (four, six), 3.0)]


@pytest.mark.looptime
async def test_what_there_is_no_time_for_has_failed_with_errno_zero():
    host = Host(slow=1.0)
    many = [binding(number) for number in range(3 * PIECE)]

    outcome = await carry_out([Bind(b) for b in many], host, patience=2.5)

    assert len(outcome.done) == 2 * PIECE
    assert [each.errno for each in outcome.failed] == [0] * PIECE


@pytest.mark.looptime
async def test_an_urgent_plan_does_not_wait_for_a_bulky_one():
    host = Host(slow=0.1)
    bulk = [binding(number) for number in range(10 * PIECE)]
    urgent = binding(1, "eth1")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(carry_out([Bind(b) for b in bulk], host))
        await asyncio.sleep(0.05)
        await carry_out([Bind(urgent)], host)
        done_by = asyncio.get_running_loop().time()

    assert done_by < 0.2


@pytest.mark.looptime
async def test_each_piece_is_bound_in_time_or_not_at_all():
    host = Host(slow=0.1)
    many = [binding(number) for number in range(3 * PIECE)]
    steps = [step for each in many for step in (Bind(each), Announce(each, first=True))]
    now = asyncio.get_running_loop().time()
    outcome = await carry_out(steps, host, bind_by=dict.fromkeys(many, now + 0.15))
    late = [each.step for each in outcome.failed]

    # The first two pieces began in time; the third has to be asked about anew.
    assert host.addresses == set(many[: 2 * PIECE])
    assert late == steps[4 * PIECE :]
    assert {each.errno for each in outcome.failed} == {0}
    assert len(outcome.done) + len(outcome.failed) == len(steps)


@pytest.mark.looptime
async def test_what_has_no_limit_is_bound_whenever_its_turn_comes():
    host = Host(slow=10.0)
    many = [binding(number) for number in range(2 * PIECE)]
    outcome = await carry_out([Bind(each) for each in many], host, patience=60.0)

    assert outcome.failed == ()
