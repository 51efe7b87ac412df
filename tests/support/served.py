"""An admin server that runs beside a test, for clients that wait for their answer."""

import asyncio
import threading
from contextlib import contextmanager

from agent.admin import AdminServer


@contextmanager
def served(path, desk):
    """Serve `desk` on `path` in a thread of its own."""
    loop = asyncio.new_event_loop()
    server = AdminServer(desk)
    loop.run_until_complete(server.start(path))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield path
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
