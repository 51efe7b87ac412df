"""Acceptance tests T-… of the running side: triggers, rotation, confirmation, quarrels."""

import asyncio
import base64
import logging
from random import Random

import pytest
import structlog
from structlog.testing import capture_logs

from agent import logs
from agent.subscribers import Logging, shared_level
from config.load import load
from config.polling import Poll
from config.report import Result
from config.schema.settings import Settings
from config.subscribers import RefusalError
from config.transaction import Reloader
from config.triggers import Pace, Reloads
from support.settings import Part

START = "version: 1\nnode: {name: n1}\nconfig: {auto_reload: on, min_reload_interval: 0s}\n"


class Files:
    """A main file, the reloader on it, and a hurried worker."""

    def __init__(self, folder, text=START):
        self.path = folder / "config.yaml"
        self.path.write_text(text)
        self.now = 1000.0
        loaded = load(self.path, environ={})
        self.reloader = Reloader(self.path, loaded, environ={}, clock=lambda: self.now)
        self.reloads = Reloads(self.reloader, pace=lambda: Pace(0.01, 0.05, self.reloader.rest))
        self.poll = Poll(self.reloader, self.reloads, auto=False, rng=Random(1))

    async def reload(self, text=None, **more):
        if text is not None:
            self.path.write_text(text)
        return await self.reloader.reload("test", **more)


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


class Confirmed(Part):
    """A part whose new settings are wrong as long as `wrong` says so."""

    wrong = False

    async def confirm(self, _token):
        self._step("confirm")
        if self.wrong:
            raise RefusalError("nobody answers")


def keyring(path, *numbers):
    path.write_bytes(b"".join(base64.b64encode(bytes([n] * 16)) + b"\n" for n in numbers))
    path.chmod(0o600)


async def test_t03_and_test_t10_files_that_appear_and_change_are_taken_by_the_poll_alone(files):
    worker = asyncio.create_task(files.reloads.run())
    try:
        folder = files.path.parent / "conf.d"
        await files.poll.look()
        assert files.reloader.generation == 1
        (folder / "..one").mkdir(parents=True)
        (folder / "..one" / "10.yaml").write_text("gossip: {fanout: 4}\n")
        (folder / "..data").symlink_to("..one")
        (folder / "10.yaml").symlink_to("..data/10.yaml")
        await files.poll.look()
        # The run that the poll has asked for answers this as well.
        report = await files.reloads.request("test")
    finally:
        worker.cancel()
        await asyncio.wait([worker])
    assert (report.result, report.trigger) == (Result.APPLIED, "file+test")
    assert files.reloader.settings.gossip.fanout == 4


async def test_t31_a_level_is_seen_by_loggers_that_were_bound_before(files):
    files.reloader.subscribe(Logging())
    logs.configure(level="info", shape="json", node="n1")
    bound = structlog.get_logger("wayout.gossip").bind(peer="n2")
    bound.info("gossip.first")
    try:
        await files.reload(START + "logging: {level: debug}\n")
        assert logging.getLogger("wayout.gossip").isEnabledFor(logging.DEBUG)
        await files.reload(START)
        assert not logging.getLogger("wayout.gossip").isEnabledFor(logging.DEBUG)
    finally:
        logs.configure(level="info", shape="json", node="n1")


@pytest.mark.looptime
async def test_t08_a_level_falls_back_by_itself_to_that_of_the_shared_files(files):
    ours = logging.getLogger("wayout")
    part = Logging(lambda: shared_level(files.reloader))
    files.reloader.subscribe(part)
    base = START + "logging: {level: warning}\n"
    own = base + "nodes: {n1: {logging: {level: debug, level_ttl: 10m}}}\n"
    try:
        await files.reload(own)
        assert ours.level == logging.DEBUG
        await asyncio.sleep(300)
        # Another change of the logs, or of anything else, starts no new term.
        await files.reload(own.replace("{level: warning}", "{level: warning, format: json}"))
        assert ours.level == logging.DEBUG
        await asyncio.sleep(301)
        assert ours.level == logging.WARNING
        await files.reload(own.replace("{level: warning}", "{level: error, format: console}"))
        assert ours.level == logging.ERROR
        assert files.reloader.settings.logging.level.value == "debug"
        await files.reload(own.replace("10m", "20m"))
        assert ours.level == logging.DEBUG
    finally:
        part.close()
        logs.configure(level="info", shape="json", node="n1")


async def test_t30_without_a_section_for_it_a_pod_takes_changed_files_by_itself(files):
    """In a pod the environment alone says so; nothing in the file does."""
    assert "kubernetes" not in Settings.model_fields
    said = "config: {auto_reload: on"
    files.path.write_text(START.replace(said, "config: {auto_reload: auto"))
    await files.reload()
    in_pod = Poll(files.reloader, files.reloads, auto=True, rng=Random(1))
    assert (in_pod.automatic, files.poll.automatic) == (True, False)


async def test_t40_two_writers_get_one_warning_and_ever_longer_rest(files):
    texts = [START + f"gossip: {{fanout: {n}}}\n" for n in (4, 5)]
    with capture_logs() as said:
        for number in range(12):
            files.now += 10.0
            await files.reload(texts[number % 2])

    assert [each["event"] for each in said].count("config.flip_flop") == 1
    assert files.reloader.rest == 0.0  # config.min_reload_interval is off in this file
    await files.reload(texts[0].replace("min_reload_interval: 0s", "min_reload_interval: 5s"))
    assert files.reloader.rest == 60.0


async def test_a_rotated_key_is_a_change_although_no_line_differs(tmp_path):
    key = tmp_path / "keyring"
    keyring(key, 1)
    text = f"{START}gossip: {{encryption: required, keyring_file: {key}}}\n"
    files = Files(tmp_path, text)
    part = Part("gossip", ["gossip"])
    files.reloader.subscribe(part)
    before = files.reloader.digests.cluster
    assert (await files.reload()).result is Result.UNCHANGED

    keyring(key, 1, 2)
    assert await files.reloader.look() != files.reloader.attempted
    report = await files.reload()
    more = files.reloader.digests.cluster
    keyring(key, 2, 1)
    turned = await files.reload()

    assert report.result is turned.result is Result.APPLIED
    assert part.steps == ["prepare", "commit", "finalize"] * 2
    assert [each["path"] for each in report.to_document()["changes"]] == ["gossip.keyring_file"]
    assert before != more == files.reloader.digests.cluster
    told = str([report.to_document(), files.reloader.status(), files.reloader.show()])
    assert base64.b64encode(bytes([1] * 16)).decode() not in told


async def test_a_key_file_that_was_refused_is_tried_again_when_it_is_mended(tmp_path):
    key = tmp_path / "keyring"
    files = Files(tmp_path)
    part = Part("gossip", ["gossip"], fails="prepare")
    files.reloader.subscribe(part)
    report = await files.reload(f"{START}gossip: {{encryption: required, keyring_file: {key}}}\n")
    assert report.result is Result.REJECTED
    assert await files.reloader.look() == files.reloader.attempted

    keyring(key, 1)

    assert await files.reloader.look() != files.reloader.attempted


async def test_what_is_not_confirmed_goes_back_as_a_whole(files):
    gossip = Confirmed("gossip", ["gossip"], value=files.reloader.settings)
    logger = Part("logging", ["logging"], value=files.reloader.settings)
    files.reloader.subscribe(gossip)
    files.reloader.subscribe(logger)
    start = files.reloader.settings
    gossip.wrong = True

    report = await files.reload(START + "gossip: {fanout: 4}\nlogging: {level: debug}\n")

    assert (report.result, report.code, report.inconsistent) == (Result.ROLLED_BACK, 5, False)
    assert "gossip could not confirm it: nobody answers" in str(report.problems[0])
    assert files.reloader.settings is gossip.value is logger.value is start
    assert files.reloader.stale
    assert await files.reloader.look() == files.reloader.attempted

    gossip.wrong = False
    assert (await files.reload()).result is Result.APPLIED
    assert files.reloader.settings.gossip.fanout == 4
    assert not files.reloader.stale


async def test_a_way_back_that_is_barred_is_admitted_for_good(files):
    gossip = Confirmed("gossip", ["gossip"])
    files.reloader.subscribe(gossip)

    class Barred(Part):
        async def prepare(self, update):
            if update.old.gossip.fanout == 4:
                raise RefusalError("there is no way back")
            return await super().prepare(update)

    files.reloader.subscribe(Barred("listeners", ["gossip"]))
    gossip.wrong = True
    report = await files.reload(START + "gossip: {fanout: 4}\n")

    assert report.inconsistent
    gossip.wrong = False
    await files.reload(START + "gossip: {fanout: 4}\n# again\n")
    assert files.reloader.attempts.inconsistent


@pytest.mark.slow
async def test_a_half_written_file_gets_a_second_look_before_it_counts(files):
    files.path.write_text("egress: [")

    async def finish():
        await asyncio.sleep(0.3)
        files.path.write_text(START + "gossip: {fanout: 4}\n")

    with capture_logs() as said:
        report, _ = await asyncio.gather(files.reloader.reload("file"), finish())

    assert report.result is Result.APPLIED
    assert "config.rejected" not in [each["event"] for each in said]


async def test_the_last_error_outlives_the_next_success(files):
    await files.reload("egress: [\n")
    await files.reload(START)
    status = files.reloader.status()

    assert status["last_reload"]["result"] == "unchanged"
    assert status["last_error"]["result"] == "rejected"
    assert status["last_error"]["errors"]


async def test_any_sequence_of_reloads_ends_where_a_fresh_start_would(files):
    rng = Random(11)
    part = Confirmed("all", ["gossip", "egress", "node", "logging"])
    files.reloader.subscribe(part)
    for _ in range(60):
        ips = rng.sample(range(201, 206), rng.randrange(3, 6))
        lines = [
            START + f"gossip: {{fanout: {rng.randrange(1, 6)}}}",
            "egress: {removal_guard: off, egresses: {"
            + ", ".join(f"e{ip}: {{egress_ip: 10.77.0.{ip}}}" for ip in ips)
            + "}}",
            rng.choice(["", "state: {dir: /tmp/elsewhere}", "egres: {}"]),
        ]
        part.fails = rng.choice([None, None, None, "prepare", "commit"])
        part.wrong = rng.random() < 0.1
        await files.reload("\n".join(lines) + "\n")
    part.fails, part.wrong = None, False
    last = START + "gossip: {fanout: 2}\negress: {removal_guard: off}\n"

    await files.reload(last)

    assert files.reloader.settings == load(files.path, environ={}).settings
    assert files.reloader.pending_restart == ()
    assert files.reloader.digests == load(files.path, environ={}).digests
