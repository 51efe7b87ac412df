"""A local cluster: hosts, a config file for each, and a real daemon on each.

Everything about it is in its record, so another command, or the next lab of that name, can find
and end it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING

from agent.client import ClientError, call, rows
from agent.lab import addresses, hosts, record
from agent.lab.processes import LabError, end, interruptible, of, spawn, undisturbed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from agent.lab.addresses import Place
    from agent.lab.record import Record

DEFAULT_NAME = "lab"
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
            with undisturbed():
                try:
                    self._start(name)
                finally:
                    self.record.save()

    def _start(self, name: str) -> None:
        if name in self.record.killed:
            self.network.revive(self.places[name], self.prefix)
            self.record.killed.remove(name)
        self.file(name, "yaml").write_text(self.config(name))
        program = self.network.inside(name, self._program(name))
        self.record.daemons[name] = spawn(program, output=self.file(name, "log"))

    def down(self) -> None:
        """End every process of the lab and remove its folder."""
        with undisturbed():
            left = end([*self.record.daemons.values(), *self.network.processes])
            self.record.remove()
        if left:
            pids = ", ".join(str(each.pid) for each in left)
            raise LabError(f"processes do not end although killed: {pids}, look at them")

    def leave(self) -> None:
        """Let the lab stay when the command that made it ends."""
        self.record.owner = None
        self.record.save()

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
        """One of running, paused, ended (as we wished), crashed (as nobody did), killed."""
        self.node(name)
        daemon = self.record.daemons.get(name)
        if name in self.record.killed:
            return "killed"
        if daemon is None:
            return "ended"
        if not daemon.alive:
            return "crashed"
        return "paused" if daemon.stopped else "running"

    def ended(self, name: str) -> None:
        """Note that the daemon of a node has ended because we wished it."""
        self.record.daemons.pop(name, None)
        self.record.save()

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

    def owners(self, name: str) -> dict[str, str | None]:
        """Who carries each IP in the eyes of one node; None unless it is assigned."""
        told = rows(str(self.file(name, "sock")), "egress_list", timeout=ANSWER_PATIENCE)
        return {
            str(row["ip"]): row["owner"] if row["state"] == "assigned" else None for row in told
        }

    def glance(self) -> dict[str, str | None]:
        """Who carries each IP in the eyes of the first node that answers; nobody if none does."""
        for name in self.running:
            with contextlib.suppress(ClientError):
                return self.owners(name)
        return dict.fromkeys(self.ips)

    def plugged(self, name: str) -> bool:
        """Whether the host of a node lives and its cable is in."""
        return self.state(name) != "killed" and self.network.plugged(name)

    def pid(self, name: str) -> int | None:
        """Of the daemon of a node, None if it does not run."""
        daemon = self.record.daemons.get(name)
        return daemon.pid if daemon is not None and daemon.alive else None

    @property
    def youth(self) -> float:
        """Seconds since the last daemon was started that runs now."""
        running = [self.record.daemons[name].age for name in self.running]
        return min(running, default=0.0)

    def settle(
        self,
        patience: float = SETTLE_PATIENCE,
        *,
        members: bool = True,
        rest: Callable[[float], None] = time.sleep,
    ) -> dict[str, str]:
        """Wait until all running nodes are ready and name the same owner for every IP.

        `members`: they must see each other, and no more. `rest` is what is done between two
        looks. The owners; LabError, saying what is missing, after `patience` seconds.
        """
        limit = time.monotonic() + patience
        while True:
            self._require_no_crash()
            owners: dict[str, str] = {}
            why = self._trouble(owners, members=members)
            if why is None:
                return owners
            if time.monotonic() > limit:
                raise LabError(f"the cluster has not settled after {patience:g} s, {why}")
            rest(SETTLE_POLL)

    def _require_no_crash(self) -> None:
        for name in self.nodes:
            if self.state(name) == "crashed":
                raise LabError(f"the daemon of {name} has crashed, {self._last_words(name)}")

    def _trouble(self, owners: dict[str, str], *, members: bool) -> str | None:
        """Why they do not agree yet, None if they do; on what goes into `owners`."""
        running = self.running
        for name in running:
            why = self._doubt(name, owners, len(running) if members else None)
            if why is not None:
                return why
        return None if running else "no daemon runs"

    def _doubt(self, name: str, owners: dict[str, str], members: int | None) -> str | None:
        """What keeps one node from being ready and of one mind with `owners`."""
        try:
            told = call(str(self.file(name, "sock")), "status", timeout=ANSWER_PATIENCE)
            carried = self.owners(name)
        except ClientError:
            return f"{name} is silent, {self._last_words(name)}"
        if told["node"]["state"] != "ready":
            return f"{name} is {told['node']['state']}, {self._last_words(name)}"
        if members is not None and max(told["members"]["alive"], 1) != members:
            return f"{name} sees {told['members']['alive']} of {members} members"
        for ip in self.ips:
            owner = carried.get(ip)
            if owner is None:
                return f"{name} knows no owner of {ip}"
            if owners.setdefault(ip, owner) != owner:
                return f"{name} says that {ip} is owned by {owner}, others say {owners[ip]}"
        return None

    def _last_words(self, name: str) -> str:
        log = self.file(name, "log")
        every = log.read_text(errors="replace").splitlines() if log.exists() else []
        # The last line of an exception group is a frame drawn around it.
        lines = [each.strip(" |") for each in every if each.strip(" |+-")]
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
            f"api: {{socket: {folder}/{name}.sock, http_listen: off}}",
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
    cluster = Cluster(told)
    created = False
    try:
        # Leaving the inner block may raise what it held back; so the clean-up is around it.
        with undisturbed(), record.locked():
            sweep()
            record.create(told)
            created = True
            cluster.build()
            if daemons:
                cluster.start(cluster.nodes)
    except BaseException:
        if created:
            cluster.down()
        raise
    return cluster


@contextlib.contextmanager
def temporary(name: str, *, nodes: int, ips: int, sets: tuple[str, ...] = ()) -> Iterator[Cluster]:
    """A lab that is gone when the block ends, also by an error or an interrupt.

    Unless the block has taken its `record.owner` away: then it stays if all went well.
    """
    with interruptible():
        cluster = up(name, nodes=nodes, ips=ips, sets=sets, bound=True)
        try:
            yield cluster
        except BaseException:
            cluster.down()
            raise
        if cluster.record.owner is not None:
            cluster.down()


def find(name: str | None = None) -> Cluster:
    """The lab of this name; without one the lab called `lab`, or the only one there is."""
    if name is None:
        known = record.names()
        if len(known) > 1 and DEFAULT_NAME not in known:
            raise LabError(f"there are several labs, name one with --name: {', '.join(known)}")
        name = known[0] if len(known) == 1 else DEFAULT_NAME
    return Cluster(record.load(name))


def sweep() -> None:
    """Remove the labs whose commands are gone without having done so."""
    for name in record.names():
        with contextlib.suppress(LabError):
            old = find(name)
            if old.record.abandoned:
                old.down()


def _check_size(nodes: int, ips: int) -> None:
    if not 1 <= nodes <= addresses.NODES_MAX:
        raise LabError(f"a lab has 1 to {addresses.NODES_MAX} nodes")
    if not 0 <= ips <= addresses.IPS_MAX:
        raise LabError(f"a lab has 0 to {addresses.IPS_MAX} IPs")
