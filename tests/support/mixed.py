"""Labs in which programs of others are members beside our daemons.

with mixed("serf", nodes=3, ips=4) as lab:
    lab.daemon("n1", gossip={"seeds": [lab.ip("n1")], "delegate_version": "serf"})
    serf = lab.guest("n2", "serf", "agent", ...)
"""

import contextlib
import os
import shutil
import tempfile
import time

import pytest
import yaml

from agent.client import ClientError, rows
from agent.lab import cluster as labs
from agent.lab.processes import send, spawn, wait

PORT = labs.GOSSIP_PORT
POLL = 0.1


class Mixed(labs.Cluster):
    """A lab whose nodes belong to different clusters; those of others are its guests."""

    def __init__(self, told):
        super().__init__(told)
        self._wishes = {}

    def ip(self, name):
        return self.places[name].ip4

    def config(self, name):
        """The lab's own configuration, with the gossip and the egress IPs that were wished for."""
        gossip, ips = self._wishes[name]
        told = yaml.safe_load(super().config(name))
        told["gossip"] = gossip
        every = told["egress"]["egresses"]
        told["egress"]["egresses"] = {k: v for k, v in every.items() if v["egress_ip"] in ips}
        return yaml.safe_dump(told)

    def daemon(self, name, *, gossip, ips=()):
        """Start ours."""
        self._wishes[name] = gossip, ips
        self.start([name])

    def guest(self, name, *argv):
        """Start a program of others; it is ended with the lab. What it prints is its `heard`."""
        program = spawn(self.network.inside(name, argv), output=self.file(name, "guest"))
        self.record.daemons[f"guest {name} {program.pid}"] = program
        self.record.save()
        return program

    def heard(self, name):
        """What the guests of this host have printed so far."""
        path = self.file(name, "guest")
        return path.read_text(errors="replace") if path.exists() else ""

    def logged(self, name):
        """What the daemon of this host has logged so far."""
        return self.file(name, "log").read_text(errors="replace")

    def members(self, name):
        """`wayout members --json` of a host, by name; empty while it does not answer."""
        with contextlib.suppress(ClientError):
            return {row["name"]: row for row in self._rows(name, "members")}
        return {}

    def egresses(self, name):
        """`wayout egress list --json` of a host; empty while it does not answer."""
        with contextlib.suppress(ClientError):
            return self._rows(name, "egress_list")
        return []

    def _rows(self, name, verb):
        return rows(str(self.file(name, "sock")), verb, timeout=labs.ANSWER_PATIENCE)

    def assigned(self, name):
        """The owner of each IP that this host is configured with, once all have one."""
        listed = self.egresses(name)
        done = listed and all(row["state"] == "assigned" for row in listed)
        return {row["ip"]: row["owner"] for row in listed} if done else None


@contextlib.contextmanager
def mixed(name, *, nodes, ips):
    """A lab without daemons, gone with everything in it when the block ends."""
    # Not tmp_path: the path of a Unix socket may have 107 letters.
    folder = tempfile.mkdtemp(prefix="wm")
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", folder)
            made = labs.up(f"{name}-{os.getpid()}", nodes=nodes, ips=ips, daemons=False, bound=True)
            lab = Mixed(made.record)
            try:
                yield lab
            finally:
                lab.down()
    finally:
        shutil.rmtree(folder)


def eventually(true, patience, what):
    """What `true` returns as soon as it is true; a failure that says `what` was waited for."""
    limit = time.monotonic() + patience
    while not (found := true()):
        assert time.monotonic() < limit, f"not within {patience:g} s: {what}"
        time.sleep(POLL)
    return found


def killed(program, number, patience=10.0):
    """Signal a guest and wait for its end."""
    send(program, number)
    assert wait(program, patience), "a guest did not end"
