"""The runner in virtual time: rhythm, reloads, and checks that misbehave."""

import asyncio
import random
from bisect import bisect_left
from contextlib import asynccontextmanager

import pytest

from agent.health.probes import Senses
from agent.health.runner import AT_ONCE, Health
from agent.inputs import HealthSeen
from agent.metrics import Metrics
from config.schema.health import HealthSection
from egress.model import Interface

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]


class Box:
    """A mailbox that keeps everything."""

    def __init__(self):
        self.items = []

    def put(self, item):
        assert isinstance(item, HealthSeen)
        self.items.append(item.fitness)


class Links:
    """Interfaces that come and go, and how often they were looked at."""

    def __init__(self):
        self.up = True
        self.looks = []

    def __call__(self):
        self.looks.append(asyncio.get_running_loop().time())
        return [Interface("eth0", 2, "02:00:00:00:00:01", carrier=self.up)]


class Swamp:
    """A LAN that never answers."""

    def __init__(self):
        self.asking = self.most = 0

    async def ask(self, _questions):
        self.asking += 1
        self.most = max(self.most, self.asking)
        try:
            await asyncio.sleep(3600)
        finally:
            self.asking -= 1


def section(**checks):
    whole = {"checks": checks, "damping_half_life": "60s", "damping_longest": "120s"}
    return HealthSection.model_validate(whole)


CARRIER = {"type": "carrier", "interval": "1s", "rise": 2, "fall": 2}


class Bench:
    def __init__(self):
        self.box, self.links, self.lan, self.metrics = Box(), Links(), Swamp(), Metrics()
        gateway = ["192.0.2.254"]
        senses = Senses(
            links=self.links,
            interfaces=self.links,
            gateways=lambda: {"eth0": gateway},
            lan=self.lan,
        )
        self.health = Health(senses, self.box, self.metrics, random.Random(7))

    @property
    def reasons(self):
        return self.box.items[-1].reasons

    @asynccontextmanager
    async def running(self, **checks):
        self.health.configure(section(**checks))
        task = asyncio.create_task(self.health.run())
        yield self
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), "the runner ended by itself"


async def test_a_failing_check_is_told_once_with_its_name_and_taken_back_after_rise():
    async with Bench().running(uplink=CARRIER) as bench:
        await asyncio.sleep(5)
        assert bench.reasons == ()
        bench.links.up = False
        await asyncio.sleep(5)
        assert bench.reasons == ("unhealthy:uplink",)
        told = len(bench.box.items)
        await asyncio.sleep(20)
        assert len(bench.box.items) == told, "nothing new, and it was told again"
        bench.links.up = True
        await asyncio.sleep(5)

        assert bench.reasons == ()


async def test_before_the_first_round_a_check_is_awaited_and_after_it_is_not():
    async with Bench().running(uplink=CARRIER) as bench:
        assert bench.health.fitness.awaited == ("uplink",)
        await asyncio.sleep(3)

        assert bench.box.items[-1].awaited == ()


async def test_a_check_that_only_warns_gives_no_reason_but_is_shown():
    async with Bench().running(uplink={**CARRIER, "action": "warn"}) as bench:
        bench.links.up = False
        await asyncio.sleep(5)

        assert (bench.reasons, bench.box.items[-1].awaited) == ((), ())
        assert [(each.name, each.state) for each in bench.box.items[-1].checks] == [
            ("uplink", "failing")
        ]


async def test_a_check_that_flaps_is_not_believed_and_is_believed_again_by_itself():
    async with Bench().running(uplink={**CARRIER, "rise": 1, "fall": 1}) as bench:
        await asyncio.sleep(3)
        for _ in range(4):
            bench.links.up = False
            await asyncio.sleep(3)
            bench.links.up = True
            await asyncio.sleep(3)
        assert bench.reasons == ("damped:uplink",)
        await asyncio.sleep(130)

        assert bench.reasons == ()


@pytest.mark.slow
async def test_a_hundred_checks_do_not_ask_at_once():
    checks = {f"c{number}": {**CARRIER, "interval": "2s"} for number in range(100)}
    async with Bench().running(**checks) as bench:
        await asyncio.sleep(1.0)
        first = [*bench.links.looks]
        await asyncio.sleep(20)
        late = [at for at in bench.links.looks if at > 15.0]

    assert len(first) == 100, "the first rounds are over within a second"
    assert max(crowd(first), crowd(late)) <= 20


def crowd(times):
    """The most within any 50 ms."""
    ordered = sorted(times)
    return max(bisect_left(ordered, at + 0.05) - number for number, at in enumerate(ordered))


async def test_checks_that_hang_take_their_places_and_no_more():
    hung = {f"g{number}": {"type": "gateway", "timeout": "5s"} for number in range(40)}
    async with Bench().running(**hung) as bench:
        await asyncio.sleep(60)

        assert bench.lan.most == AT_ONCE
        assert {each.state for each in bench.box.items[-1].checks} == {"failing"}


async def test_a_reload_leaves_the_other_checks_alone():
    one = {**CARRIER, "interval": "10s"}
    async with Bench().running(a=one, b=CARRIER) as bench:
        await asyncio.sleep(12)
        before = len(bench.links.looks)
        known = {each.name: each for each in bench.box.items[-1].checks}
        bench.health.configure(section(a=one, c=CARRIER))
        await asyncio.sleep(0.001)
        now = {each.name: each for each in bench.box.items[-1].checks}

        assert set(now) == {"a", "c"}
        assert now["a"] == known["a"]
        assert now["c"].state == "unknown"
        await asyncio.sleep(1.2)
        assert 1 <= len(bench.links.looks) - before <= 3, "a was asked anew, or b goes on"


async def test_a_check_whose_removal_mends_the_node_gives_no_reason_any_more():
    async with Bench().running(uplink=CARRIER) as bench:
        bench.links.up = False
        await asyncio.sleep(5)
        assert bench.reasons == ("unhealthy:uplink",)
        bench.health.configure(section())
        await asyncio.sleep(0.001)

        assert bench.reasons == ()


async def test_states_and_rounds_can_be_scraped():
    async with Bench().running(uplink=CARRIER, other={**CARRIER, "interface": "eth7"}) as bench:
        await asyncio.sleep(5)
        text = bench.metrics.render().decode()

    assert 'wayout_health_check_up{check="uplink"} 1.0' in text
    assert 'wayout_health_check_up{check="other"} 0.0' in text
    assert 'wayout_health_check_rounds_total{check="other",result="failed"}' in text
