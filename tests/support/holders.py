"""Members with a keyring file each, and the part that rotates it: `async with Holders(3) as h`."""

import asyncio
import contextlib
import os

from agent.keys import file, words
from agent.keys.ring import Keys
from agent.keys.rotation import Rotation
from gossip.events import UserMessage
from gossip.peer import Address
from gossip.wire.packet import Envelope
from gossip.wire.seal import Keyring
from support.nodes import Member, free_port
from support.settings import parsed

PATIENCE = 0.6
CONFIG = """
version: 1
node: {{name: {name}}}
gossip: {{keyring_file: {path}, encryption: {mode}}}
"""


class Holder(Member):
    """A member, its settings, its file, and what of others it refused."""

    def __init__(self, folder, number, port, keys, mode):
        name = f"m{number}"
        self.path = folder / f"{name}.keys"
        self.path.write_text("".join(f"{file.encoded(key)}\n" for key in keys))
        self.path.chmod(0o600)
        self.settings = parsed(CONFIG.format(name=name, path=self.path, mode=mode)).settings
        envelope = Envelope(
            keyring=Keyring(tuple(keys)), verify_incoming=mode == "required", nonces=os.urandom
        )
        super().__init__(name, Address(f"127.0.0.{number}", port), envelope=envelope)
        self.refused = []
        self.keys = Keys(self.node, lambda: self.settings)
        self.rotation = Rotation(name, self.node, self.keys, self.refused.append, PATIENCE)

    def _hear(self, event):
        super()._hear(event)
        if isinstance(event, UserMessage) and event.kind == words.KIND:
            self.rotation.heard(event)

    def ring(self):
        return self.machine.envelope.keyring.keys

    def filed(self):
        return file.read(self.path).keys


class Holders:
    """m1, m2… with the same keys, acquainted."""

    def __init__(self, folder, count, keys, mode="required"):
        port = free_port()
        self.all = [Holder(folder, number, port, keys, mode) for number in range(1, count + 1)]
        self._running = []

    async def __aenter__(self):
        for holder in self.all:
            await holder.start(self.all[0].address)
            self._running.append(asyncio.create_task(holder.rotation.run()))
        for one in self.all:
            for other in self.all:
                await one.until(lambda one=one, other=other: one.health(other.name) == 0)
        return self

    async def __aexit__(self, *_):
        for task in self._running:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for holder in self.all:
            await holder.stop()

    def __getitem__(self, position):
        return self.all[position]
