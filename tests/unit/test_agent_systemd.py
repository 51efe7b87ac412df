"""Notifications as a service manager would read them from its socket."""

import asyncio
import os
import re
import socket
import time

import pytest

from agent.systemd import Notifier


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    """A service manager: its socket, and what to put into NOTIFY_SOCKET."""
    path = str(tmp_path / "notify")
    name = path if request.param == "path" else f"@wayout-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(name.replace("@", "\0"))
        heard.settimeout(2)
        yield heard, name


def test_start_and_stop_are_told_with_a_status(manager):
    heard, name = manager
    notifier = Notifier(name)

    notifier.ready("3 members,\n2 addresses")
    notifier.status("idle")
    notifier.stopping()
    notifier.close()

    assert heard.recv(4096) == b"READY=1\nSTATUS=3 members, 2 addresses"
    assert heard.recv(4096) == b"STATUS=idle"
    assert heard.recv(4096) == b"STOPPING=1\nSTATUS=stopping"


def test_a_reload_is_announced_in_one_datagram_with_the_monotonic_time(manager):
    heard, name = manager
    notifier = Notifier(name)
    notifier.ready("")
    heard.recv(4096)

    before = time.monotonic_ns() // 1000
    notifier.reloading()
    after = time.monotonic_ns() // 1000
    notifier.ready("generation 2, applied")
    notifier.close()

    told = re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=(\d+)\nSTATUS=reloading", heard.recv(4096))
    assert told is not None
    assert before <= int(told[1]) <= after
    assert heard.recv(4096) == b"READY=1\nSTATUS=generation 2, applied"


def test_a_reload_before_the_start_is_over_is_not_announced(manager):
    heard, name = manager
    notifier = Notifier(name)

    notifier.reloading()
    notifier.ready("")
    notifier.close()

    assert heard.recv(4096).startswith(b"READY=1")


@pytest.mark.parametrize("address", [None, "", "vsock:2:1", "/nonexistent/notify", "@nobody-here"])
def test_nobody_listening_is_no_error(address):
    notifier = Notifier(address)

    notifier.ready("up")
    notifier.stopping()
    notifier.close()
    notifier.status("afterwards")


def test_a_manager_that_does_not_read_holds_nothing_up(manager):
    _, name = manager
    notifier = Notifier(name)

    begun = time.monotonic()
    for _ in range(500):
        notifier.status("busy")
    notifier.close()

    assert time.monotonic() - begun < 2


def test_the_environment_is_read_once_and_not_left_to_children():
    environ = {"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}

    notifier = Notifier.of(environ)
    notifier.close()

    assert notifier.watchdog == 15.0
    assert environ == {}


@pytest.mark.parametrize(
    "environ", [{}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}]
)
def test_a_watchdog_that_is_not_ours_is_not_fed(environ):
    assert Notifier.of(environ).watchdog is None


async def test_the_watchdog_is_fed_until_the_daemon_is_unwell(manager):
    heard, name = manager
    heard.settimeout(0)
    notifier = Notifier(name, watchdog=0.02)
    health = {"well": True}

    part = asyncio.create_task(notifier.run(lambda: health["well"]))
    await asyncio.sleep(0.1)
    health["well"] = False
    fed = _drain(heard)
    await asyncio.sleep(0.1)
    starved = _drain(heard)
    part.cancel()
    await asyncio.wait([part])
    notifier.close()

    assert fed
    assert set(fed) == {b"WATCHDOG=1"}
    assert starved == []


async def test_without_a_watchdog_the_part_stays_until_it_is_cancelled():
    part = asyncio.create_task(Notifier(None).run())

    await asyncio.sleep(0.01)

    assert not part.done()
    part.cancel()
    await asyncio.wait([part])


def _drain(heard):
    found = []
    while True:
        try:
            found.append(heard.recv(4096))
        except BlockingIOError:
            return found
