"""A chat without a server: every line goes to everybody, and you see who comes and goes.

python docs/examples/chat.py ann 127.0.0.1
python docs/examples/chat.py bob 127.0.0.2 127.0.0.1     # in another terminal
"""

import asyncio
import logging
import sys

import structlog

from gossip.events import HealthChanged, UserMessage
from gossip.member import joined


async def chat(name: str, host: str, *seeds: str) -> None:
    async with joined(name, host, seeds=seeds) as me, asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(listen(me))
        # A thread, since reading a terminal blocks; an empty line or Ctrl-D ends the chat.
        while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
            me.broadcast(line)
        listening.cancel()


async def listen(me) -> None:
    async for event in me.events():
        match event:
            case UserMessage(sender, _, str(text)):
                print(f"{sender}: {text}", flush=True)
            case HealthChanged(member):
                print(f"* {member.name} is {member.health.name.lower()}", flush=True)
            case _:
                pass


if __name__ == "__main__":
    # Gossip tells structlog what it thinks; a chat wants to see no more than warnings.
    level = structlog.make_filtering_bound_logger(logging.WARNING)
    structlog.configure(wrapper_class=level)
    asyncio.run(chat(*sys.argv[1:]))
