"""Random edits with failures in every step: what runs is the last that was good, always."""

from random import Random

import pytest
from structlog.testing import capture_logs

from config.changes import diff, split
from config.leaves import leaves_of
from config.load import load
from config.problems import ConfigError
from config.report import Result
from config.transaction import Reloader
from support.edits import SECTIONS, STEPS, MoodyPart, broken, good

START = "version: 1\nnode: {name: n1}\negress: {egresses: {e0: {egress_ip: 10.77.0.1}}}\n"


class Course:
    """A file that is edited, the reloader on it, and what must hold after each edit."""

    def __init__(self, folder, seed):
        self.rng = Random(seed)
        self.path = folder / "config.yaml"
        self.path.write_text(START)
        loaded = load(self.path, environ={})
        self.reloader = Reloader(self.path, loaded, environ={}, clock=lambda: 1.5)
        self.parts = [MoodyPart(each, loaded.settings) for each in SECTIONS]
        for each in self.parts:
            self.reloader.subscribe(each)
        self.results = dict.fromkeys(Result, 0)

    async def edit(self):
        rng = self.rng
        if rng.random() < 0.9:
            self.path.write_text(broken(rng) if rng.random() < 0.3 else good(rng))
        for each in self.parts:
            each.moods = {rng.choice(STEPS)} if rng.random() < 0.3 else frozenset()
        before = self.reloader.settings
        pending, generation = self.reloader.pending_restart, self.reloader.generation
        report = await self.reloader.reload("edit", allow_removal=rng.random() < 0.3)
        self.results[report.result] += 1
        if report.good:
            self.level()
        else:
            assert self.reloader.settings is before
            assert self.reloader.pending_restart == pending
        assert (self.reloader.generation > generation) == (report.result is Result.APPLIED)
        self.consistent()

    def level(self):
        """What runs is what is written, but for what waits; and all of that is told."""
        written = leaves_of(load(self.path, environ={}).settings)
        rest = split(diff(leaves_of(self.reloader.settings), written))
        assert not rest.live
        assert not rest.forbidden
        assert self.reloader.pending_restart == rest.pending

    def consistent(self):
        """Each part runs on what the reloader says that it does, and has nothing half open."""
        settings = self.reloader.settings
        for each in self.parts:
            assert each.running == {name: getattr(settings, name) for name in each.sections}
            assert each.open == 0


async def edited(folder, seed, edits):
    course = Course(folder, seed)
    with capture_logs():
        await _all(course, seed, edits)
    return course


async def _all(course, seed, edits):
    for number in range(edits):
        try:
            await course.edit()
        except (AssertionError, ConfigError) as error:
            raise AssertionError(f"seed {seed}, edit {number}: {error}") from error


@pytest.mark.slow
async def test_t04_random_edits_leave_the_last_good_settings_running(tmp_path):
    course = await edited(tmp_path, seed=4, edits=150)

    assert all(course.results.values()), course.results


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
async def test_t04_ten_thousand_random_edits_leave_the_last_good_settings_running(tmp_path, seed):
    course = await edited(tmp_path, seed=seed, edits=2500)

    assert all(course.results.values()), course.results


async def test_t04_the_same_seed_is_the_same_course(tmp_path):
    results = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        results.append((await edited(folder, seed=9, edits=30)).results)

    assert results[0] == results[1]
