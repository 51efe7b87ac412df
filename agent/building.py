"""Every part of the daemon, built in order, with the doors that must be closed again."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

import structlog

from agent import interfaces, security, turnover, wiring
from agent.controller import Controller, Parts
from agent.cures import unbindable, wished
from agent.frontdesk import FrontDesk
from agent.gateway import Gateway
from agent.health.probes import Senses
from agent.health.runner import Health
from agent.historyfile import History
from agent.inputs import LeaseLapsed, RivalsHeard
from agent.isolation import Isolation
from agent.journal import Journal
from agent.keys import words
from agent.keys.desk import KeyDesk
from agent.keys.ring import Keys
from agent.keys.rotation import Rotation
from agent.listeners import Listeners
from agent.mailbox import Mailbox
from agent.membership import Membership
from agent.metrics import Metrics
from agent.outlook import Outlook
from agent.privileges import missing_privileges
from agent.publisher import Publisher
from agent.records import Records
from agent.seeds import Seeds
from agent.standing import state_of
from agent.statefile import StateFile
from agent.world import World
from config.addresses import Auto
from config.transaction import Reloader
from egress import placement
from egress.claims import Claims
from egress.decision import Timing
from egress.keeper import Keeper
from egress.lan import Segments
from egress.moves import Moves
from egress.netlink import Netlink
from gossip.admission import Admission
from gossip.machine import Machine
from gossip.node import Node
from gossip.peer import Address

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AsyncExitStack
    from pathlib import Path

    from agent.reloading import Reloading
    from agent.systemd import Notifier
    from config.load import Attempt
    from config.parse import Loaded
    from config.remote import LayerSource
    from config.schema.settings import Settings
    from egress.model import IP
    from gossip.wire.packet import Envelope

EX_CONFIG = 78
"""sysexits.h; the service manager does not try again after it."""

log = structlog.get_logger("wayout.daemon")


class StartError(Exception):
    """The daemon cannot start: what, why, what to do. `code` is the exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """The built daemon, as `daemon` runs it and says farewell to it."""

    began: float
    mailbox: Mailbox
    kernel: Netlink
    lan: Segments
    keeper: Keeper
    gateway: Gateway
    health: Health
    node: Node
    controller: Controller
    seeds: Seeds
    records: Records
    history: History
    reloading: Reloading
    reloader: Reloader
    rotation: Rotation

    @property
    def settings(self) -> Settings:
        """What runs now."""
        return self.reloader.settings

    @property
    def restarts(self) -> bool:
        """Whether a stop at this moment was announced as a restart."""
        return asyncio.get_running_loop().time() <= self.controller.world.restart_until

    def found(self, addresses: tuple[Address, ...]) -> None:
        """Seeds were looked up: gossip tries those that are no members."""
        now = asyncio.get_running_loop().time()
        self.node.perform(self.node.machine.set_seeds(addresses, now))

    def headline(self) -> str:
        """One line for `systemctl status`."""
        shot = self.controller.snapshot
        if shot is None:
            return "starting"
        alive = sum(member.health.present for member in shot.world.members.values())
        total = sum(len(egress.ips) for egress in shot.egresses)
        line = f"carries {len(shot.carried)} of {total} addresses, {alive} members"
        if self.reloader.stale:
            return f"{line}, the configuration on disk was refused"
        if self.reloader.pending_restart:
            return f"{line}, a restart is pending"
        return line


@dataclass(frozen=True, slots=True)
class Start:
    """What a daemon begins with; `refused` and `layers` as in `daemon.run`."""

    loaded: Loaded
    path: Path
    overrides: tuple[str, ...]
    refused: Attempt | None = None
    layers: LayerSource | None = None


async def build(start: Start, doors: AsyncExitStack, notifier: Notifier) -> House:
    """Open every door; StartError when one stays shut, with nothing half done."""
    _require_privileges()
    return await _Builder(start, doors, notifier).house()


class _Builder:
    """The order of building: what others need comes first, what can be asked comes last."""

    def __init__(self, start: Start, doors: AsyncExitStack, notifier: Notifier) -> None:
        self._settings = start.loaded.settings
        self._layers = start.layers
        self._began = time.monotonic()
        self._doors = doors
        self._notifier = notifier
        self._loop = asyncio.get_running_loop()
        self._rng = Random()  # noqa: S311 - jitter and probe order
        self._mailbox = Mailbox()
        self._metrics = Metrics()
        self._claims = Claims(self._settings.egress.hash_seed)
        self._moves = Moves(self._settings.node.name, Timing(), self._rng)
        self._reloader = Reloader(
            start.path, start.loaded, overrides=start.overrides, refused=start.refused
        )
        self._history = History(self._settings.state.dir)
        self._clock = self._loop.time
        self._host = ""

    async def house(self) -> House:
        settings = self._settings
        file = StateFile(settings.state.dir)
        records = Records(file, await file.load())
        await self._history.load()
        kernel = Netlink()
        self._doors.callback(kernel.close)
        kernel.trust(records.state.bound)
        address = await self._address(kernel)
        seeds = Seeds(settings.gossip.seeds, address.port, [address], self._rng)
        membership, node = await self._gossip(address)
        controller, keeper, lan = self._ownership(kernel, address, membership, node, records)
        reloading = self._reloading(controller, keeper, node, seeds, membership)
        keyring = KeyDesk(self._rotation, lambda: self._reloader.settings)
        desk = FrontDesk(controller, self._mailbox, reloading, keyring, self._history, address.host)
        await self._listen(desk)
        return House(
            began=self._began,
            mailbox=self._mailbox,
            kernel=kernel,
            lan=lan,
            keeper=keeper,
            gateway=self._gateway,
            health=self._health,
            node=node,
            controller=controller,
            seeds=seeds,
            records=records,
            history=self._history,
            reloading=reloading,
            reloader=self._reloader,
            rotation=self._rotation,
        )

    async def _address(self, kernel: Netlink) -> Address:
        """The address that peers know this node by; egress IPs may move away and never count."""
        gossip, node = self._settings.gossip, self._settings.node
        observed = await kernel.observe()
        taken = {each.binding.ip for each in observed.bound if each.ours}
        taken |= {ip for each in self._settings.egress.egresses.values() for ip in each.ips}
        wish = node.address if isinstance(gossip.bind_address, Auto) else gossip.bind_address
        try:
            own = interfaces.node_address(wish, interfaces.look(), taken=taken)
        except interfaces.AddressError as error:
            raise StartError(str(error)) from error
        return Address(str(own), gossip.bind_port)

    async def _gossip(self, address: Address) -> tuple[Membership, Node]:
        settings = self._settings
        self._host = address.host
        advertised = settings.gossip.advertise_address
        host = address.host if isinstance(advertised, Auto) else str(advertised)
        known_as = replace(address, host=host)
        machine = Machine(
            wiring.identity(settings, settings.node.name, known_as),
            wiring.tuning(settings),
            _envelope(settings),
            self._rng,
            self._clock(),
        )
        membership = Membership(self._mailbox, self._metrics, Claims.read, machine, self._clock)
        node = Node(machine, membership.hear, bind=address, awake=self._moves.look)
        node.admission = Admission(settings.gossip.allowed_cidrs)
        try:
            await node.bind()
        except OSError as error:
            raise StartError(unbindable(address, error)) from error
        self._doors.push_async_callback(node.close)
        self._metrics.socket_failures(node.failures)
        self._keyring(membership, node)
        return membership, node

    def _keyring(self, membership: Membership, node: Node) -> None:
        keys = Keys(node, lambda: self._reloader.settings)
        self._rotation = Rotation(self._settings.node.name, node, keys, self._metrics.dropped)
        membership.route(words.KIND, self._rotation.heard)
        self._reloader.attach(keys.outside)

    def _ownership(
        self,
        kernel: Netlink,
        address: Address,
        membership: Membership,
        node: Node,
        records: Records,
    ) -> tuple[Controller, Keeper, Segments]:
        settings, put = self._settings, self._mailbox.put
        lan = Segments(
            interfaces=lambda: controller.world.observed.interfaces,
            rivals=lambda macs: put(RivalsHeard(macs)),
        )
        self._doors.callback(lan.close)
        self._gateway = Gateway(lan, _gateways, self._mailbox)
        self._health = self._checks(lambda: controller.world, lan)
        lease = settings.egress.lease
        keeper = Keeper(kernel, lease, lambda gone: put(LeaseLapsed(gone)), others=[lan])
        literal = wiring.literal_seeds(settings)
        draining, until = wished(records.state, self._clock())
        start = World(
            me=settings.node.name,
            settings=settings,
            started=self._clock(),
            seeds=tuple(str(each) for each in literal if each != address),
            cluster_digest=self._reloader.digests.cluster,
            node_digest=self._reloader.digests.node,
            config_state=state_of(self._reloader),
            remembered=records.state.members,
            draining=draining,
            drain_until=until,
            fitness=self._health.fitness,
        )
        parts = self._parts(start, membership, node, records, (kernel, lan, keeper))
        controller = Controller(start, parts, records.state.bound)
        return controller, keeper, lan

    def _checks(self, world: Callable[[], World], lan: Segments) -> Health:
        senses = Senses(
            links=lambda: placement.usable(world().observed, wiring.scope(world().settings)),
            interfaces=lambda: world().observed.interfaces,
            gateways=_gateways,
            lan=lan,
        )
        health = Health(senses, self._mailbox, self._metrics, self._rng)
        health.configure(self._settings.health)
        return health

    def _parts(
        self,
        start: World,
        membership: Membership,
        node: Node,
        records: Records,
        hands: tuple[Netlink, Segments, Keeper],
    ) -> Parts:
        kernel, lan, keeper = hands
        publisher = Publisher(start.me, node, self._claims)
        return Parts(
            mailbox=self._mailbox,
            membership=membership,
            publisher=publisher,
            isolation=Isolation(
                burst=lambda now: node.perform(node.machine.burst(now)),
                knock=self._gateway.knock,
            ),
            kernel=kernel,
            lan=lan,
            keeper=keeper,
            outlook=Outlook(self._claims),
            claims=self._claims,
            moves=self._moves,
            metrics=self._metrics,
            records=records,
            journal=Journal(
                start.me, self._metrics, self._history, publisher.moves, kernel.remover
            ),
            gateways=_gateways,
            clock=self._clock,
            wall=time.time,
        )

    def _reloading(
        self,
        controller: Controller,
        keeper: Keeper,
        node: Node,
        seeds: Seeds,
        membership: Membership,
    ) -> Reloading:
        parts = turnover.Parts(
            mailbox=self._mailbox,
            controller=controller,
            keeper=keeper,
            node=node,
            seeds=seeds,
            membership=membership,
            health=self._health,
            metrics=self._metrics,
            notifier=self._notifier,
            rng=self._rng,
            clock=self._clock,
            host=self._host,
            layers=self._layers,
        )
        return turnover.assembled(self._reloader, parts, self._doors)

    async def _listen(self, desk: FrontDesk) -> None:
        listeners = Listeners(desk, self._metrics)
        self._doors.push_async_callback(listeners.close)
        try:
            await listeners.start(self._settings)
        except OSError as error:
            raise StartError(f"cannot listen, {error}") from error
        self._reloader.subscribe(listeners)


def _require_privileges() -> None:
    if missing := missing_privileges():
        raise StartError(
            f"this process lacks {' and '.join(missing)}, without which it can hold no address: "
            "run it as root, or grant them (AmbientCapabilities= in a unit, capabilities in a pod)"
        )


def _envelope(settings: Settings) -> Envelope:
    try:
        return security.envelope(settings)
    except (OSError, ValueError) as error:
        raise StartError(f"cannot use gossip.keyring_file, {error}", EX_CONFIG) from error


def _gateways() -> dict[str, list[IP]]:
    found: dict[str, list[IP]] = {}
    for each in interfaces.look().gateways:
        found.setdefault(each.interface, []).append(each.ip)
    return found
