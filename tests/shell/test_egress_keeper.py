"""The law of leases, kept by a loop in virtual time."""

import asyncio
from ipaddress import ip_address

import pytest

from egress.keeper import LATE, TRAIN, Keeper
from egress.kernel import KernelError
from egress.model import Binding, Bound, Observed

LEASE = 4.0
pytestmark = pytest.mark.looptime


class Clockwork:
    """A kernel whose addresses run out in loop time, and that can be slow or unwilling."""

    def __init__(self):
        self.until = {}
        self.unseen = set()
        """What was bound by somebody before us; its lifetime is not told."""
        self.trains = []
        self.delay = 0.0
        self.refusal = None

    async def renew(self, bindings, lease):
        now = asyncio.get_running_loop().time()
        self.trains.append((now, tuple(bindings)))
        if self.refusal:
            return dict.fromkeys(bindings, self.refusal)
        await asyncio.sleep(self.delay)
        self.until |= dict.fromkeys(bindings, asyncio.get_running_loop().time() + lease)
        return {}

    async def observe(self):
        bound = tuple(
            Bound(each, ours=True, valid=None, prefix=32)
            for each in sorted(self.alive | self.unseen)
        )
        return Observed(bound=bound)

    async def unbind(self, bindings):
        for binding in bindings:
            self.until.pop(binding, None)
        return {}

    @property
    def alive(self):
        now = asyncio.get_running_loop().time()
        return {binding for binding, until in self.until.items() if until > now}


def binding(number):
    return Binding(ip_address(0x0A4D0000 + number), "eth0")


@pytest.fixture
def kernel():
    return Clockwork()


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


async def test_everything_is_renewed_each_quarter_of_a_lease_in_one_train(keeper, kernel):
    ours = [binding(number) for number in range(10)]
    keeper.hold(ours)

    await asyncio.sleep(3.5)

    assert [(round(at, 2), len(train)) for at, train in kernel.trains] == [
        (1.0, 10),
        (2.0, 10),
        (3.0, 10),
    ]


async def test_addresses_that_were_bound_at_different_times_soon_travel_together(keeper, kernel):
    for number in range(8):
        keeper.hold([binding(number)])
        await asyncio.sleep(0.13)

    await asyncio.sleep(4 * LEASE)
    kernel.trains.clear()
    await asyncio.sleep(LEASE)

    assert len(kernel.trains) <= 2 * 4


async def test_a_large_train_is_cut_so_that_the_clock_is_looked_at(keeper, kernel):
    keeper.hold([binding(number) for number in range(TRAIN + 1)])

    await asyncio.sleep(1.1)

    assert [len(train) for _, train in kernel.trains] == [TRAIN, 1]


async def test_a_renewal_that_straddles_the_end_is_taken_back_at_once(keeper, kernel, lapsed):
    ours = binding(1)
    keeper.hold([ours])
    kernel.delay = 3.0

    await asyncio.sleep(4.2)

    assert lapsed == [ours]
    assert kernel.alive == set()
    assert ours not in keeper


async def test_after_too_long_a_pause_nothing_is_sent(keeper, kernel, lapsed):
    old, new = binding(1), binding(2)
    now = asyncio.get_running_loop().time()
    kernel.unseen = {old, new}
    keeper.hold([old], since=now - LEASE + 0.4)
    keeper.hold([new])
    await asyncio.sleep(1.5)

    assert lapsed == [old]
    assert all(old not in train for _, train in kernel.trains)
    assert kernel.alive == {new}


async def test_what_is_dropped_while_a_train_is_under_way_is_not_taken_back(keeper, kernel, lapsed):
    keeper.hold([binding(1)])
    kernel.delay = 0.5
    await asyncio.sleep(1.2)
    keeper.drop([binding(1)])

    await asyncio.sleep(10)

    assert lapsed == []
    assert len(kernel.trains) == 1


async def test_stillness_waits_for_the_train_under_way_and_starves_nobody(keeper, kernel, lapsed):
    going, staying = binding(1), binding(2)
    keeper.hold([going, staying])
    kernel.delay = 0.5
    await asyncio.sleep(1.2)

    async with keeper.still():
        keeper.drop([going])
        await kernel.unbind([going])
        assert asyncio.get_running_loop().time() >= 1.5
        await asyncio.sleep(2 * LEASE)

    assert kernel.alive == {staying}
    assert lapsed == []


async def test_a_kernel_that_refuses_is_asked_again_but_not_in_a_rush(keeper, kernel, lapsed):
    kernel.unseen = {binding(1)}
    keeper.hold([binding(1)])
    kernel.refusal = KernelError("renew", 1, "no")

    await asyncio.sleep(LEASE + 1)

    assert lapsed == [binding(1)]
    assert 10 < len(kernel.trains) < 40


async def test_holding_twice_does_not_make_a_lease_younger(keeper, lapsed):
    now = asyncio.get_running_loop().time()
    keeper.hold([binding(1)], since=now - LEASE + 0.4)
    keeper.hold([binding(1)])

    await asyncio.sleep(0.1)

    assert lapsed == [binding(1)]


async def test_an_adopted_address_is_renewed_before_it_runs_out(keeper, kernel):
    kernel.unseen = {binding(1)}
    keeper.adopt([Bound(binding(1), ours=True, valid=1.0, prefix=32)])

    await asyncio.sleep(0.1)

    assert len(kernel.trains) == 1


async def test_a_late_renewal_looks_first_and_brings_nothing_back(keeper, kernel, lapsed):
    taken, left = binding(1), binding(2)
    now = asyncio.get_running_loop().time()
    kernel.unseen = {left}
    keeper.hold([taken, left], since=now - LEASE / 4 - LATE - 0.1)

    await asyncio.sleep(0.1)

    assert lapsed == [taken]
    assert [train for _, train in kernel.trains] == [(left,)]


async def test_a_renewal_in_time_does_not_pay_for_a_look(keeper, kernel, lapsed):
    now = asyncio.get_running_loop().time()
    keeper.hold([binding(1)], since=now - LEASE / 4 - LATE + 0.1)

    await asyncio.sleep(0.1)

    assert (lapsed, len(kernel.trains)) == ([], 1)


@pytest.mark.parametrize("fault", ["mute", "unwilling"])
async def test_where_the_kernel_does_not_show_what_is_there_the_law_decides(
    keeper, kernel, lapsed, fault
):
    async def observe():
        if fault == "mute":
            await asyncio.sleep(60)
        raise KernelError("observe", 105, "no")

    kernel.observe = observe
    now = asyncio.get_running_loop().time()
    keeper.hold([binding(1)], since=now - LEASE / 4 - LATE - 0.1)

    await asyncio.sleep(1.0)

    assert (lapsed, len(kernel.trains)) == ([], 1)


async def test_after_an_extension_nothing_is_renewed_any_more(keeper, kernel):
    keeper.hold([binding(1)])

    await keeper.extend(30)
    await asyncio.sleep(25)

    assert len(kernel.trains) == 1
    assert kernel.alive == {binding(1)}


async def test_an_extension_waits_for_the_train_that_is_under_way(keeper, kernel):
    keeper.hold([binding(1)])
    kernel.delay = 0.5
    await asyncio.sleep(1.2)

    await keeper.extend(30)

    assert kernel.until[binding(1)] - asyncio.get_running_loop().time() > 29


async def test_a_changed_lease_counts_from_the_next_renewal(keeper, kernel):
    keeper.hold([binding(1)])
    keeper.lease = 2 * LEASE

    await asyncio.sleep(1.5)
    assert kernel.trains == []
    await asyncio.sleep(1.0)
    assert len(kernel.trains) == 1


async def test_lateness_of_a_renewal_can_be_read(keeper, kernel):
    kernel.delay = 0.7
    keeper.hold([binding(1)])
    await asyncio.sleep(1.1)
    kernel.unseen = {binding(2)}
    keeper.hold([binding(2)], since=0.05)

    await asyncio.sleep(1.0)

    assert 0.5 < keeper.lag < 0.8


async def test_others_are_told_what_is_held(kernel, lapsed):
    class Ear(set):
        hold = set.update
        drop = set.difference_update

    ear = Ear()
    keeper = Keeper(kernel, LEASE, lapsed.extend, [ear])

    keeper.hold([binding(1), binding(2)])
    keeper.drop([binding(2)])

    assert ear == {binding(1)}
    assert len(keeper) == 1


async def test_what_nobody_wants_any_more_is_not_renewed_even_out_of_sight(keeper, kernel, lapsed):
    keeper.hold([binding(1), binding(2)])
    keeper.retain({binding(2)})

    await asyncio.sleep(1.5)

    assert [train for _, train in kernel.trains] == [(binding(2),)]
    assert lapsed == []
