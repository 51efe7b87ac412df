"""A local cluster: hosts, a config file for each, and a real daemon on each.

Everything about it is in its record, so another command, or the next lab of that name, can find
and end it.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING

from agent.client import Answer, ClientError, call, rows
from agent.lab import addresses, hosts, record
from agent.lab.processes import LabError, end, of, spawn

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from agent.lab.addresses import Place
    from agent.lab.record import Record

GOSSIP_PORT = 7955
ANSWER_PATIENCE = 3.0
"""Seconds for one answer of a daemon that does nothing else."""
SETTLE_PATIENCE = 30.0
SETTLE_POLL = 0.05


class Cluster:
    """The lab of a record."""

    def __init__(self, told: Record) -> None:
        self.record = told
        self.network = hosts.Network(told.keepers, told.user)
        self.places = {place.name: place for place in addresses.places(told.nodes)}
        self.nodes = tuple(name for name in self.places if name != addresses.OBSERVER)

    # -- life ------------------------------------------------------------------------------

    def build(self) -> None:
        """Make the hosts; what was made is on record even if this fails half-way."""

        def made() -> None:
            self.record.user = self.network.user
            self.record.save()

        self.network.open(self.places, made)
        self.network.wire(self.places.values(), self.prefix)

    def start(self, names: Iterable[str]) -> None:
        """Start the daemons of these nodes; a host that was killed comes back first."""
        for name in names:
            if self.state(name) in ("running", "paused"):
                raise LabError(f"{name} runs already, 'wayout lab status' shows it")
            if name in self.record.killed:
                self.network.revive(self.places[name], self.prefix)
                self.record.killed.remove(name)
            self.file(name, "yaml").write_text(self.config(name))
            self.record.daemons[name] = spawn(
                self.network.inside(name, self._program(name)), output=self.file(name, "log")
            )
            self.record.save()

    def down(self) -> None:
        """End every process of the lab and remove its folder."""
        left = end([*self.record.daemons.values(), *self.network.processes])
        self.record.remove()
        if left:
            pids = ", ".join(str(each.pid) for each in left)
            raise LabError(f"processes do not end although killed: {pids}, look at them")

    # -- questions -------------------------------------------------------------------------

    @property
    def prefix(self) -> int:
        """Length of the IPv4 subnet."""
        return addresses.prefix(len(self.record.ips))

    @property
    def ips(self) -> tuple[str, ...]:
        """The egress IPs."""
        return tuple(self.record.ips.values())

    @property
    def running(self) -> tuple[str, ...]:
        """Nodes whose daemon runs and is not stopped."""
        return tuple(name for name in self.nodes if self.state(name) == "running")

    def state(self, name: str) -> str:
        """One of running, paused, ended, killed."""
        self.node(name)
        daemon = self.record.daemons.get(name)
        if name in self.record.killed:
            return "killed"
        if daemon is None or not daemon.alive:
            return "ended"
        return "paused" if daemon.stopped else "running"

    def node(self, name: str) -> Place:
        """The place of a node; LabError if there is none of that name."""
        if name not in self.nodes:
            known = f"{self.nodes[0]} to {self.nodes[-1]}"
            raise LabError(f"there is no node {name!r} in this lab, it has {known}")
        return self.places[name]

    def file(self, name: str, kind: str) -> Path:
        """A file of a node: yaml, log, sock, state, run."""
        return self.record.folder / f"{name}.{kind}"

    def host_of(self, mac: str | None) -> str:
        """The name of the host with this MAC."""
        found = (place.name for place in self.places.values() if place.mac == mac)
        return next(found, mac or "-")

    def status(self, name: str) -> Answer | None:
        """What the daemon of a node says of itself; None if it does not answer."""
        try:
            return call(str(self.file(name, "sock")), "status", timeout=ANSWER_PATIENCE)
        except ClientError:
            return None

    def owners(self, name: str) -> dict[str, str | None]:
        """Who carries each IP in the eyes of one node; None unless it is assigned."""
        told = rows(str(self.file(name, "sock")), "egress_list", timeout=ANSWER_PATIENCE)
        return {
            str(row["ip"]): row["owner"] if row["state"] == "assigned" else None for row in told
        }

    def settle(self, patience: float = SETTLE_PATIENCE) -> dict[str, str]:
        """Wait until all running nodes are ready and name the same owner for every IP.

        The owners; LabError, saying what is missing, after `patience` seconds.
        """
        limit = time.monotonic() + patience
        while True:
            why, owners = self._agreed()
            if why is None:
                return owners
            if time.monotonic() > limit:
                raise LabError(f"the cluster is not settled after {patience:g} s, {why}")
            time.sleep(SETTLE_POLL)

    def _agreed(self) -> tuple[str | None, dict[str, str]]:
        """Why they do not agree yet (None if they do), and on what."""
        agreed: dict[str, str] = {}
        running = self.running
        for name in self.nodes:
            if self.state(name) == "ended":
                return f"the daemon of {name} has ended, {self._last_words(name)}", {}
        for name in running:
            told = self.status(name)
            if told is None or told["node"]["state"] != "ready":
                state = "does not answer" if told is None else f"is {told['node']['state']}"
                return f"{name} {state}, its log is {self.file(name, 'log')}", {}
            if told["members"]["alive"] != len(running):
                return f"{name} sees {told['members']['alive']} of {len(running)} members", {}
            owners = self.owners(name)
            for ip in self.ips:
                owner = owners.get(ip)
                if owner is None or agreed.setdefault(ip, owner) != owner:
                    return f"{name} has no owner, or another than the rest, for {ip}", {}
        return None, agreed

    def _last_words(self, name: str) -> str:
        log = self.file(name, "log")
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return f"its last words in {log}: {lines[-1] if lines else '(none)'}"

    def _program(self, name: str) -> list[str]:
        sets = [part for each in self.record.sets for part in ("--set", each)]
        path = str(self.file(name, "yaml"))
        return [sys.executable, "-I", "-m", "agent", "run", "--config", path, *sets]

    def config(self, name: str) -> str:
        """The configuration of a node: the minimal one, and where its files are."""
        seeds = ", ".join(self.places[each].ip4 for each in self.nodes)
        folder = self.record.folder
        egresses = [f'    {title}: {{egress_ip: "{ip}"}}' for title, ip in self.record.ips.items()]
        lines = [
            "version: 1",
            f"node: {{name: {name}, address: {self.places[name].ip4}}}",
            f"gossip: {{seeds: [{seeds}]}}",
            f"api: {{socket: {folder}/{name}.sock, http_listen: 127.0.0.1:9765}}",
            f"state: {{dir: {folder}/{name}.state, runtime_dir: {folder}/{name}.run}}",
            "egress:",
            "  egresses:" if egresses else "  egresses: {}",
            *egresses,
        ]
        return "\n".join(lines) + "\n"


def up(
    name: str,
    *,
    nodes: int,
    ips: int,
    sets: tuple[str, ...] = (),
    bound: bool = False,
    daemons: bool = True,
) -> Cluster:
    """Make a lab and start its daemons; `bound` to this process, which must remove it.

    A lab of that name whose own command is gone is removed first. Whatever fails, or interrupts,
    nothing stays behind.
    """
    _check_size(nodes, ips)
    told = record.Record(name, record.folder_of(name), nodes, addresses.egress_ips(ips), sets)
    told.owner = of(os.getpid()) if bound else None
    with record.locked():
        _clear(name)
        record.create(told)
        cluster = Cluster(told)
        try:
            cluster.build()
            if daemons:
                cluster.start(cluster.nodes)
        except BaseException:
            cluster.down()
            raise
    return cluster


def find(name: str) -> Cluster:
    """The lab of this name; LabError if there is none."""
    return Cluster(record.load(name))


def _clear(name: str) -> None:
    if not record.folder_of(name).exists():
        return
    try:
        old = find(name)
    except LabError:
        # No record, or one that nobody can read: nothing but files can be left.
        shutil.rmtree(record.folder_of(name), ignore_errors=True)
        return
    if old.record.abandoned:
        old.down()


def _check_size(nodes: int, ips: int) -> None:
    if not 1 <= nodes <= addresses.NODES_MAX:
        raise LabError(f"a lab has 1 to {addresses.NODES_MAX} nodes")
    if not 0 <= ips <= addresses.IPS_MAX:
        raise LabError(f"a lab has 0 to {addresses.IPS_MAX} IPs")
