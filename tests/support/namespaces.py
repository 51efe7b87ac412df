"""Hosts in network namespaces, hung by veth on one bridge in a namespace of its own.

    with Segment("a", "b") as segment:
        segment["b"].run("ip addr add 10.77.0.60/32 dev eth0")
        with segment["a"].entered():
            ...  # sockets made here are host a's

Host number i has the MAC 02:00:00:00:00:0i, 10.77.0.i/24 and 2001:db8:77::i/64 on `eth0`.
"""

import contextlib
import ctypes
import itertools
import os
import shlex
import subprocess
from pathlib import Path

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_numbers = itertools.count(1)


class Host:
    """One network namespace."""

    def __init__(self, name, number=0):
        self.name = name
        self.mac = f"02:00:00:00:00:{number:02x}"
        self.ip4 = f"10.77.0.{number}"
        self.ip6 = f"2001:db8:77::{number:x}"

    def run(self, command, *, check=True):
        """Run a command (a string, split like a shell does) inside; its standard output."""
        argv = ["ip", "netns", "exec", self.name, *shlex.split(command)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        if check and done.returncode:
            raise AssertionError(f"{self.name}: {command}: {done.stderr.strip()}")
        return done.stdout

    def feed(self, command, text):
        """Run a command inside with `text` as its input (nft -f -, ip -batch -)."""
        argv = ["ip", "netns", "exec", self.name, *shlex.split(command)]
        subprocess.run(argv, input=text, text=True, check=True, capture_output=True, timeout=60)

    def start(self, *argv, **kwargs):
        """Start a program inside; the caller ends it."""
        return subprocess.Popen(["ip", "netns", "exec", self.name, *argv], **kwargs)

    @contextlib.contextmanager
    def entered(self):
        """The calling thread lives in this namespace for a while."""
        with (
            Path("/proc/thread-self/ns/net").open("rb") as home,
            Path("/run/netns", self.name).open("rb") as away,
        ):
            _set_namespace(away.fileno())
            try:
                yield self
            finally:
                _set_namespace(home.fileno())


class Segment:
    """A bridge with hosts on it; gone, with everything in it, when the `with` block ends."""

    def __init__(self, *names, prefix="wt"):
        self.prefix = f"{prefix}{os.getpid()}x{next(_numbers)}"
        self.switch = Host(f"{self.prefix}-sw")
        self.hosts = {
            name: Host(f"{self.prefix}-{name}", number) for number, name in enumerate(names, 1)
        }

    def __enter__(self):
        try:
            self._build()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_):
        self._remove()

    def __getitem__(self, name):
        return self.hosts[name]

    def unplug(self, name):
        """The host's port on the bridge goes down, so the host loses its carrier."""
        self.switch.run(f"ip link set p-{name} down")

    def plug(self, name):
        self.switch.run(f"ip link set p-{name} up")

    def lose(self, percent):
        """Every ARP packet and every neighbour discovery between hosts is lost so often."""
        kinds = ["ether type arp", "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert }"]
        rules = "\n".join(f"{kind} numgen random mod 100 < {percent} drop" for kind in kinds)
        hook = "type filter hook forward priority 0;"
        self.switch.feed("nft -f -", f"table bridge loss {{ chain f {{ {hook}\n{rules}\n}}\n}}\n")

    def _build(self):
        _system(f"ip netns add {self.switch.name}")
        self.switch.run("ip link add br0 type bridge")
        self.switch.run("ip link set br0 up")
        for name, host in self.hosts.items():
            _system(f"ip netns add {host.name}")
            host.run("ip link set lo up")
            host.run(
                f"ip link add eth0 address {host.mac} type veth"
                f" peer name p-{name} netns {self.switch.name}"
            )
            self.switch.run(f"ip link set p-{name} master br0 up")
            host.run("ip link set eth0 up")
            host.run(f"ip addr add {host.ip4}/24 dev eth0")
            host.run(f"ip -6 addr add {host.ip6}/64 dev eth0 nodad")
            host.run("ip -6 addr flush dev eth0 scope link")
            host.run(f"ip -6 addr add fe80::{host.ip6.rpartition(':')[2]}/64 dev eth0 nodad")

    def _remove(self):
        for host in [*self.hosts.values(), self.switch]:
            _system(f"ip netns del {host.name}", check=False)


def _system(command, *, check=True):
    subprocess.run(shlex.split(command), check=check, capture_output=True, timeout=60)


def _set_namespace(descriptor):
    if _libc.setns(descriptor, CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
