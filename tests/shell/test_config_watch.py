"""Real inotify on real folders: whatever way a file changes, somebody looks."""

import asyncio
import errno
import shutil
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from config.load import load
from config.transaction import Reloader
from config.watch import Watch, folders_of

TEXT = "version: 1\nnode: {name: n1}\n"


class Seen:
    """Counts hints and lets a test wait for one."""

    def __init__(self):
        self.event = asyncio.Event()

    def __call__(self):
        self.event.set()

    async def hint(self, patience=2.0):
        try:
            async with asyncio.timeout(patience):
                await self.event.wait()
        except TimeoutError:
            return False
        # The events of one edit come together.
        await asyncio.sleep(0.02)
        self.event.clear()
        return True


@asynccontextmanager
async def watching(folders, **more):
    seen = Seen()
    watch = Watch(folders, seen, **more)
    task = asyncio.create_task(watch.run())
    try:
        await asyncio.sleep(0.1)
        yield watch, seen
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture
def files(tmp_path):
    """A configuration in the way of a ConfigMap volume, and how the kubelet replaces it."""
    return Volume(tmp_path / "etc")


class Volume:
    def __init__(self, folder):
        self.folder = folder
        self.number = 0
        folder.mkdir()
        self.swap(TEXT)
        (folder / "config.yaml").symlink_to("..data/config.yaml")
        self.main = folder / "config.yaml"

    def swap(self, text):
        self.number += 1
        fresh = self.folder / f"..{self.number}"
        fresh.mkdir()
        (fresh / "config.yaml").write_text(text)
        link = self.folder / "..data_tmp"
        link.symlink_to(fresh.name)
        link.replace(self.folder / "..data")
        if self.number > 1:
            shutil.rmtree(self.folder / f"..{self.number - 1}")

    def reloader(self):
        return Reloader(self.main, load(self.main, environ={}), environ={})


async def test_every_swap_of_a_config_map_is_seen(files):
    """T-3 and T-10: not the first alone."""
    reloader = files.reloader()
    async with watching(lambda: folders_of(reloader)) as (watch, seen):
        assert watch.mode == "inotify"
        for level in ("debug", "warning", "error"):
            files.swap(f"{TEXT}logging: {{level: {level}}}\n")
            assert await seen.hint()
            await reloader.reload("test")
            assert reloader.settings.logging.level.value == level


async def test_editors_that_rename_and_those_that_write_in_place_are_seen(tmp_path):
    main = tmp_path / "config.yaml"
    main.write_text(TEXT)
    reloader = Reloader(main, load(main, environ={}), environ={})
    async with watching(lambda: folders_of(reloader)) as (_, seen):
        for number in range(3):
            fresh = tmp_path / ".config.yaml.swp"
            fresh.write_text(f"{TEXT}# {number}\n")
            fresh.replace(main)
            assert await seen.hint()
            main.write_text(f"{TEXT}# {number} in place\n")
            assert await seen.hint()


@pytest.mark.slow
async def test_a_drop_in_folder_that_comes_later_is_watched_too(tmp_path):
    main = tmp_path / "config.yaml"
    main.write_text(TEXT)
    reloader = Reloader(main, load(main, environ={}), environ={})
    async with watching(lambda: folders_of(reloader)) as (_, seen):
        (tmp_path / "conf.d").mkdir()
        assert await seen.hint()
        await asyncio.sleep(1.0)
        (tmp_path / "conf.d" / "10-more.yaml").write_text("logging: {level: debug}\n")
        assert await seen.hint()
        await reloader.reload("test")
        assert reloader.settings.logging.level.value == "debug"


async def test_a_kernel_that_refuses_is_told_once_and_the_poll_goes_on():
    def full():
        raise OSError(errno.ENOSPC, "No space left on device")

    with capture_logs() as said:
        async with watching(full) as (watch, _):
            assert watch.mode == "poll"

    degraded = [each for each in said if each["event"] == "config.watch_degraded"]
    assert [each["mode"] for each in degraded] == ["poll"]


async def test_nobody_watches_when_it_is_not_wanted(tmp_path):
    async with watching(lambda: [tmp_path], wanted=lambda: False) as (watch, seen):
        (tmp_path / "x").write_text("")
        assert watch.mode == "poll"
        assert not await seen.hint(0.2)
