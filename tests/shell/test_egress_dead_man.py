"""The dead man's switch: what a host answers for ends with its daemon, and the LAN can hear it."""

import asyncio
import contextlib
from ipaddress import ip_address

import pytest

from egress.actuator import apply
from egress.keeper import Keeper
from egress.lease import gone_after
from egress.model import Announce, Bind, Binding, Question
from support.fakes_egress import FakeKernel, FakeLan, Segment, link

pytestmark = pytest.mark.looptime

LEASE = 3.0
IP = ip_address("10.77.0.201")
GATEWAY = ip_address("10.77.0.1")
HERE = Binding(IP, "eth0")
MACS = ["02:00:00:00:00:0a", "02:00:00:00:00:0b"]
ASK = Question(IP, "eth0", (GATEWAY,))


@pytest.fixture
def segment():
    return Segment({GATEWAY: "02:00:00:00:00:01"})


@pytest.fixture
def hosts(segment):
    """Two hosts on one segment: pairs of kernel and LAN."""
    kernels = [FakeKernel(link(mac=mac)) for mac in MACS]
    return [(kernel, FakeLan(segment, kernel)) for kernel in kernels]


@contextlib.asynccontextmanager
async def daemon(kernel, lan):
    """A keeper that has bound and announced the address; leaving is being killed."""
    async with asyncio.TaskGroup() as tasks:
        keeper = Keeper(kernel, LEASE, [].extend)
        running = tasks.create_task(keeper.run())
        steps = (Bind(HERE), Announce(HERE, first=True))
        outcome = await apply(steps, kernel, lan, lease=LEASE, patience=1.0)
        assert outcome.failed == ()
        keeper.hold([HERE])
        yield keeper
        running.cancel()


async def test_an_address_outlives_its_lease_while_its_daemon_lives(hosts, segment):
    async with daemon(*hosts[0]):
        await asyncio.sleep(10 * LEASE)

        assert segment.answerers(IP) == {MACS[0]}
        assert segment.learned[IP] == MACS[0]


async def test_a_killed_daemon_is_heard_of_until_the_kernel_lets_go_and_no_longer(hosts):
    (kernel, lan), (_, other) = hosts
    async with daemon(kernel, lan):
        await asyncio.sleep(1.0)

    (reply,) = await other.ask([ASK])
    assert (reply.macs, reply.control, reply.carrier) == ({MACS[0]}, True, True)

    await asyncio.sleep(gone_after(LEASE))
    (reply,) = await other.ask([ASK])
    assert (reply.macs, reply.control) == (frozenset(), True)


async def test_two_that_ask_at_once_hear_of_each_other(hosts):
    (_, one), (_, other) = hosts

    replies = await asyncio.gather(one.ask([ASK]), other.ask([ASK]))

    assert [reply.rivals for (reply,) in replies] == [{MACS[1]}, {MACS[0]}]
    assert [reply.macs for (reply,) in replies] == [frozenset(), frozenset()]


async def test_silence_behind_a_pulled_cable_says_nothing(hosts):
    (kernel, lan), _ = hosts
    kernel.carrier("eth0", up=False)

    (reply,) = await lan.ask([ASK])

    assert (reply.macs, reply.control, reply.carrier) == (frozenset(), False, False)


async def test_what_another_hand_does_is_noticed_and_a_renewal_puts_it_back(hosts, segment):
    kernel, lan = hosts[0]
    async with daemon(kernel, lan):
        kernel.seize(HERE)
        async with asyncio.timeout(1.0):
            await kernel.changed()
        assert kernel.ours == set()

        await asyncio.sleep(LEASE / 4 + 0.01)

        assert kernel.ours == {HERE}
        assert segment.owners(IP) == [kernel]
