"""The annotation of a node, followed at its source: what is taken, what is kept, and how often."""

import asyncio
import json
from contextlib import asynccontextmanager
from random import Random

import pytest
from structlog.testing import capture_logs

from agent.layerfile import LayerFile
from config.elsewhere import Elsewhere
from config.load import load
from config.remote import RemoteLayer, SourceError
from config.report import Result
from config.transaction import Reloader
from config.triggers import Pace, Reloads
from support.annotation_source import AnnotationSource

BASE = "version: 1\nnode: {name: n1, max_addresses: 9}\n"
NAMED = "wayout-rack7"


class Followed:
    """A reloader, its worker, and the follower of a source."""

    def __init__(self, folder, kept=None):
        self.path = folder / "config.yaml"
        self.path.write_text(BASE)
        self.reloader = Reloader(self.path, load(self.path, environ={}), environ={})
        pace = Pace(0.01, 0.05, 0.0)
        self.reloads = Reloads(self.reloader, pace=lambda: pace)
        self.source = AnnotationSource()
        self.file = LayerFile(folder / "state")
        self.follower = Elsewhere(
            self.source,
            "n1",
            self.reloads.poke,
            layer=RemoteLayer(kept=kept or self.file.kept()),
            rng=Random(3),
            taken=self.file.keep,
        )
        self.reloader.listen(self.follower.text)

    def say(self, text, name=NAMED):
        self.source.objects["wayout", name] = {"config.yaml": text}
        self.source.nodes["n1"] = name
        self.source.tell()

    @property
    def limit(self):
        return self.reloader.settings.node.max_addresses

    async def until(self, holds):
        async with asyncio.timeout(300):
            while not holds():  # noqa: ASYNC110 - in virtual time
                await asyncio.sleep(0.05)

    def counted(self, seconds):
        """Requests of the last so many seconds."""
        now = asyncio.get_running_loop().time()
        return [kind for at, kind in self.source.requests if at > now - seconds]


@asynccontextmanager
async def running(followed):
    tasks = [asyncio.create_task(x.run()) for x in (followed.reloads, followed.follower)]
    try:
        yield followed
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@pytest.fixture
def followed(tmp_path):
    return Followed(tmp_path)


pytestmark = pytest.mark.looptime


async def test_t20_an_annotation_is_applied_changed_and_removed_while_the_daemon_runs(followed):
    async with running(followed):
        await asyncio.sleep(3)
        assert (followed.limit, followed.reloader.generation) == (9, 1)
        for text, wanted in (("node: {max_addresses: 3}", 3), ("node: {max_addresses: 4}", 4)):
            followed.say(text)
            await followed.until(lambda wanted=wanted: followed.limit == wanted)
        assert followed.reloader.last.trigger == "annotation"
        assert f"configmap wayout/{NAMED}#config.yaml" in str(followed.reloader.status()["layers"])
        del followed.source.nodes["n1"]
        followed.source.tell()
        await followed.until(lambda: followed.limit == 9)
    assert followed.file.kept() is None


async def test_t10_an_object_that_comes_after_its_annotation_is_taken_without_a_restart(followed):
    followed.source.nodes["n1"] = NAMED
    async with running(followed):
        await asyncio.sleep(5)
        status = followed.follower.status()
        assert (status["standing"], followed.limit) == ("none", 9)
        assert "does not exist" in status["reason"]
        followed.say("node: {max_addresses: 3}")
        await followed.until(lambda: followed.limit == 3)


async def test_t48_the_last_layer_holds_while_the_source_is_away_and_its_age_grows(followed):
    async with running(followed):
        followed.say("node: {max_addresses: 3}")
        await followed.until(lambda: followed.limit == 3)
        followed.source.down = "connection refused"
        followed.source.tell()
        followed.source.objects["wayout", NAMED] = {"config.yaml": "node: {max_addresses: 5}"}
        ages = []
        for _ in range(4):
            await asyncio.sleep(60)
            ages.append(followed.follower.status()["stale_seconds"])
        assert ages == sorted(set(ages))
        assert ages[-1] >= 200
        assert followed.limit == 3
        # A reload for another reason keeps it as well.
        report = await followed.reloads.request("test")
        assert (report.result, followed.limit) == (Result.UNCHANGED, 3)
        followed.source.down = ""
        await followed.until(lambda: followed.limit == 5)
        assert followed.follower.status()["stale_seconds"] == 0.0


async def test_t48_a_node_that_boots_while_the_source_is_away_has_its_last_layer(tmp_path):
    first = Followed(tmp_path)
    async with running(first):
        first.say("node: {max_addresses: 3}")
        await first.until(lambda: first.limit == 3)
        await first.until(lambda: first.file.kept() is not None)
    again = Followed(tmp_path)
    again.source.down = "no route to host"
    async with running(again):
        await again.until(lambda: again.limit == 3)
        assert again.follower.status()["standing"] == "kept"


async def test_t21_a_layer_that_makes_no_sense_is_told_once_and_leaves_the_last_good(followed):
    async with running(followed):
        followed.say("node: {max_addresses: 3}")
        await followed.until(lambda: followed.limit == 3)
        for text, name, word in (
            ("gossip: {fanout: 5}", NAMED, "must be the same on every node"),
            ("node: {max_addresses: 1}", "secrets", "begins with wayout-"),
        ):
            followed.say(text, name)
            await followed.until(lambda: not followed.reloader.last.good)
            assert word in str(followed.reloader.last.problems[0])
            assert followed.limit == 3
            assert await followed.reloader.look() == followed.reloader.attempted
            followed.say("node: {max_addresses: 3}")
            await followed.until(lambda: followed.reloader.last.good)


async def test_a_file_is_still_taken_while_the_annotation_makes_no_sense_is_refused_as_a_whole(
    followed,
):
    async with running(followed):
        followed.say("x", "secrets")
        await followed.until(lambda: not followed.reloader.last.good)
        followed.path.write_text(BASE + "logging: {level: debug}\n")
        assert await followed.reloader.look() != followed.reloader.attempted
        assert (await followed.reloads.request("test")).result is Result.REJECTED


async def test_t22_a_source_that_closes_every_watch_is_asked_ever_more_rarely(followed):
    followed.source.closes = True
    async with running(followed):
        await asyncio.sleep(60)
        assert len(followed.counted(60)) <= 12
        await asyncio.sleep(240)
        assert len(followed.counted(60)) <= 5
        assert [kind for _, kind in followed.source.requests].count("list") == 1


async def test_t22_what_expired_is_read_anew_once_and_a_busy_source_is_left_alone(followed):
    async with running(followed):
        await asyncio.sleep(6)
        followed.source.answers = [SourceError("too old (410)", expired=True)]
        followed.source.down = ""
        # The watch under way ends with news of nothing; the next one is refused.
        followed.source.tell()
        await asyncio.sleep(3)
        assert followed.counted(300) == ["list", "watch", "watch", "list", "watch"]

        followed.source.answers = [SourceError("busy (429)", wait=40.0)]
        followed.source.tell()
        await asyncio.sleep(39)
        assert followed.counted(36) == []
        await asyncio.sleep(10)
        assert followed.counted(12) == ["list", "watch"]


async def test_t22_many_followers_do_not_come_back_in_step():
    waits = set()
    for seed in range(20):
        source = AnnotationSource()
        source.down = "refused"
        follower = Elsewhere(source, "n1", lambda _: None, rng=Random(seed))
        task = asyncio.create_task(follower.run())
        await asyncio.sleep(5)
        task.cancel()
        await asyncio.wait([task])
        waits.add(round(source.requests[1][0] - source.requests[0][0], 3))
    assert len(waits) > 15


async def test_t30_a_token_that_was_replaced_is_used_by_the_next_request(followed, tmp_path):
    token = tmp_path / "token"
    token.write_text("new")
    followed.source.token_file, followed.source.token = token, "new"
    followed.say("node: {max_addresses: 3}")
    async with running(followed):
        await followed.until(lambda: followed.limit == 3)
        followed.source.token = "newer"
        followed.source.tell()
        await asyncio.sleep(60)
        assert "401" in followed.follower.status()["reason"]
        assert followed.limit == 3
        token.write_text("newer")
        followed.say("node: {max_addresses: 4}")
        await followed.until(lambda: followed.limit == 4)


async def test_an_outage_is_told_once(followed):
    followed.source.down = "refused"
    with capture_logs() as said:
        async with running(followed):
            await asyncio.sleep(120)
    assert [x["event"] for x in said].count("config.layer_unavailable") == 1


@pytest.mark.parametrize("body", ["", "[]", "{", json.dumps({"name": "x"})])
def test_a_layer_on_disk_that_makes_no_sense_is_no_layer(tmp_path, body):
    (tmp_path / "node-layer.json").write_text(body)

    assert LayerFile(tmp_path).kept() is None
