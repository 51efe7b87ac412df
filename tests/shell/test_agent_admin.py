"""The admin socket and its client, over a real socket, in front of a desk that behaves."""

import asyncio
import json
import os
import socket
import stat
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from agent import client
from agent.admin import CONNECTIONS_LIMIT, REQUEST_LIMIT, AdminServer
from agent.client import ClientError
from support.desk import FakeDesk


@pytest.fixture
def path(tmp_path):
    return tmp_path / "admin.sock"


@asynccontextmanager
async def serving(path, desk=None):
    server = AdminServer(desk or FakeDesk())
    await server.start(path)
    try:
        yield server
    finally:
        await server.close()


async def ask(path, verb, **arguments):
    return await asyncio.to_thread(client.ask, str(path), verb, timeout=5.0, **arguments)


async def say(path, raw):
    """What a careless or hostile program may write; returns the reply as JSON."""
    reader, writer = await asyncio.open_unix_connection(str(path), limit=1 << 20)
    try:
        writer.write(raw)
        await writer.drain()
        async with asyncio.timeout(5):
            line = await reader.readline()
        return json.loads(line)
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("verb", "arguments", "expected"),
    [
        ("status", {}, lambda desk: desk.status()),
        ("members", {}, lambda desk: desk.members()),
        ("egress_list", {}, lambda desk: desk.egress_list()),
        ("egress_show", {"name": "billing"}, lambda desk: desk.egress_list()[:2]),
        ("egress_show", {"name": "2001:db8::40"}, lambda desk: desk.egress_list()[1:2]),
        ("egress_explain", {"name": "192.0.2.40"}, lambda desk: desk.egress_explain("billing")),
        ("config_status", {}, lambda desk: desk.config_status()),
        ("config_show", {"changed_only": True}, lambda _: {"version": 1, "node": {"name": "n1"}}),
        ("ready", {}, lambda _: {"ready": True, "reasons": []}),
    ],
)
async def test_a_read_answers_what_the_desk_says(path, verb, arguments, expected):
    async with serving(path):
        assert await ask(path, verb, **arguments) == expected(FakeDesk())


async def test_drain_and_undrain_reach_the_desk_with_their_arguments(path):
    desk = FakeDesk()
    async with serving(path, desk):
        drained = await ask(path, "drain", wait=True, seconds=1800)
        assert (desk.draining, desk.drain_seconds, drained["carried"]) == (True, 1800.0, [])

        await ask(path, "undrain")
        assert not desk.draining


async def test_a_reload_is_asked_for_in_the_name_of_the_socket(path):
    desk = FakeDesk()
    async with serving(path, desk):
        document = await ask(path, "reload", dry_run=True, seconds=12)

    assert document["result"] == "applied"
    assert desk.reloads == [("socket", True, True, False, 12.0)]


@pytest.mark.parametrize(
    ("verb", "arguments", "part"),
    [
        ("reboot", {}, "reboot"),
        ("status", {"color": "red"}, "color"),
        ("egress_show", {}, "name"),
        ("egress_show", {"name": 7}, "name"),
        ("egress_show", {"name": "x" * 300}, "name"),
        ("egress_show", {"name": "nothing"}, "nothing"),
        ("egress_explain", {"name": "nothing"}, "nothing"),
        ("drain", {"wait": 1}, "wait"),
        ("drain", {"seconds": True}, "seconds"),
        ("drain", {"seconds": -1}, "seconds"),
        ("drain", {"seconds": float("nan")}, "seconds"),
        ("config_show", {"which": "imagined"}, "which"),
        ("config_show", {"which": "configured", "origin": True}, "cannot be read"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused_as_wrong_usage(path, verb, arguments, part):
    desk = FakeDesk()
    async with serving(path, desk):
        with pytest.raises(ClientError, match=part) as refusal:
            await ask(path, verb, **arguments)

    assert refusal.value.code == 2
    assert not desk.draining


@pytest.mark.parametrize(
    "raw",
    [
        b"\n",
        b"status\n",
        b"[]\n",
        b'"status"\n',
        b'{"verb": 3}\n',
        b'{"verb": "status", "arguments": []}\n',
        b'{"verb": "status", "more": 1}\n',
        b"[" * 50_000 + b"\n",
        b"\xff\xfe\n",
    ],
)
async def test_what_is_no_request_gets_an_answer_that_says_so(path, raw):
    async with serving(path):
        reply = await say(path, raw)

    assert reply["ok"] is False
    assert reply["code"] == 2


async def test_a_request_above_the_limit_is_refused(path):
    async with serving(path):
        reply = await say(path, b'{"verb": "' + b"x" * REQUEST_LIMIT + b'"}\n')

    assert reply == {"ok": False, "error": "the request is larger than 64 KiB", "code": 2}


async def test_one_connection_carries_one_request_after_the_other(path):
    async with serving(path):
        reader, writer = await asyncio.open_unix_connection(str(path))
        for verb in ("version", "ready", "nonsense", "status"):
            writer.write(json.dumps({"verb": verb}).encode() + b"\n")
            reply = json.loads(await reader.readline())
            assert reply["ok"] is (verb != "nonsense")
        writer.close()


async def test_connections_beyond_the_limit_are_told_to_come_again(path):
    async with serving(path):
        held = [await asyncio.open_unix_connection(str(path)) for _ in range(CONNECTIONS_LIMIT)]
        try:
            reply = await say(path, b'{"verb": "ready"}\n')
            assert "too many" in reply["error"]
        finally:
            for _, writer in held:
                writer.close()
        await asyncio.sleep(0.05)
        assert (await say(path, b'{"verb": "ready"}\n'))["ok"]


async def test_ten_thousand_rows_arrive_whole(path):
    desk = FakeDesk()
    desk.rows = [{**desk.rows[0], "name": f"e{n}"} for n in range(10_000)]
    async with serving(path, desk):
        rows = await asyncio.to_thread(client.rows, str(path), "egress_list")

    assert [row["name"] for row in rows] == [f"e{n}" for n in range(10_000)]


async def test_a_mistake_of_ours_costs_one_connection_and_not_the_daemon(path):
    desk = FakeDesk()
    desk.members = lambda: 1 // 0
    async with serving(path, desk):
        with pytest.raises(ClientError, match="look into its log"):
            await ask(path, "members")
        assert (await ask(path, "ready"))["ready"]


async def test_a_folder_that_is_not_there_is_made(tmp_path):
    path = tmp_path / "run" / "wayout" / "admin.sock"
    async with serving(path):
        assert (await ask(path, "ready"))["ready"]


async def test_the_socket_is_for_owner_and_group_and_goes_with_the_server(path):
    async with serving(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert [each.name for each in path.parent.iterdir()] == ["admin.sock"]

    assert not path.exists()


async def test_the_socket_of_a_dead_daemon_is_replaced(path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()
    assert path.exists()

    async with serving(path):
        assert (await ask(path, "ready"))["ready"]


async def test_the_socket_of_a_living_daemon_is_left_alone(path):
    async with serving(path):
        with pytest.raises(OSError, match="another wayout daemon"):
            await AdminServer(FakeDesk()).start(path)
        assert (await ask(path, "ready"))["ready"]


async def test_a_file_in_the_way_is_not_removed(path):
    path.write_text("precious")

    with pytest.raises(OSError, match="no socket"):
        await AdminServer(FakeDesk()).start(path)

    assert path.read_text() == "precious"


async def test_a_path_that_no_socket_can_have_is_refused_with_the_reason(tmp_path):
    with pytest.raises(OSError, match="106 bytes"):
        await AdminServer(FakeDesk()).start(tmp_path / ("x" * 110))


async def test_closing_leaves_the_socket_of_a_successor(path):
    first = AdminServer(FakeDesk())
    await first.start(path)
    path.unlink()
    async with serving(path):
        await first.close()
        assert (await ask(path, "ready"))["ready"]


async def test_moving_to_another_path_serves_both_in_between(path, tmp_path):
    old = AdminServer(FakeDesk())
    await old.start(path)
    async with serving(tmp_path / "new.sock"):
        assert (await ask(path, "ready"))["ready"]
        assert (await ask(tmp_path / "new.sock", "ready"))["ready"]
        await old.close()
        assert not path.exists()
        assert (await ask(tmp_path / "new.sock", "ready"))["ready"]


async def test_closing_does_not_wait_for_a_verb_that_takes_long(path):
    desk = FakeDesk()
    desk.handover = 60.0
    server = AdminServer(desk)
    await server.start(path)
    asking = asyncio.create_task(ask(path, "drain", wait=True))
    await asyncio.wait_for(desk.drained.wait(), 5)

    async with asyncio.timeout(5):
        await server.close()
        with pytest.raises(ClientError, match="hung up"):
            await asking


async def test_a_changing_verb_is_logged_with_who_asked(path):
    with capture_logs() as logged:
        async with serving(path):
            await ask(path, "status")
            await ask(path, "undrain")

    (entry,) = [each for each in logged if each["event"] == "admin.verb_called"]
    assert entry["verb"] == "undrain"
    assert (entry["pid"], entry["uid"]) == (os.getpid(), os.getuid())


def test_no_socket_says_what_to_do(path):
    with pytest.raises(ClientError, match=r"does not exist, start it .* --socket") as trouble:
        client.call(str(path), "status")
    assert trouble.value.code == 1


def test_a_socket_that_nobody_listens_on_says_what_to_do(path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    with pytest.raises(ClientError, match="nobody listens"):
        client.call(str(path), "status")


def test_a_mute_daemon_is_waited_for_no_longer_than_asked(path):
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(path))
        mute.listen()
        with pytest.raises(ClientError, match=r"within 0\.1 s"):
            client.call(str(path), "status", timeout=0.1)


def test_the_environment_names_the_socket(path, monkeypatch):
    monkeypatch.setenv("WAYOUT_SOCKET", str(path))

    with pytest.raises(ClientError, match=str(path)):
        client.call(None, "status")


@pytest.mark.parametrize(
    "reply", [b"", b"what\n", b"[]\n", b'{"ok": true}\n', b'{"ok": true, "data": 1}\n']
)
async def test_a_reply_that_makes_no_sense_is_an_error_of_the_protocol(path, reply):
    async def answer(reader, writer):
        await reader.readline()
        writer.write(reply)
        writer.close()

    async with await asyncio.start_unix_server(answer, str(path)):
        with pytest.raises(ClientError, match=r"makes no sense|hung up"):
            await asyncio.to_thread(client.call, str(path), "status")
