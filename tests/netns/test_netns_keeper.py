"""The keeper on a real kernel: renewals in time, and what a stopped process leaves behind."""

import asyncio
import contextlib
import os
import signal
import sys
import textwrap
import time
from ipaddress import ip_address

import pytest

from egress.keeper import Keeper
from egress.lease import gone_after
from egress.model import Binding
from egress.netlink import Netlink
from support.namespaces import Segment

pytestmark = [pytest.mark.netns]

LEASE = 2.0
V4 = Binding(ip_address("10.77.0.60"), "eth0")
V6 = Binding(ip_address("2001:db8:77::60"), "eth0")


@pytest.fixture
def host():
    with Segment("a") as segment:
        yield segment["a"]


@pytest.fixture
async def kernel(host):
    with host.entered():
        netlink = Netlink()
    yield netlink
    netlink.close()


@pytest.fixture
def lapsed():
    return []


@pytest.fixture
async def keeper(kernel, lapsed):
    keeper = Keeper(kernel, LEASE, lapsed.extend)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(keeper.run())
        yield keeper
        running.cancel()


async def there(kernel):
    return (await kernel.observe()).ours


async def test_what_is_held_outlives_its_lease(keeper, kernel, lapsed):
    await kernel.bind([V4, V6], LEASE)
    keeper.hold([V4, V6])

    await asyncio.sleep(2.5 * LEASE)

    assert await there(kernel) == {V4, V6}
    assert lapsed == []
    assert keeper.lag < 0.1


async def test_what_was_dropped_runs_out(keeper, kernel, lapsed):
    await kernel.bind([V4, V6], LEASE)
    keeper.hold([V4, V6])
    keeper.drop([V4])

    await asyncio.sleep(gone_after(LEASE))

    assert await there(kernel) == {V6}
    assert lapsed == []


async def test_a_loop_that_was_held_too_long_renews_nothing_and_lets_go(keeper, kernel, lapsed):
    await kernel.bind([V4, V6], LEASE)
    keeper.hold([V4, V6])
    await asyncio.sleep(LEASE / 2)

    time.sleep(LEASE)  # noqa: ASYNC251 - this is the stall
    await asyncio.sleep(0.2)

    assert await there(kernel) == frozenset()
    assert set(lapsed) == {V4, V6}
    assert V4 not in keeper


async def test_a_short_stall_moves_nothing(keeper, kernel, lapsed):
    await kernel.bind([V4, V6], LEASE)
    keeper.hold([V4, V6])
    await asyncio.sleep(0.1)

    time.sleep(LEASE - 0.5 - LEASE / 4 - 0.2)  # noqa: ASYNC251 - this is the stall
    await asyncio.sleep(LEASE)

    assert await there(kernel) == {V4, V6}
    assert lapsed == []


async def test_an_extension_outlives_the_process(keeper, kernel):
    await kernel.bind([V4, V6], LEASE)
    keeper.hold([V4, V6])

    await keeper.extend(30)
    await asyncio.sleep(1.0)

    observed = await kernel.observe()
    assert all(each.valid > 25 for each in observed.bound if each.ours)
    assert observed.ours == {V4, V6}


async def test_a_successor_adopts_what_is_left_of_the_leases(keeper, kernel, lapsed):
    await kernel.bind([V4, V6], LEASE)
    observed = await kernel.observe()

    keeper.adopt(each for each in observed.bound if each.ours)
    await asyncio.sleep(2 * LEASE)

    assert await there(kernel) == {V4, V6}
    assert lapsed == []


HOLDER = textwrap.dedent(
    """
    import asyncio
    from ipaddress import ip_address
    from egress.keeper import Keeper
    from egress.model import Binding
    from egress.netlink import Netlink

    async def main():
        kernel = Netlink()
        keeper = Keeper(kernel, 2.0, lambda gone: print("lapsed", len(gone), flush=True))
        ours = [Binding(ip_address(ip), "eth0") for ip in ("10.77.0.60", "2001:db8:77::60")]
        await kernel.bind(ours, 2.0)
        keeper.hold(ours)
        print("ready", flush=True)
        await keeper.run()

    asyncio.run(main())
    """
)


@pytest.fixture
async def holder(host):
    process = await asyncio.create_subprocess_exec(
        "ip",
        "netns",
        "exec",
        host.name,
        sys.executable,
        "-c",
        HOLDER,
        stdout=asyncio.subprocess.PIPE,
    )
    assert await process.stdout.readline() == b"ready\n"
    yield process
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_holder_that_is_killed_or_frozen_holds_no_longer_than_its_lease(
    holder, kernel, fate
):
    await asyncio.sleep(LEASE)
    assert await there(kernel) == {V4, V6}

    os.kill(holder.pid, fate)
    await asyncio.sleep(gone_after(LEASE))

    assert await there(kernel) == frozenset()


async def test_a_holder_that_wakes_up_too_late_brings_nothing_back_for_long(holder, kernel):
    os.kill(holder.pid, signal.SIGSTOP)
    await asyncio.sleep(gone_after(LEASE))
    assert await there(kernel) == frozenset()

    os.kill(holder.pid, signal.SIGCONT)
    async with asyncio.timeout(1.0):
        while (line := await holder.stdout.readline()) != b"lapsed 2\n":
            assert line

    assert await there(kernel) == frozenset()
