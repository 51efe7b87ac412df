"""History survives restarts, power cuts, full disks and other people's files."""

import asyncio
from ipaddress import ip_address

import pytest
from structlog.testing import capture_logs

from agent import history
from agent.historyfile import HEAD, History
from egress.decision import Move
from egress.model import Cause


def entry(number, origin="b"):
    told = Move(
        ip=ip_address(0x0A4D0000 + number),
        name=f"e{number}",
        origin=origin,
        to="a",
        cause=Cause.NODE_DEAD,
        lost=1.0,
        bound=1.5,
        announced=1.6,
    )
    return history.entry(told, 2.0, 1.7e9)


async def kept(folder, numbers, **limits):
    one = History(folder, **limits)
    await one.load()
    await one.add(entry(number) for number in numbers)
    await one.flush()
    return one


async def found(folder, **limits):
    one = History(folder, **limits)
    await one.load()
    return [each["name"] for each in one.newest(1_000_000)]


async def test_a_successor_reads_what_was_written_and_goes_on(tmp_path):
    await kept(tmp_path, [1, 2])
    second = await kept(tmp_path, [3])

    assert await found(tmp_path) == ["e1", "e2", "e3"]
    assert second.count == 3
    assert [each["name"] for each in second.newest(2)] == ["e2", "e3"]


async def test_what_was_torn_by_a_power_cut_is_dropped_and_nothing_else(tmp_path):
    await kept(tmp_path, [1, 2])
    path = tmp_path / "history.jsonl"
    path.write_bytes(path.read_bytes()[:-20])

    with capture_logs() as said:
        await kept(tmp_path, [3])

    assert await found(tmp_path) == ["e1", "e3"]
    assert said == []


@pytest.mark.parametrize("content", [b"", b"127.0.0.1 localhost\n", b"\x00" * 100, HEAD[:-5]])
async def test_a_file_that_is_not_ours_is_set_aside_with_one_word(tmp_path, content):
    path = tmp_path / "history.jsonl"
    path.write_bytes(content)

    with capture_logs() as said:
        await kept(tmp_path, [1])

    assert await found(tmp_path) == ["e1"]
    assert (tmp_path / "history.jsonl.broken").read_bytes() == content
    assert [each["event"] for each in said] == ["state.broken"]


async def test_a_broken_line_in_the_middle_costs_that_line(tmp_path):
    await kept(tmp_path, [1, 2, 3])
    path = tmp_path / "history.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"name":"e2"', b'"name":"e2'))

    with capture_logs() as said:
        assert await found(tmp_path) == ["e1", "e3"]
        await kept(tmp_path, [])

    assert (tmp_path / "history.jsonl.broken").exists()
    assert [each["event"] for each in said] == ["state.broken"]


async def test_entries_are_bounded_and_the_newest_stay(tmp_path):
    one = await kept(tmp_path, range(50), entries=10)

    assert [each["name"] for each in one.newest(100)] == [f"e{n}" for n in range(40, 50)]
    assert one.count == 50
    assert len(await found(tmp_path, entries=10)) == 10


async def test_bytes_are_bounded_and_the_newest_stay(tmp_path):
    one = await kept(tmp_path, [], size=4000)
    for number in range(100):
        await one.add([entry(number)])
        await one.flush()
        assert (tmp_path / "history.jsonl").stat().st_size <= 4000

    names = await found(tmp_path, size=4000)
    assert names[-1] == "e99"
    assert 5 < len(names) < 20


async def test_a_disk_that_refuses_is_told_once_and_made_up_for_later(tmp_path):
    folder = tmp_path / "state"
    folder.write_text("in the way")
    one = History(folder)

    with capture_logs() as said:
        await one.load()
        for number in range(3):
            await one.add([entry(number)])
            await one.flush()
        folder.unlink()
        await one.flush()

    assert await found(folder) == ["e0", "e1", "e2"]
    events = [each["event"] for each in said]
    assert events.count("state.unwritable") == 1
    assert events[-1] == "state.written_again"


async def test_a_follower_gets_moves_as_they_come_and_nothing_after_a_while(tmp_path):
    one = await kept(tmp_path, [1, 2])
    waiting = asyncio.create_task(one.after(2, 5.0, 100))
    await asyncio.sleep(0)
    await one.add([entry(3), entry(4)])

    assert [each["name"] for each in await waiting] == ["e3", "e4"]
    assert await one.after(4, 0.01, 100) == []
    assert [each["name"] for each in await one.after(1, 0.01, 2)] == ["e3", "e4"]


async def test_the_part_writes_what_is_added(tmp_path):
    one = History(tmp_path)
    await one.load()
    running = asyncio.create_task(one.run())
    await one.add([entry(1)])
    for _ in range(500):
        if await found(tmp_path):
            break
        await asyncio.sleep(0.01)
    assert await found(tmp_path) == ["e1"]
    running.cancel()
    await asyncio.wait([running])


async def test_a_first_owner_is_no_failover(tmp_path):
    one = await kept(tmp_path, [1])
    await one.add([entry(2, origin=None)])

    assert one.last_failover()["name"] == "e1"
