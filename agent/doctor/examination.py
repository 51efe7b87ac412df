"""One round of the doctor: looks at everything, and says what it found, the worst first.

Nothing is changed, and no daemon is needed; where one runs, it is left in peace.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent import interfaces, sysctls, wiring
from agent.doctor import files, firewall, machine, managers, network
from agent.sysctls import Finding, Severity
from config.addresses import Auto
from config.load import DEFAULT_PATH, Source, surroundings
from config.problems import ConfigError
from egress import placement
from egress.kernel import KernelError
from egress.model import Observed
from egress.netlink import Netlink
from gossip.peer import Address

if TYPE_CHECKING:
    from collections.abc import Iterable

    from config.schema.settings import Settings

ORDER = (Severity.ERROR, Severity.WARNING, Severity.NOTE, Severity.OK)
OBSERVE_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class Patient:
    """What is examined: the settings that hold here (defaults if the file does not), and the host.

    `running`: a daemon of ours answers, so its port is rightly taken.
    """

    settings: Settings
    observed: Observed
    running: bool


async def examine(path: str, *, running: bool) -> list[Finding]:
    """Everything, with the configuration at `path`."""
    settings, found = _configured(path)
    observed, trouble = await _observed()
    found += trouble
    patient = Patient(settings, observed, running)
    found += machine.examine()
    found += await asyncio.to_thread(_of_host, patient)
    found += await _of_network(patient)
    return sorted(found, key=lambda each: ORDER.index(each.severity))


def _configured(path: str) -> tuple[Settings, list[Finding]]:
    from config.schema.settings import VERSION, Settings

    outcome = Source(Path(path), surroundings()).attempt().outcome
    if isinstance(outcome, ConfigError) and path == str(DEFAULT_PATH) and not Path(path).exists():
        return Settings(version=VERSION), [files.NO_CONFIG]
    if isinstance(outcome, ConfigError):
        bare = Settings(version=VERSION)
        return bare, list(files.of_config(path, outcome.problems, valid=False))
    found = list(files.of_config(path, outcome.warnings, valid=True))
    return outcome.settings, [*found, *files.of_keys(outcome.settings)]


async def _observed() -> tuple[Observed, list[Finding]]:
    kernel = Netlink()
    try:
        async with asyncio.timeout(OBSERVE_PATIENCE):
            return await kernel.observe(), []
    except (KernelError, TimeoutError) as error:
        why = f"interfaces and addresses could not be looked at ({str(error) or 'timeout'})"
        return Observed(), [Finding(Severity.ERROR, "the kernel does not answer", why)]
    finally:
        kernel.close()


def _of_host(patient: Patient) -> Iterable[Finding]:
    settings, observed = patient.settings, patient.observed
    links = placement.usable(observed, wiring.scope(settings))
    names = [link.name for link in links]
    places = wiring.places(wiring.egresses(settings), observed, wiring.scope(settings))
    return [
        *network.of_links(links, network.mtus(names)),
        *network.of_places(places),
        *network.of_kernel(observed),
        *sysctls.judge(sysctls.read(names)),
        *managers.examine(links),
        *firewall.examine(settings.gossip.bind_port),
        *files.of_state(settings.state.dir),
    ]


async def _of_network(patient: Patient) -> list[Finding]:
    settings, observed = patient.settings, patient.observed
    links = placement.usable(observed, wiring.scope(settings))
    gateways = {
        link.name: [each.ip for each in interfaces.look().gateways if each.interface == link.name]
        for link in links
    }
    found = await network.ask_lan(links, gateways)
    own = {ip for link in observed.interfaces for ip in link.addresses}
    seeds = [each for each in wiring.literal_seeds(settings) if each.host not in map(str, own)]
    found += await network.dial(seeds)
    if not patient.running:
        found += _of_address(patient)
    return found


def _of_address(patient: Patient) -> list[Finding]:
    """Whether this node knows its own address, and could listen there."""
    gossip, node = patient.settings.gossip, patient.settings.node
    taken = {each.binding.ip for each in patient.observed.bound if each.ours}
    taken |= {ip for each in patient.settings.egress.egresses.values() for ip in each.ips}
    wish = node.address if isinstance(gossip.bind_address, Auto) else gossip.bind_address
    try:
        own = interfaces.node_address(wish, interfaces.look(), taken=taken)
    except interfaces.AddressError as error:
        return [Finding(Severity.ERROR, str(error), "a daemon would not start")]
    return [network.of_port(Address(str(own), gossip.bind_port))]
