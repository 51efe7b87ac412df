"""Signals sent to this very process while its loop runs."""

import asyncio
import os
import signal
from contextlib import contextmanager

import pytest

from agent.signals import Signals


class Daemon:
    """What signals may do to a daemon, written down in order."""

    def __init__(self):
        self.wishes = []
        self.signals = Signals(
            stop=lambda keep: self.wishes.append("keep" if keep else "stop"),
            reload=lambda: self.wishes.append("reload"),
            leave=lambda code: self.wishes.append(("leave", code)),
        )


@contextmanager
def listening(loop):
    daemon = Daemon()
    daemon.signals.install(loop)
    try:
        yield daemon
    finally:
        daemon.signals.remove(loop)


async def sent(*numbers):
    for number in numbers:
        os.kill(os.getpid(), number)
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("number", "wish"),
    [
        (signal.SIGTERM, "stop"),
        (signal.SIGINT, "stop"),
        (signal.SIGUSR2, "keep"),
        (signal.SIGHUP, "reload"),
    ],
)
async def test_each_signal_is_one_wish(number, wish):
    with listening(asyncio.get_running_loop()) as daemon:
        await sent(number)

    assert daemon.wishes == [wish]


async def test_a_second_stop_leaves_at_once():
    with listening(asyncio.get_running_loop()) as daemon:
        await sent(signal.SIGTERM, signal.SIGTERM)

    assert daemon.wishes == ["stop", ("leave", 1)]


async def test_a_restart_wished_while_stopping_changes_nothing():
    with listening(asyncio.get_running_loop()) as daemon:
        await sent(signal.SIGTERM, signal.SIGUSR2, signal.SIGHUP)

    assert daemon.wishes == ["stop"]


async def test_a_stop_during_a_restart_leaves_at_once():
    with listening(asyncio.get_running_loop()) as daemon:
        await sent(signal.SIGUSR2, signal.SIGTERM)

    assert daemon.wishes == ["keep", ("leave", 1)]


async def test_a_hang_up_that_came_too_early_is_delivered_once_somebody_listens():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    # To this thread: others, of the test runner, do not hold it back.
    signal.raise_signal(signal.SIGHUP)
    signal.raise_signal(signal.SIGHUP)

    with listening(asyncio.get_running_loop()) as daemon:
        await asyncio.sleep(0.02)

    assert daemon.wishes == ["reload"]
