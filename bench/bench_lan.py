"""What the LAN costs: asking, announcing, and keeping leases alive.

    python bench/bench_lan.py        # as root; makes network namespaces of its own

`hold` is the longest computation between two turns of the event loop. The kernel's work for the
neighbours (their bridge, their answers) is done inside our sends here, so CPU is an upper bound.
"""

import asyncio
import statistics
import sys
from ipaddress import ip_address
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from bench_netlink import Held, bindings, measured

from egress.keeper import Keeper
from egress.lan import Segments
from egress.model import Question
from egress.netlink import Netlink
from support.namespaces import Segment

ROUNDS = 5
LEASE = 3.0
CONTROL = {4: ip_address("10.77.0.2"), 6: ip_address("2001:db8:77::2")}


async def row(name, version, count, work, held):
    samples = [await measured(work, held) for _ in range(ROUNDS)]
    wall, cpu, hold = (statistics.median(column) for column in zip(*samples, strict=True))
    print(f"IPv{version} {count:6d}  {name:12s}{wall:9.1f}{cpu:9.1f}{hold:8.1f}")


async def talk(lan, held):
    for version in (4, 6):
        for count in (1, 100, 300, 1000):
            many = bindings(version, count)
            asked = [Question(each.ip, "eth0", (CONTROL[version],)) for each in many]
            await row("ask", version, count, lambda asked=asked: lan.ask(asked), held)
            said = lambda many=many: lan.announce(many, first=True)  # noqa: E731
            await row("announce", version, count, said, held)


async def keep(kernel, lan, held, tasks):
    gone = []
    keeper = Keeper(kernel, LEASE, gone.extend, [lan])
    running = tasks.create_task(keeper.run())
    for version, count in ((4, 100), (4, 1000), (6, 100), (6, 300)):
        many = bindings(version, count)
        since = asyncio.get_running_loop().time()
        await kernel.bind(many, LEASE)
        keeper.hold(many, since=since)
        await row("keep for 1 s", version, count, lambda: asyncio.sleep(1), held)
        assert not gone, "leases lapsed: this machine is too busy to measure"
        keeper.drop(many)
        await kernel.unbind(many)
    running.cancel()


async def main():
    held = Held()
    with Segment("a", "b", prefix="wb") as segment, segment["a"].entered():
        kernel = Netlink(patience=30)
        here = (await kernel.observe()).interfaces
        lan = Segments(lambda: here, list)
        print("addresses    work          wall ms   cpu ms  hold ms")
        async with asyncio.TaskGroup() as tasks:
            meter = tasks.create_task(held.run())
            await row("nothing, 1 s", 4, 0, lambda: asyncio.sleep(1), held)
            await talk(lan, held)
            await keep(kernel, lan, held, tasks)
            meter.cancel()
        lan.close()
        kernel.close()


if __name__ == "__main__":
    asyncio.run(main())
