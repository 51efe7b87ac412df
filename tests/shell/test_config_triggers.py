"""Who asks for a reload, and when the one worker runs; in virtual time."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from config.polling import Poll
from config.report import Report, Result
from config.triggers import WISHES_MAX, Pace, Reloads, TooManyError
from support.settings import parsed

pytestmark = pytest.mark.looptime

QUIET, LONGEST = Pace().quiet, Pace().longest


class Slow:
    """A reloader that takes a second and remembers when it was asked what."""

    def __init__(self, seconds=1.0, text="version: 1\nconfig: {auto_reload: on}\n"):
        self.seconds = seconds
        self.runs = []
        self.settings = parsed(text).settings
        self.attempted = "a"
        self.content = "a"

    async def reload(self, trigger, *, dry_run=False, allow_removal=False):
        began = asyncio.get_running_loop().time()
        self.runs.append((round(began, 3), trigger, dry_run, allow_removal))
        await asyncio.sleep(self.seconds)
        self.attempted = self.content
        return Report(Result.APPLIED, trigger, "", len(self.runs), dry_run=dry_run)

    async def look(self):
        return self.content

    @property
    def file_differs(self):
        return self.content != "a"


@asynccontextmanager
async def working(reloader):
    reloads = Reloads(reloader)
    task = asyncio.create_task(reloads.run())
    try:
        yield reloads
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_many_signals_at_once_are_one_run():
    slow = Slow()
    async with working(slow) as reloads:
        for _ in range(50):
            reloads.poke("sighup")
        await asyncio.sleep(5)

    assert slow.runs == [(QUIET, "sighup", False, False)]


async def test_a_run_waits_for_quiet_but_not_for_ever():
    slow = Slow()
    async with working(slow) as reloads:
        for _ in range(50):
            reloads.poke("sighup")
            await asyncio.sleep(0.1)
        await asyncio.sleep(5)

    assert next(began for began, *_ in slow.runs) == pytest.approx(LONGEST, abs=0.11)
    assert len(slow.runs) == 2


async def test_a_request_during_a_run_waits_for_the_next():
    slow = Slow()
    async with working(slow) as reloads:
        first = asyncio.create_task(reloads.request("socket"))
        await asyncio.sleep(0.5)
        second = asyncio.create_task(reloads.request("socket"))
        reports = await asyncio.gather(first, second)

    assert [each.generation for each in reports] == [1, 2]
    assert [began for began, *_ in slow.runs] == [0.25, 1.5]


async def test_requests_before_a_run_share_it():
    slow = Slow()
    async with working(slow) as reloads:
        reloads.poke("sighup")
        reports = await asyncio.gather(
            reloads.request("socket"), reloads.request("socket", allow_removal=True)
        )

    assert reports[0] is reports[1]
    assert slow.runs == [(0.25, "sighup+socket", False, True)]


async def test_a_trial_is_answered_by_a_trial_and_before_the_real_run():
    slow = Slow()
    async with working(slow) as reloads:
        trial, real = await asyncio.gather(
            reloads.request("socket", dry_run=True), reloads.request("socket")
        )

    assert (trial.dry_run, real.dry_run) == (True, False)
    assert [dry for _, _, dry, _ in slow.runs] == [True, False]


async def test_a_trial_alone_changes_nothing():
    slow = Slow()
    async with working(slow) as reloads:
        await reloads.request("socket", dry_run=True, allow_removal=True)
        await asyncio.sleep(5)

    assert slow.runs == [(0.25, "socket", True, True)]


async def test_a_caller_who_gives_up_does_not_disturb_the_others():
    slow = Slow()
    async with working(slow) as reloads:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await reloads.request("socket")
        report = await reloads.request("socket")

    assert report.result is Result.APPLIED


async def test_nobody_waits_for_a_worker_that_has_ended():
    slow = Slow()
    async with working(slow) as reloads:
        during = asyncio.create_task(reloads.request("socket"))
        await asyncio.sleep(0.5)
        before = asyncio.create_task(reloads.request("socket"))
        await asyncio.sleep(0)
    await asyncio.wait([during, before])

    assert during.cancelled()
    assert before.cancelled()


async def test_callers_without_number_are_turned_away():
    slow = Slow()
    async with working(slow) as reloads:
        waiting = [asyncio.create_task(reloads.request("socket")) for _ in range(WISHES_MAX)]
        await asyncio.sleep(0)

        with pytest.raises(TooManyError):
            await reloads.request("socket")
        await asyncio.gather(*waiting)


@pytest.mark.parametrize(
    ("word", "auto", "runs"),
    [("on", False, 1), ("off", True, 0), ("auto", True, 1), ("auto", False, 0)],
)
async def test_a_changed_file_is_taken_if_that_is_wanted(word, auto, runs):
    slow = Slow(text=f"version: 1\nconfig: {{auto_reload: {word}}}\n")
    async with working(slow) as reloads:
        poll = asyncio.create_task(Poll(slow, reloads, auto=auto).run())
        await asyncio.sleep(12)
        assert slow.runs == []

        slow.content = "b"
        await asyncio.sleep(20)
        poll.cancel()

    assert len(slow.runs) == runs


async def test_an_edit_that_nobody_asked_for_is_told_once_and_its_end_not_at_all():
    slow = Slow(text="version: 1\n")
    poll = Poll(slow, Reloads(slow), auto=False)
    with capture_logs() as said:
        for content in ("b", "b", "a", "a", "c"):
            slow.content = content
            await poll.look()

    assert [each["event"] for each in said] == ["config.file_differs", "config.file_differs"]


async def test_a_content_that_was_refused_is_not_tried_again_until_it_changes():
    slow = Slow()
    async with working(slow) as reloads:
        poll = Poll(slow, reloads, auto=False)
        for content in ("b", "b", "b", "", "", "b"):
            slow.content = content
            await poll.look()
            await asyncio.sleep(3)

    assert [trigger for _, trigger, *_ in slow.runs] == ["file", "file", "file"]
