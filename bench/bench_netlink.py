"""What the hands cost: binding, renewing, observing and announcing, next to `ip -batch`.

    python bench/bench_netlink.py [COUNT ...]        # as root; makes a network namespace of its own

`hold` is the longest computation between two turns of the event loop; `of ip` is the ratio to
`ip -batch` for the same work in a fresh process (below 1.00 is faster than iproute2).
"""

import asyncio
import statistics
import sys
import time
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from egress.model import Binding
from egress.netlink import Netlink
from support.namespaces import Segment

LEASE = 600
ROUNDS = 3
BASE = {4: int(IPv4Address("10.100.0.0")), 6: int(IPv6Address("2001:db8:77:1::"))}
LOADS = ((4, 1000), (4, 5000), (6, 300))
TICK = 0.0005


def bindings(version, count):
    make = IPv4Address if version == 4 else IPv6Address
    return [Binding(make(BASE[version] + number), "eth0") for number in range(1, count + 1)]


class Held:
    """The longest time that the loop's thread computed between two ticks of a task.

    Its CPU time, not the clock: on a busy machine the clock would measure the neighbours.
    """

    def __init__(self):
        self.longest = 0.0

    async def run(self):
        while True:
            before = time.thread_time()
            await asyncio.sleep(TICK)
            self.longest = max(self.longest, time.thread_time() - before)


async def measured(work, held):
    await asyncio.sleep(0.05)
    held.longest = 0.0
    started, computed = time.perf_counter(), time.process_time()
    await work()
    wall, cpu = time.perf_counter() - started, time.process_time() - computed
    await asyncio.sleep(2 * TICK)
    return wall * 1000, cpu * 1000, held.longest * 1000


def batch(host, verb, addresses):
    """The same by iproute2, in milliseconds, without the start of the process."""
    tail = {4: "", 6: " nodad"}
    lines = "".join(
        f"addr {verb} {each.ip}/{each.ip.max_prefixlen} dev eth0"
        + (
            "" if verb == "del" else f" valid_lft {LEASE} preferred_lft 0{tail[each.ip.version]}"
        ).replace("preferred_lft 0", f"preferred_lft {LEASE if each.ip.version == 4 else 0}")
        + "\n"
        for each in addresses
    )
    started = time.perf_counter()
    host.feed("ip -batch -", lines)
    wall = time.perf_counter() - started
    started = time.perf_counter()
    host.feed("ip -batch -", "\n")
    return (wall - (time.perf_counter() - started)) * 1000


def dumped(host):
    started = time.perf_counter()
    host.run("ip -o addr show dev eth0")
    wall = time.perf_counter() - started
    started = time.perf_counter()
    host.run("ip -o addr show dev lo")
    return (wall - (time.perf_counter() - started)) * 1000


async def load(kernel, host, held, version, count):
    many = bindings(version, count)
    ours = {verb: [] for verb in ("bind", "renew", "observe", "unbind")}
    theirs = {verb: [] for verb in ours}
    for _ in range(ROUNDS):
        theirs["bind"].append(batch(host, "add", many))
        theirs["renew"].append(batch(host, "replace", many))
        theirs["observe"].append(dumped(host))
        theirs["unbind"].append(batch(host, "del", many))
        await asyncio.sleep(1)  # IPv6 multicast groups linger and make the next addition dear.
        for verb, work in (
            ("bind", lambda: kernel.bind(many, LEASE)),
            ("renew", lambda: kernel.renew(many, LEASE)),
            ("observe", kernel.observe),
            ("unbind", lambda: kernel.unbind(many)),
        ):
            ours[verb].append(await measured(work, held))
        await asyncio.sleep(1)
    for verb, samples in ours.items():
        wall, cpu, hold = (statistics.median(column) for column in zip(*samples, strict=True))
        reference = statistics.median(theirs[verb])
        print(
            f"IPv{version} {count:6d}  {verb:8s}{wall:9.1f}{cpu:9.1f}{hold:8.1f}"
            f"{reference:10.1f}{wall / reference:8.2f}"
        )


async def main(counts):
    loads = [(4, int(count)) for count in counts] or LOADS
    held = Held()
    with Segment("a", "b", prefix="wb") as segment:
        with segment["a"].entered():
            kernel = Netlink(patience=30)
        print("addresses    work        wall ms   cpu ms  hold ms   ip -batch   of ip")
        async with asyncio.TaskGroup() as tasks:
            meter = tasks.create_task(held.run())
            for version, count in loads:
                await load(kernel, segment["a"], held, version, count)
            meter.cancel()
        kernel.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
