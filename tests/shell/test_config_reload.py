"""Reloads on real files: taken whole, refused whole, and explained."""

from pathlib import Path
from random import Random

import pytest
from structlog.testing import capture_logs

from config.load import load
from config.report import Result
from config.transaction import Reloader
from support.settings import Part

GOOD = """\
version: 1
node: {{name: n1}}
egress:
  egresses:
    e4: {{egress_ip: 10.77.0.201}}
    e6: {{egress_ip: "2001:db8:77::201"}}
    e7: {{egress_ip: 10.77.0.207}}
{more}
"""
START = GOOD.format(more="")


class Desk:
    """A main file, the reloader on it, and the parts that follow it."""

    def __init__(self, folder):
        self.path = folder / "config.yaml"
        self.write(START)
        loaded = load(self.path, environ={})
        self.reloader = Reloader(self.path, loaded, environ={}, clock=lambda: 1.5)
        self.parts = []

    def write(self, text):
        beside = self.path.with_suffix(".new")
        beside.write_bytes(text if isinstance(text, bytes) else text.encode())
        beside.replace(self.path)

    def part(self, name, sections, **more):
        part = Part(name, sections, value=self.reloader.settings, **more)
        self.reloader.subscribe(part)
        self.parts.append(part)
        return part

    async def reload(self, text, **more):
        self.write(text)
        return await self.reloader.reload("test", **more)


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


async def test_a_live_change_reaches_the_parts_whom_it_concerns_and_no_other(desk):
    gossip, egress = desk.part("gossip", ["gossip"]), desk.part("egress", ["egress", "node"])

    report = await desk.reload(GOOD.format(more="gossip: {fanout: 4}"))

    assert (report.result, report.code, report.generation) == (Result.APPLIED, 0, 2)
    assert gossip.steps == ["prepare", "commit", "finalize"]
    assert gossip.value.gossip.fanout == desk.reloader.settings.gossip.fanout == 4
    assert egress.steps == []


async def test_the_same_again_is_unchanged_and_asks_nobody(desk):
    part = desk.part("all", ["gossip", "egress", "node"])

    report = await desk.reload(START + "# a remark\n")

    assert (report.result, report.generation) == (Result.UNCHANGED, 1)
    assert part.steps == []
    assert not desk.reloader.file_differs


async def test_another_order_of_the_same_egresses_is_unchanged(desk):
    rows = START.splitlines()
    turned = [*rows[:4], *reversed(rows[4:7]), *rows[7:]]

    assert (await desk.reload("\n".join(turned) + "\n")).result is Result.UNCHANGED


async def test_what_needs_a_restart_waits_while_the_rest_is_applied(desk):
    part = desk.part("gossip", ["gossip", "node"])

    report = await desk.reload(GOOD.format(more="gossip: {bind_port: 8000, fanout: 4}"))

    assert (report.result, report.code) == (Result.APPLIED, 3)
    assert [each.to_plain() for each in report.pending_restart] == [
        {
            "path": "gossip.bind_port",
            "running": 7955,
            "configured": 8000,
            "reason": "the sockets of a running member cannot move",
        }
    ]
    assert part.value.gossip.bind_port == desk.reloader.settings.gossip.bind_port == 7955
    assert desk.reloader.settings.gossip.fanout == 4


async def test_going_back_clears_what_waited(desk):
    await desk.reload(GOOD.format(more="gossip: {bind_port: 8000}"))
    report = await desk.reload(START)

    assert (report.result, report.code) == (Result.UNCHANGED, 0)
    assert desk.reloader.pending_restart == ()


async def test_a_new_node_name_waits_and_brings_nothing_of_that_node_with_it(desk):
    await desk.reload(
        START.replace("name: n1", "name: n9") + "nodes: {n9: {node: {weight: 9.0}}}\n"
    )

    assert desk.reloader.settings.node.name == "n1"
    assert desk.reloader.settings.node.weight == 1.0
    assert [each.path for each in desk.reloader.pending_restart] == ["node.name"]


async def test_a_socket_that_a_part_can_move_does_not_wait(desk):
    more = GOOD.format(more="api: {http_listen: off}")
    assert (await desk.reload(more, dry_run=True)).code == 3

    desk.part("http", ["api"], rebinds=["api.http_listen"])

    assert (await desk.reload(more)).code == 0
    assert desk.reloader.settings.api.http_listen is None


async def test_what_a_cluster_agrees_on_is_refused_while_it_runs(desk):
    report = await desk.reload(START.replace("name: n1", "name: n1, cluster: other"))

    assert report.result is Result.REJECTED
    (only,) = report.problems
    assert "cannot change from 'wayout' to 'other' while the cluster runs" in str(only)


async def test_a_trial_tells_everything_and_changes_nothing(desk):
    part = desk.part("gossip", ["gossip"])

    report = await desk.reload(GOOD.format(more="gossip: {fanout: 4}"), dry_run=True)

    assert (report.result, report.dry_run) == (Result.APPLIED, True)
    assert [each["path"] for each in report.to_document()["changes"]] == ["gossip.fanout"]
    assert (part.steps, desk.reloader.settings.gossip.fanout) == ([], 3)
    assert desk.reloader.last.trigger == "start"


async def test_a_part_that_refuses_lets_all_others_forget_it(desk):
    first = desk.part("first", ["gossip"])
    desk.part("second", ["gossip"], fails="prepare")
    last = desk.part("last", ["gossip"])

    report = await desk.reload(GOOD.format(more="gossip: {fanout: 4}"))

    assert (report.result, report.code, report.generation) == (Result.REJECTED, 2, 1)
    assert "second could not prepare it: no prepare today" in str(report.problems[0])
    assert first.steps == ["prepare", "rollback"]
    assert last.steps == []
    assert desk.reloader.settings.gossip.fanout == 3
    assert desk.reloader.stale


async def test_a_part_that_fails_while_it_changes_takes_all_back_itself_included(desk):
    first = desk.part("first", ["gossip"])
    second = desk.part("second", ["gossip"], fails="commit")

    report = await desk.reload(GOOD.format(more="gossip: {fanout: 4}"))

    assert (report.result, report.code) == (Result.ROLLED_BACK, 5)
    assert [part.steps[-1] for part in (first, second)] == ["rollback", "rollback"]
    assert first.value == second.value == desk.reloader.settings
    assert desk.reloader.settings.gossip.fanout == 3


async def test_a_roll_back_that_fails_is_admitted(desk):
    class Stubborn(Part):
        def rollback(self, token):
            super().rollback(token)
            raise OSError("stuck")

    stubborn = Stubborn("stubborn", ["gossip"], value=None)
    first = desk.part("first", ["gossip"])
    desk.reloader.subscribe(stubborn)
    desk.part("last", ["gossip"], fails="commit")

    report = await desk.reload(GOOD.format(more="gossip: {fanout: 4}"))

    assert report.inconsistent
    assert "stubborn could not roll it back: stuck" in str(report.problems[-1])
    assert first.steps[-1] == "rollback"


async def test_a_bug_in_a_part_undoes_the_change_and_is_not_hidden(desk):
    class Broken(Part):
        def commit(self, token):
            super().commit(token)
            raise AttributeError("a bug")

    first = desk.part("first", ["gossip"])
    desk.reloader.subscribe(Broken("broken", ["gossip"]))

    with pytest.raises(AttributeError):
        await desk.reload(GOOD.format(more="gossip: {fanout: 4}"))
    assert first.steps[-1] == "rollback"
    assert desk.reloader.settings.gossip.fanout == 3


async def test_a_failing_farewell_to_the_old_settings_does_not_undo_the_new(desk):
    desk.part("gossip", ["gossip"], fails="finalize")

    with capture_logs() as said:
        report = await desk.reload(GOOD.format(more="gossip: {fanout: 4}"))

    assert report.result is Result.APPLIED
    assert "config.finish_failed" in [each["event"] for each in said]


async def test_after_a_refusal_the_old_content_is_recognised(desk):
    await desk.reload("egress: [\n")
    assert desk.reloader.stale

    report = await desk.reload(START)

    assert report.result is Result.UNCHANGED
    assert not desk.reloader.stale


async def test_after_a_part_refused_the_same_content_is_tried_again(desk):
    part = desk.part("gossip", ["gossip"], fails="prepare")
    text = GOOD.format(more="gossip: {fanout: 4}")
    await desk.reload(text)
    part.fails = None

    assert (await desk.reload(text)).result is Result.APPLIED


async def test_most_egresses_do_not_go_by_accident(desk):
    cut = "version: 1\nnode: {name: n1}\n"

    report = await desk.reload(cut)
    assert "drops 3 of 3 egresses (e4, e6, e7)" in str(report.problems[0])
    assert len(desk.reloader.settings.egress.egresses) == 3

    assert (await desk.reload(cut, allow_removal=True)).result is Result.APPLIED
    assert not desk.reloader.settings.egress.egresses


BODIES = [
    b"egress: [\n",
    START.replace("egress:", "egres:", 1).encode(),
    START.replace("10.77.0.201", "10.77.0.999").encode(),
    START.replace("10.77.0.201", "10.77.0.0/33").encode(),
    START.replace("e7:", "e4:").encode(),
    START.encode() + b"gossip: [a, b]\n",
    START.replace("  egresses:", "\tegresses:").encode(),
    Random(7).randbytes(4096),
    b"",
    None,
    Path,
]


@pytest.mark.parametrize("body", BODIES)
async def test_an_invalid_body_leaves_everything_as_it_was_and_the_next_good_one_is_taken(
    desk, body
):
    part = desk.part("all", ["gossip", "egress", "node"])
    before = desk.reloader.settings
    if body is None or body is Path:
        desk.path.unlink()
        if body is Path:
            desk.path.mkdir()
        report = await desk.reloader.reload("test")
    else:
        report = await desk.reload(body)

    assert report.result is Result.REJECTED
    assert all(str(desk.path) in str(each) for each in report.problems)
    assert desk.reloader.settings is before
    assert part.steps == []

    if body is Path:
        desk.path.rmdir()
    assert (await desk.reload(START)).result is Result.UNCHANGED
    more = START.replace("    e7:", "    e8: {egress_ip: 10.77.0.208}\n    e7:")
    assert (await desk.reload(more)).result is Result.APPLIED
    assert len(part.value.egress.egresses) == 4


async def test_a_refusal_is_logged_once_for_each_content(desk):
    with capture_logs() as said:
        await desk.reload("egress: [\n")
        await desk.reload("egress: [\n")
        await desk.reload("egress: {\n")

    assert [each["event"] for each in said] == ["config.rejected", "config.rejected"]


async def test_the_status_is_what_the_contract_says(desk):
    await desk.reload(GOOD.format(more="gossip: {bind_port: 8000, fanout: 4}"))
    status = desk.reloader.status()

    assert status["generation"] == 2
    assert status["digest"] == desk.reloader.digests.cluster
    assert status["stale"] is False
    assert status["pending_restart"][0]["path"] == "gossip.bind_port"
    assert status["last_reload"] == {
        "at": "1970-01-01T00:00:01.500Z",
        "trigger": "test",
        "result": "applied",
        "errors": [],
    }


async def test_running_and_configured_are_shown_apart(desk):
    await desk.reload(GOOD.format(more="gossip: {bind_port: 8000}"))
    running = desk.reloader.show(which="running", origin=True)
    configured = desk.reloader.show(which="configured")

    assert running["settings"]["gossip"]["bind_port"] == 7955
    assert "bind_port: 7955  # until the restart" in running["yaml"]
    assert configured["settings"]["gossip"]["bind_port"] == 8000


async def test_the_digest_of_what_runs_does_not_count_what_waits(desk):
    before = desk.reloader.digests.cluster
    await desk.reload(GOOD.format(more="gossip: {bind_port: 8000}"))

    assert desk.reloader.digests.cluster == before


async def test_random_edits_leave_the_last_good_settings_running(desk):
    """Whatever is written, what runs is the last content that was taken."""
    rng = Random(3)
    part = desk.part("all", ["gossip", "egress", "node", "logging"])
    good = [GOOD.format(more=f"gossip: {{fanout: {n}}}") for n in range(1, 6)]
    last = desk.reloader.settings
    for _ in range(60):
        text = rng.choice(good)
        if rng.random() < 0.5:
            cut = rng.randrange(len(text))
            text = text[:cut] + rng.choice(["", "\t", "[", "x", ": ", "\0"]) + text[cut + 1 :]
        part.fails = rng.choice([None, None, "prepare", "commit"])
        report = await desk.reload(text)
        if report.result is Result.APPLIED:
            last = part.value
        assert desk.reloader.settings == last
        if report.result is Result.APPLIED and not report.pending_restart:
            assert last == load(desk.path, environ={}).settings


async def test_many_reloads_leave_nothing_open(desk):
    desk.part("gossip", ["gossip"])
    before = descriptors()
    for number in range(100):
        await desk.reload(GOOD.format(more=f"gossip: {{fanout: {1 + number % 5}}}"))

    assert descriptors() <= before + 2
