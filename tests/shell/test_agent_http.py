"""The HTTP listener as curl, a browser, Prometheus and a careless client meet it."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from base64 import b64encode
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import aiohttp
import pytest

from agent.http import CONNECTIONS_LIMIT, PAGE, HttpServer
from agent.metrics import Metrics
from support.commands import run
from support.desk import FakeDesk

BROWSER = Path(__file__).parents[1] / "support" / "page.js"


@asynccontextmanager
async def serving(desk=None, *, host="127.0.0.1", **options):
    server = HttpServer(desk or FakeDesk(), Metrics(), **options)
    await server.start(host, 0)
    try:
        yield server
    finally:
        await server.close()


@asynccontextmanager
async def asking(server, method, path, **options):
    timeout = aiohttp.ClientTimeout(total=5)
    async with (
        aiohttp.ClientSession(f"http://127.0.0.1:{server.port}", timeout=timeout) as session,
        session.request(method, path, **options) as answer,
    ):
        yield answer


async def get(server, path):
    async with asking(server, "GET", path) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/status", lambda desk: desk.status()),
        ("/api/v1/members", lambda desk: desk.members()),
        ("/api/v1/egress", lambda desk: desk.egress_list()),
        ("/api/v1/history", lambda desk: desk.history(1000)),
        ("/api/v1/config", lambda _: {"version": 1, "node": {"name": "n1", "cluster": "wayout"}}),
        ("/readyz", lambda _: {"ready": True, "reasons": []}),
    ],
)
async def test_the_api_says_what_the_desk_says(path, expected):
    async with serving() as server, asking(server, "GET", path) as answer:
        assert answer.status == 200
        assert answer.content_type == "application/json"
        assert await answer.json() == expected(FakeDesk())


async def test_a_node_that_is_not_ready_says_why_and_still_lives():
    desk = FakeDesk()
    desk.unready = ["not_joined", "not_reconciled"]
    async with serving(desk) as server:
        status, text = await get(server, "/readyz")
        assert (status, json.loads(text)["reasons"]) == (503, ["not_joined", "not_reconciled"])
        assert await get(server, "/healthz") == (200, "ok\n")


async def test_metrics_are_prometheus_text():
    async with serving() as server, asking(server, "GET", "/metrics") as answer:
        text = await answer.text()

    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    assert 'wayout_build_info{version="' in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/", "/api/v1/config", "/healthz", "/metrics"])
async def test_nothing_can_be_changed(method, path):
    async with serving() as server, asking(server, method, path, data=b"x" * 1000) as answer:
        assert answer.status == 405
        assert answer.headers["Allow"] == "GET, HEAD"


async def test_head_is_get_without_a_body():
    async with serving() as server, asking(server, "HEAD", "/api/v1/status") as answer:
        assert answer.status == 200
        assert int(answer.headers["Content-Length"]) > 100
        assert await answer.read() == b""


@pytest.mark.parametrize("path", ["/api", "/api/v1/", "/api/v1/drain", "/page/index.html", "/../x"])
async def test_other_paths_are_nowhere(path):
    async with serving() as server:
        assert (await get(server, path))[0] == 404


async def test_a_query_is_of_no_matter():
    async with serving() as server:
        assert (await get(server, "/healthz?x=1"))[0] == 200


async def test_the_page_needs_nothing_from_elsewhere_and_allows_only_itself():
    async with serving() as server, asking(server, "GET", "/") as answer:
        page = await answer.text()
        policy = answer.headers["Content-Security-Policy"]

    assert answer.content_type == "text/html"
    assert not re.search(r"https?://|src=|<link|innerHTML|eval\(", page)
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert len(re.findall(r"style=|onclick|onload", page)) == 0
    assert set(re.findall(r'at\("(\w+)"\)|fill\("(\w+)"', page)) <= {
        (i, "") for i in re.findall(r'id="(\w+)"', page)
    } | {("", i) for i in re.findall(r'id="(\w+)"', page)}


async def test_every_answer_wears_the_headers_of_caution():
    async with serving() as server:
        for path in ("/", "/api/v1/status", "/nowhere", "/metrics"):
            async with asking(server, "GET", path) as answer:
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["X-Frame-Options"] == "DENY"
                assert answer.headers["Cache-Control"] == "no-store"
                assert answer.headers["Server"] == "wayout"
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


async def test_a_listener_for_metrics_shows_nothing_else():
    async with serving(metrics_only=True) as server:
        assert (await get(server, "/metrics"))[0] == 200
        assert (await get(server, "/healthz"))[0] == 200
        for path in ("/", "/api/v1/status", "/api/v1/config", "/readyz"):
            assert (await get(server, path))[0] == 404


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 10_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"A: a\r\n" * 200 + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    ],
)
async def test_what_is_too_large_or_no_http_is_refused(raw):
    async with serving() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(raw)
        async with asyncio.timeout(5):
            answer = await reader.read(12)
        writer.close()
        assert answer == b"HTTP/1.0 400"
        assert (await get(server, "/healthz"))[0] == 200


async def test_clients_that_say_nothing_keep_nobody_out():
    async with serving() as server:
        mute = [
            await asyncio.open_connection("127.0.0.1", server.port)
            for _ in range(CONNECTIONS_LIMIT + 20)
        ]
        try:
            assert (await get(server, "/healthz"))[0] == 200
            reader, _ = mute[0]
            async with asyncio.timeout(5):
                assert await reader.read(1) == b""
        finally:
            for _, writer in mute:
                writer.close()


async def test_a_change_of_address_serves_the_new_one_before_the_old_one_ends():
    desk = FakeDesk()
    async with serving(desk) as old, serving(desk) as new:
        assert (await get(old, "/healthz"))[0] == (await get(new, "/healthz"))[0] == 200
        port = old.port
        await old.close()
        assert (await get(new, "/healthz"))[0] == 200
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)


async def test_an_address_in_use_cannot_be_had_twice():
    async with serving() as server:
        with pytest.raises(OSError, match="in use"):
            await HttpServer(FakeDesk(), Metrics()).start("127.0.0.1", server.port)


async def test_many_rows_leave_the_loop_its_turns():
    desk = FakeDesk()
    desk.rows = [{**desk.rows[0], "name": f"e{n}"} for n in range(5_000)]
    async with serving(desk) as server, asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(get(server, "/api/v1/egress"))
        turns = 0
        while not asked.done():
            await asyncio.sleep(0)
            turns += 1

    assert len(json.loads(asked.result()[1])) == 5_000
    assert turns > 25


def test_aiohttp_is_loaded_only_when_a_listener_starts():
    code = "import sys, agent.http; print('aiohttp' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert told.stdout == "False\n"


def shown(tmp_path, documents):
    file = tmp_path / "documents.json"
    file.write_text(json.dumps(documents))
    done = run("node", str(BROWSER), str(PAGE), str(file))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_the_page_draws_the_documents_of_the_api(tmp_path):
    desk = FakeDesk()
    desk.draining = True
    documents = {
        "/api/v1/status": desk.status(),
        "/api/v1/members": desk.members(),
        "/api/v1/egress": desk.egress_list(),
    }

    page = shown(tmp_path, documents)

    assert page["title"] == "n1: draining"
    assert "2 alive, 1 suspect, 0 dead" in page["summary"]
    assert page["notes"] == "not eligible: draining"
    assert page["refreshed"].startswith("As of ")
    assert page["egress"][0][:4] == ["billing", "192.0.2.40", "n1", "n3"]
    assert page["egress"][2][4] == "conflict: 02:00:00:00:00:99"
    assert [row[2] for row in page["members"]] == ["alive", "suspect", "alive"]
    assert page["refreshes"] == 1


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_the_page_says_when_nobody_answers_and_tries_again(tmp_path):
    page = shown(tmp_path, {})

    assert page["refreshed"] == "No answer (status: 404), what is shown is old"
    assert page["refreshes"] == 1
