"""Checks against real servers, programs and files, and what is left of them afterwards."""

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import asynccontextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from agent.health import aside
from agent.health.probes import Senses, prober
from config.schema.health import CheckEntry
from egress.model import Interface, Reply

ETH0 = Interface(
    "eth0",
    2,
    "02:00:00:00:00:01",
    carrier=True,
    networks=(ip_network("192.0.2.0/24"),),
    addresses=(),
)
SILENT = Interface("eth1", 3, "02:00:00:00:00:02", carrier=False)
GATEWAY = ip_address("192.0.2.254")


class Lan:
    """A segment on which some addresses answer."""

    def __init__(self, *answering):
        self.answering = answering

    async def ask(self, questions):
        return tuple(
            Reply(
                each,
                frozenset({"02:00:00:00:00:fe"} if each.ip in self.answering else ()),
                control=None,
                carrier=True,
                asked=0.0,
                heard=0.1,
            )
            for each in questions
        )


def senses(*links, lan=None, gateways=(GATEWAY,)):
    return Senses(
        links=lambda: links,
        interfaces=lambda: links,
        gateways=lambda: {"eth0": gateways} if gateways else {},
        lan=lan or Lan(),
    )


async def ask(around=None, **fields):
    check = CheckEntry.model_validate({"timeout": "2s", **fields})
    return await prober("it", check, around or senses(ETH0))()


@asynccontextmanager
async def serving(answer, **more):
    """A server that sends `answer` to whoever says something; its port."""
    talking = []

    async def talk(reader, writer):
        over = asyncio.Event()
        talking.append(over)
        with suppress(OSError):
            await reader.read(1)
            writer.write(answer)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        over.set()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, **more)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.sleep(0.05)  # what was accepted last begins to talk
        for over in talking:
            await over.wait()


def reply(status, body=b"fine", *headers):
    head = "\r\n".join([f"HTTP/1.1 {status} x", f"Content-Length: {len(body)}", *headers])
    return f"{head}\r\n\r\n".encode() + body


# -- links ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("links", "interface", "passes"),
    [
        ([ETH0], None, True),
        ([ETH0, SILENT], None, False),
        ([ETH0, SILENT], "eth0", True),
        ([ETH0, SILENT], "eth1", False),
        ([ETH0], "eth7", False),
        ([], None, False),
    ],
)
async def test_a_carrier_check_wants_every_link_that_it_is_about(links, interface, passes):
    more = {} if interface is None else {"interface": interface}

    assert (await ask(senses(*links), type="carrier", **more)).passed is passes


async def test_a_gateway_passes_if_one_of_them_answers():
    two = (GATEWAY, ip_address("192.0.2.253"))
    one = senses(ETH0, lan=Lan(two[1]), gateways=two)
    none = senses(ETH0, lan=Lan(), gateways=two)

    assert (await ask(one, type="gateway")).passed
    assert "192.0.2.254, 192.0.2.253" in (await ask(none, type="gateway")).detail
    assert "no gateway" in (await ask(senses(ETH0, gateways=()), type="gateway")).detail


async def test_an_address_that_is_named_is_asked_on_its_own_subnet():
    there = senses(ETH0, lan=Lan(ip_address("192.0.2.9")), gateways=())

    assert (await ask(there, type="gateway", address="192.0.2.9")).passed
    assert not (await ask(there, type="gateway", address="198.51.100.9")).passed


# -- servers -------------------------------------------------------------------------------


async def test_tcp_passes_where_somebody_listens_and_fails_where_nobody_does():
    async with serving(b"") as port:
        assert (await ask(type="tcp", target=f"127.0.0.1:{port}")).passed
        assert (await ask(type="tcp", target=f"localhost:{port}")).passed
    refused = await ask(type="tcp", target=f"127.0.0.1:{port}")

    assert (refused.passed, "refused" in refused.detail) == (False, True)


async def test_tcp_gives_up_in_time_on_a_port_that_swallows():
    # A listener whose queue is full drops what comes: that is what a dead firewall looks like.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        held = [socket.socket() for _ in range(4)]
        for each in held:
            each.settimeout(0.0)
            each.connect_ex(("127.0.0.1", port))
        began = time.monotonic()
        result = await ask(type="tcp", target=f"127.0.0.1:{port}", timeout="200ms")
        for each in held:
            each.close()

    assert not result.passed
    assert time.monotonic() - began < 1.0


@pytest.mark.parametrize(
    ("answer", "more", "passes"),
    [
        (reply(200), {}, True),
        (reply(302, b"", "Location: http://127.0.0.1:1/"), {}, True),
        (reply(500), {}, False),
        (reply(404), {"status": [404]}, True),
        (reply(200), {"status": [204]}, False),
        (reply(200, b"all is well"), {"contains": "is well"}, True),
        (reply(200, b"all is bad"), {"contains": "is well"}, False),
        (b"nonsense\r\n\r\n", {}, False),
        (b"", {}, False),
    ],
)
async def test_http_is_judged_by_status_and_text(answer, more, passes):
    async with serving(answer) as port:
        result = await ask(type="http", url=f"http://localhost:{port}/ok", **more)

    assert result.passed is passes, result


async def test_http_gives_up_in_time_on_a_server_that_says_nothing():
    over = asyncio.Event()

    async def mute(reader, writer):
        await reader.read()
        writer.close()
        await writer.wait_closed()
        over.set()

    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        began = time.monotonic()
        result = await ask(type="http", url=f"http://127.0.0.1:{port}/", timeout="200ms")
        await over.wait()

    assert "no answer in 0.2 s" in result.detail
    assert time.monotonic() - began < 1.0


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    argv += ["-nodes", "-keyout", "key", "-out", "cert", "-days", "2", "-subj", "/CN=localhost"]
    argv += ["-addext", "subjectAltName=DNS:localhost"]
    try:
        subprocess.run(argv, cwd=folder, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs openssl")
    return folder / "cert", folder / "key"


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words):
        pass


class Quiet(ThreadingHTTPServer):
    """Clients that go away during the handshake are no news."""

    def handle_error(self, request, client_address):
        pass


@pytest.fixture
def secured(certificate):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    with Quiet(("127.0.0.1", 0), Page) as server:
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=server.serve_forever, args=(0.02,)).start()
        yield f"https://localhost:{server.server_port}/"
        server.shutdown()


async def test_https_is_verified_unless_that_is_switched_off(certificate, secured):
    stranger = await ask(type="http", url=secured)
    known = await ask(type="http", url=secured, ca_file=str(certificate[0]))
    blind = await ask(type="http", url=secured, verify=False)
    missing = await ask(type="http", url=secured, ca_file="/nowhere/ca.pem")

    assert (stranger.passed, known.passed, blind.passed) == (False, True, True)
    assert "certificate" in stranger.detail.lower()
    assert missing.detail == "No such file or directory"


# -- programs ------------------------------------------------------------------------------


def shell(text):
    return {"type": "exec", "command": ["/bin/sh", "-c", text]}


@pytest.mark.parametrize(
    ("text", "passes", "words"),
    [
        ("exit 0", True, ""),
        ("echo; echo all is well", True, "all is well"),
        ("echo no route >&2; exit 3", False, "exit code 3: no route"),
        ("kill -9 $$", False, "ended by signal 9"),
        ("printf '\\033[2Jx\\000y'; exit 1", False, "exit code 1: [2Jxy"),
        ('test "$WAYOUT_CHECK" = it && test "$PWD" = /', True, ""),
        ('test -z "$SECRET"', True, ""),
    ],
)
async def test_a_program_is_judged_by_its_exit_code(monkeypatch, text, passes, words):
    monkeypatch.setenv("SECRET", "x")
    result = await ask(**shell(text))

    assert (result.passed, result.detail) == (passes, words)


async def test_arguments_reach_the_program_as_they_are():
    strange = "$(touch gone); *"
    result = await ask(type="exec", command=["/bin/echo", strange])

    assert result.detail == strange


async def test_a_program_that_cannot_be_started_is_a_failure(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("x")

    assert "No such file" in (await ask(type="exec", command=["/no/such/program"])).detail
    assert "Permission denied" in (await ask(type="exec", command=[str(plain)])).detail


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def pid_in(path):
    for _ in range(100):
        if path.exists() and path.read_text().strip():
            return int(path.read_text())
        await asyncio.sleep(0.02)
    raise AssertionError("the child did not tell its number")


async def gone(pid):
    for _ in range(50):
        if not alive(pid):
            return True
        await asyncio.sleep(0.02)
    return False


async def test_a_program_that_takes_too_long_is_killed_with_its_children(tmp_path):
    told = tmp_path / "pid"
    text = f"trap '' TERM INT; sleep 60 & echo $! > {told}; wait; sleep 60"
    began = time.monotonic()
    result = await ask(**shell(text), timeout="300ms")

    assert result.detail == "killed after 0.3 s"
    assert time.monotonic() - began < 1.5
    assert await gone(await pid_in(told))


async def test_a_child_in_the_background_neither_delays_the_verdict_nor_stays(tmp_path):
    told = tmp_path / "pid"
    began = time.monotonic()
    result = await ask(**shell(f"sleep 60 & echo $! > {told}; echo done"))

    assert (result.passed, result.detail) == (True, "done")
    assert time.monotonic() - began < 1.0
    assert await gone(await pid_in(told))


async def test_a_program_may_say_more_than_a_pipe_holds():
    result = await ask(**shell("echo first; head -c 3000000 /dev/zero; echo last"))

    assert (result.passed, result.detail) == (True, "first")


async def test_a_check_that_is_cancelled_takes_its_program_along(tmp_path):
    told = tmp_path / "pid"
    asking = asyncio.create_task(ask(**shell(f"echo $$ > {told}; sleep 60")))
    pid = await pid_in(told)
    asking.cancel()
    await asyncio.wait([asking])

    assert await gone(pid)


def descriptors():
    return len([*Path("/proc/self/fd").iterdir()])


async def test_rounds_leave_no_descriptors_behind():
    await ask(**shell("true"))
    before = descriptors()
    for text in ("true", "exit 1", "head -c 100000 /dev/zero", "sleep 9"):
        await ask(**shell(text), timeout="100ms")
    await ask(type="exec", command=["/no/such/program"])

    assert descriptors() == before


# -- files ---------------------------------------------------------------------------------


async def test_a_file_is_judged_by_being_there_by_its_text_and_its_age(tmp_path):
    path = tmp_path / "flag"
    missing = await ask(type="file", path=str(path))
    unwanted_missing = await ask(type="file", path=str(path), absent=True)
    path.write_text("state: MASTER\n")
    verdicts = [
        (await ask(type="file", path=str(path), **more)).passed
        for more in (
            {},
            {"contains": "MASTER"},
            {"contains": "BACKUP"},
            {"absent": True},
            {"max_age": "1m"},
        )
    ]
    os.utime(path, (0, time.time() - 120))
    old = await ask(type="file", path=str(path), max_age="1m")

    assert (missing.passed, missing.detail) == (False, "does not exist")
    assert unwanted_missing.passed
    assert verdicts == [True, True, False, False, True]
    assert old.detail in {"changed 120 s ago", "changed 121 s ago"}


async def test_a_fifo_in_the_place_of_a_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo")

    assert not (await ask(type="file", path=str(tmp_path / "fifo"), contains="x")).passed


async def test_a_call_that_hangs_is_not_followed_by_another():
    let_go, calls = threading.Event(), []

    def hang():
        calls.append(1)
        let_go.wait(10)

    away = aside.Aside()
    with pytest.raises(TimeoutError):
        await away.call(hang, 0.05)
    with pytest.raises(aside.StuckError):
        await away.call(hang, 0.05)
    let_go.set()
    await asyncio.sleep(0.1)

    assert await away.call(lambda: 7, 1.0) == 7
    assert calls == [1]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_is_left_of_all_this():
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()

    assert [pid for pid in children if "sleep" in Path(f"/proc/{pid}/cmdline").read_text()] == []
    assert signal.getsignal(signal.SIGCHLD) in {signal.SIG_DFL, None}
