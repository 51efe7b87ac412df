"""Profiles and markers for the whole suite."""

import asyncio
import os
import shutil
import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", max_examples=50, deadline=None)
settings.register_profile(
    "soak", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session", autouse=True)
def interrupts():
    """A suite that was started in the background ignores SIGINT, and so would its children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def spare_loop():
    """pytest-asyncio asks for a current loop between tests; one that it had to make leaks."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


def pytest_collection_modifyitems(items):
    root = os.geteuid() == 0 and shutil.which("ip") is not None
    for item in items:
        if "netns" in item.keywords and not root:
            item.add_marker(pytest.mark.skip(reason="needs root and iproute2"))
