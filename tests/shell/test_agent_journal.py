"""What is said of moves: to the log, to the counters, and to history; nothing twice."""

import asyncio
from ipaddress import ip_address
from time import perf_counter

import pytest
from structlog.testing import capture_logs

from agent import history
from agent.historyfile import History
from agent.journal import Journal
from agent.metrics import Metrics
from egress.decision import NEVER, Condition, Decision, Kind, Move
from egress.model import Cause

IP = ip_address("192.0.2.40")


def decision(moves=(), conditions=None):
    return Decision(
        desired=frozenset(),
        bind_by={},
        asks=(),
        announcements=(),
        publish=(),
        phases={},
        conditions=conditions or {},
        moves=tuple(moves),
        damped=frozenset(),
        mute=frozenset(),
        deadline=NEVER,
    )


def move(origin="b", to="a", cause=Cause.NODE_DEAD, ip=IP):
    times = {"lost": 1.0, "detected": 1.4, "bound": 1.5, "announced": 1.51}
    return Move(ip=ip, name="e", origin=origin, to=to, cause=cause, **times)


@pytest.fixture
def metrics():
    return Metrics()


@pytest.fixture
def kept(tmp_path):
    return History(tmp_path)


@pytest.fixture
def told():
    return []


@pytest.fixture
def journal(metrics, kept, told):
    return Journal("a", metrics, kept, lambda entries, _now: told.extend(entries))


def counted(metrics, name):
    lines = metrics.render().decode().splitlines()
    return {line.split()[0]: float(line.split()[1]) for line in lines if line.startswith(name)}


async def test_a_move_to_us_is_logged_counted_and_kept(journal, metrics, kept):
    with capture_logs() as said:
        await journal.decided(decision([move()]), 2.0, 1.7e9)

    (line,) = said
    assert (line["event"], line["cause"], line["detect_seconds"]) == (
        "egress.moved",
        "node_dead",
        0.4,
    )
    assert [each["to"] for each in kept.newest(10)] == ["a"]
    assert counted(metrics, "wayout_moves_total") == {'wayout_moves_total{cause="node_dead"}': 1.0}
    total = 'wayout_failover_seconds_sum{cause="node_dead",phase="total"}'
    assert counted(metrics, total)[total] == pytest.approx(0.51)


async def test_a_move_to_an_heir_is_only_logged_for_the_heir_counts_it(journal, metrics, kept):
    with capture_logs() as said:
        await journal.decided(decision([move("a", "c", Cause.DRAIN)]), 2.0, 1.7e9)

    (line,) = said
    told = (line["event"], line["peer"], line["cause"])
    assert told == ("egress.handed_over", "c", "drain")
    assert kept.newest(10) == []
    assert counted(metrics, "wayout_moves_total") == {}


async def test_an_address_that_went_to_nobody_is_kept_and_took_no_time(journal, metrics, kept):
    await journal.decided(decision([move("a", None, Cause.PARTITION)]), 2.0, 1.7e9)

    (entry,) = kept.newest(10)
    assert (entry["from"], entry["to"], entry["cause"]) == ("a", None, "partition")
    assert counted(metrics, "wayout_failover_seconds_count") == {}


async def test_what_ended_here_is_told_to_the_others_and_what_they_tell_is_kept(
    journal, metrics, kept, told
):
    elsewhere = {**history.entry(move(), 2.0, 1.7e9), "ip": "192.0.2.99", "to": "c"}
    journal.heard([elsewhere])
    await journal.decided(decision([move(), move("a", "c", Cause.DRAIN)]), 2.0, 1.7e9)

    assert [(each["ip"], each["to"]) for each in told] == [("192.0.2.40", "a")]
    assert [each["ip"] for each in kept.newest(10)] == ["192.0.2.99", "192.0.2.40"]
    assert counted(metrics, "wayout_moves_total") == {'wayout_moves_total{cause="node_dead"}': 1.0}


async def test_a_condition_is_said_when_it_comes_and_when_it_goes(journal):
    conflict = {IP: Condition(Kind.ADDRESS_CONFLICT, "02:00:00:00:00:99", "stranger")}
    with capture_logs() as said:
        for conditions in (conflict, dict(conflict), {}, {}):
            await journal.decided(decision(conditions=conditions), 2.0, 1.7e9)

    assert [each["event"] for each in said] == ["egress.condition", "egress.condition_over"]


async def test_many_moves_leave_the_loop_its_turns(journal, kept):
    worst = 0.0

    async def watch():
        nonlocal worst
        while True:
            began = perf_counter()
            await asyncio.sleep(0)
            worst = max(worst, perf_counter() - began)

    watching = asyncio.create_task(watch())
    crowd = [move(ip=ip_address(0x0A4D0000 + number)) for number in range(2000)]
    with capture_logs():
        await journal.decided(decision(crowd), 2.0, 1.7e9)
    watching.cancel()
    await asyncio.wait([watching])

    assert len(kept.newest(5000)) == 2000
    assert 0.0 < worst < 0.5
