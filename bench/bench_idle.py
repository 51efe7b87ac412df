"""What an idle node costs, beside a bare program that is woken as often and talks as much.

    python bench/bench_idle.py       # as root, or rootless where user namespaces are allowed

A real cluster of three with six egress IPs and one without any, each left alone for a while. The
bare program sends and hears as many datagrams over loopback with nothing but a selector, so what
it costs is the price of being woken on this machine; a loaded machine makes both dearer.
"""

import contextlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path

WAYOUT = str(Path(sys.executable).with_name("wayout"))
SETTLE = 14.0
MEASURE = 20.0
CPU_MAX = 1.0
"""Percent of a core."""
MEMORY_MAX = 85.0
"""MiB resident."""
BARE = """
import select, socket, sys, time
beats = float(sys.argv[1])
ear, mouth = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
ear.bind(("127.0.0.1", 0)); ear.setblocking(False)
where = ear.getsockname()
poll = select.epoll(); poll.register(ear, select.EPOLLIN)
cpu = lambda: int(open("/proc/self/schedstat").read().split()[0])
began, spent, due = time.monotonic(), cpu(), time.monotonic()
while time.monotonic() < began + float(sys.argv[2]):
    poll.poll(max(0.0, due - time.monotonic()))
    if time.monotonic() >= due:
        due += 2 / beats
        for _ in range(2):
            mouth.sendto(bytes(60), where)
    with __import__("contextlib").suppress(BlockingIOError):
        while True:
            ear.recvfrom(2048)
print((cpu() - spent) / 1e9)
"""


def lab(*arguments):
    done = subprocess.run(
        [WAYOUT, "lab", *arguments, "--name", "idle"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr or done.stdout)
    return done.stdout


def look(node):
    """CPU seconds, wake-ups, datagrams sent, MiB resident and log lines of a daemon so far."""
    process = Path(f"/proc/{node['pid']}")
    cpu = sum(int(each.read_text().split()[0]) for each in process.glob("task/*/schedstat")) / 1e9
    status = (process / "status").read_text()
    wakes = sum(
        int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", each.read_text(), re.MULTILINE)[1])
        for each in process.glob("task/*/status")
    )
    memory = int(re.search(r"^VmRSS:\s+(\d+)", status, re.MULTILINE)[1]) / 1024
    sent = re.findall(r"^Udp: (\d.*)$", (process / "net/snmp").read_text(), re.MULTILINE)[
        0
    ].split()[3]
    lines = len(Path(node["log"]).read_text().splitlines())
    return cpu, wakes, int(sent), memory, lines


def measure(ips):
    lab("up", "--nodes", "3", "--ips", str(ips))
    with contextlib.ExitStack() as stack:
        stack.callback(lab, "down")
        time.sleep(SETTLE)
        nodes = json.loads(lab("status", "--json"))["nodes"]
        before = [look(node) for node in nodes]
        time.sleep(MEASURE)
        after = [look(node) for node in nodes]
    for node, was, now in zip(nodes, before, after, strict=True):
        cpu, wakes, sent, _, lines = (b - a for a, b in zip(was, now, strict=True))
        yield node["node"], 100 * cpu / MEASURE, wakes / MEASURE, sent / MEASURE, now[3], lines


def bare(sent):
    done = subprocess.run(
        [sys.executable, "-c", BARE, str(sent), str(MEASURE / 2)],
        capture_output=True,
        text=True,
        check=True,
    )
    return 100 * float(done.stdout) / (MEASURE / 2)


def main():
    failed = False
    print(f"{'IPs':>4} node  CPU %  wakes/s  sent/s   MiB  log lines  bare %  ratio")
    for ips in (0, 6):
        for name, cpu, wakes, sent, memory, lines in measure(ips):
            floor = bare(max(sent, 1.0))
            failed |= cpu >= CPU_MAX or memory >= MEMORY_MAX or lines > 0
            print(
                f"{ips:4d} {name:4s}{cpu:7.2f}{wakes:9.1f}{sent:8.1f}{memory:6.1f}{lines:11d}"
                f"{floor:8.2f}{cpu / floor:7.1f}",
                flush=True,
            )
    print(f"limits: {CPU_MAX:.0f} % of a core, {MEMORY_MAX:.0f} MiB, no line of log")
    if failed:
        sys.exit("a limit does not hold")


if __name__ == "__main__":
    main()
