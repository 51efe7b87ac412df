"""What one field cannot say: rules over the merged settings, each with an id.

A rule yields findings; it sees nothing but `Settings` and names the paths that it is about.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import ceil
from typing import TYPE_CHECKING

from config.addresses import IP, Auto, Endpoint, Seed, read_ip
from config.problems import Problem, dotted
from config.schema.gossip import Encryption
from config.types import show_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from config.layers import Provenance
    from config.schema.settings import Settings

LATE = 0.5
"""A lease is not renewed within its last half second (DESIGN §5)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`paths`: the field to mend first, then those it does not fit."""

    paths: tuple[tuple[str, ...], ...]
    message: str
    hint: str
    warning: bool = False


def check(
    settings: Settings, provenance: Provenance, ignored: Sequence[tuple[str, ...]] = ()
) -> tuple[list[Problem], list[Problem]]:
    """Problems and warnings, with their places; nothing that is about an `ignored` path."""
    problems: list[Problem] = []
    warnings: list[Problem] = []
    for rule, examine in RULES.items():
        for each in examine(settings):
            if not any(_related(path, other) for path in each.paths for other in ignored):
                target = warnings if each.warning else problems
                target.append(_placed(rule, each, provenance))
    return problems, warnings


def _related(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _placed(rule: str, finding: Finding, provenance: Provenance) -> Problem:
    first, *others = finding.paths
    written = [each for each in others if provenance.origins(each)]
    chosen = first if provenance.origins(first) or not written else written[0]
    mark = provenance.mark(chosen)
    places = [f"{dotted(each)} at {provenance.mark(each)}" for each in written if each != chosen]
    message = f"{finding.message} ({'; '.join(places)})" if places else finding.message
    return Problem(mark, dotted(first), message, finding.hint, rule)


def _gossip(name: str) -> tuple[str, ...]:
    return ("gossip", name)


def _probe_timeout(settings: Settings) -> Iterator[Finding]:
    timeout, interval = settings.gossip.probe_timeout, settings.gossip.probe_interval
    if timeout >= interval:
        yield Finding(
            (_gossip("probe_timeout"), _gossip("probe_interval")),
            f"is {show_seconds(timeout)}, not below probe_interval {show_seconds(interval)}",
            f"write at most {show_seconds(round(interval * 0.4, 3))}",
        )


def _cadence(settings: Settings) -> Iterator[Finding]:
    interval = settings.gossip.probe_interval
    for name in ("gossip_interval", "watch_interval"):
        value = getattr(settings.gossip, name)
        if value > interval:
            yield Finding(
                (_gossip(name), _gossip("probe_interval")),
                f"is {show_seconds(value)}, above probe_interval {show_seconds(interval)}",
                f"write at most {show_seconds(interval)}",
            )


def _lease(settings: Settings) -> Iterator[Finding]:
    lease, interval = settings.egress.lease, settings.gossip.probe_interval
    spare = lease - lease / 4 - LATE
    if spare < interval:
        least = float(ceil((interval + LATE) * 4 / 3))
        yield Finding(
            (("egress", "lease"), _gossip("probe_interval")),
            f"is {show_seconds(lease)}: a stall of one probe interval would cost the addresses",
            f"write at least {show_seconds(least)}",
        )


def _same_address(settings: Settings) -> Iterator[Finding]:
    first: dict[IP, str] = {}
    for name, egress in settings.egress.egresses.items():
        for ip in egress.ips:
            before = first.setdefault(ip, name)
            if before != name:
                yield Finding(
                    (_egress(name), _egress(before)),
                    f"has {ip}, which egress {before} has too",
                    "give each egress an address of its own",
                )


def _egress(name: str) -> tuple[str, ...]:
    return ("egress", "egresses", name)


def _own_address(settings: Settings) -> Iterator[Finding]:
    own = {
        ("node", "address"): settings.node.address,
        _gossip("bind_address"): settings.gossip.bind_address,
        _gossip("advertise_address"): settings.gossip.advertise_address,
    }
    own = {path: address for path, address in own.items() if not isinstance(address, Auto)}
    for name, egress in settings.egress.egresses.items() if own else ():
        carried = egress.ips
        for path, address in own.items():
            if address in carried:
                message = f"has {address}, which is this node's own address"
                hint = "it will not be carried; give it an address that no host has"
                yield Finding((_egress(name), path), message, hint, warning=True)
                break


def _encryption(settings: Settings) -> Iterator[Finding]:
    mode, keyring = settings.gossip.encryption, settings.gossip.keyring_file
    paths = (_gossip("encryption"), _gossip("keyring_file"))
    if mode is not Encryption.OFF and keyring is None:
        hint = "write gossip.keyring_file: /etc/wayout/keys/gossip.keys"
        yield Finding(paths, f"is {mode.value} without keys", hint)
    if mode is Encryption.OFF and keyring is not None:
        hint = "write encryption: permissive, and required once all nodes have it"
        message = "is set, but gossip.encryption is off"
        yield Finding((paths[1], paths[0]), message, hint, warning=True)


def _advertised(settings: Settings) -> Iterator[Finding]:
    bind, advertise = settings.gossip.bind_address, settings.gossip.advertise_address
    paths = (_gossip("advertise_address"), _gossip("bind_address"))
    if isinstance(bind, Auto) or isinstance(advertise, Auto):
        return
    wildcard = bind.is_unspecified
    if bind.version != advertise.version and not (wildcard and bind.version == 6):  # noqa: PLR2004
        message = f"is IPv{advertise.version} while bind_address {bind} is IPv{bind.version}"
        yield Finding(paths, message, f"write an IPv{bind.version} address")


def _allowed(settings: Settings) -> Iterator[Finding]:
    allowed = settings.gossip.allowed_cidrs
    if not allowed:
        return
    for seed in settings.gossip.seeds:
        ip = _literal(seed)
        if ip is not None and not any(ip in network for network in allowed):
            message = f"has the seed {seed}, which allowed_cidrs shut out"
            paths = (_gossip("seeds"), _gossip("allowed_cidrs"))
            yield Finding(paths, message, f"add {ip}/{ip.max_prefixlen} to allowed_cidrs")


def _literal(seed: Seed) -> IP | None:
    return read_ip(seed.host) if ":" in seed.host or seed.host[-1].isdigit() else None


def _alone(settings: Settings) -> Iterator[Finding]:
    expected = settings.gossip.expected_nodes or 0
    if expected > 1 and not settings.gossip.seeds:
        message = f"is empty, but expected_nodes is {expected}"
        paths = (_gossip("seeds"), _gossip("expected_nodes"))
        yield Finding(paths, message, "name a member or two to join through", warning=True)


def _listeners(settings: Settings) -> Iterator[Finding]:
    http, metrics = settings.api.http_listen, settings.metrics.listen
    port = settings.gossip.bind_port
    for path, endpoint in ((("api", "http_listen"), http), (("metrics", "listen"), metrics)):
        if endpoint is not None and endpoint.port == port:
            message = f"uses port {port}, which gossip listens on"
            yield Finding((path, _gossip("bind_port")), message, "write another port")
    if http and metrics and _collide(http, metrics):
        message = f"is {metrics}, which api.http_listen {http} occupies"
        hint = "remove it: metrics are served there too, or write another port"
        yield Finding((("metrics", "listen"), ("api", "http_listen")), message, hint)


def _collide(one: Endpoint, other: Endpoint) -> bool:
    wildcard = one.ip.is_unspecified or other.ip.is_unspecified
    return one.port == other.port and (one.ip == other.ip or wildcard)


def _interfaces(settings: Settings) -> Iterator[Finding]:
    default = settings.interfaces.default
    named: dict[tuple[str, ...], str | Auto] = {("interfaces", "default"): default}
    for name, egress in settings.egress.egresses.items():
        if egress.interface is not None:
            named[(*_egress(name), "interface")] = egress.interface
    for path, interface in named.items():
        if isinstance(interface, Auto):
            continue
        denied = next((p for p in settings.interfaces.deny if fnmatchcase(interface, p)), None)
        if denied is not None:
            message, hint = f"is {interface}, which '{denied}' denies", "take it out of deny"
            yield Finding((path, ("interfaces", "deny")), message, hint)
        elif not any(fnmatchcase(interface, each) for each in settings.interfaces.allow):
            message, hint = f"is {interface}, which is not allowed", "add it to interfaces.allow"
            yield Finding((path, ("interfaces", "allow")), message, hint)


def _same_sources(settings: Settings) -> Iterator[Finding]:
    first: dict[tuple[object, int], str] = {}
    for name, egress in settings.egress.egresses.items():
        for block in egress.applied_to.ip_blocks:
            key = (block, egress.priority)
            before = first.setdefault(key, name)
            if before != name:
                paths = ((*_egress(name), "applied_to", "ip_blocks"), _egress(before))
                message = f"has {block}, which egress {before} has too, at the same priority"
                hint = "the first name wins; give one of them a higher priority"
                yield Finding(paths, message, hint, warning=True)


def _unsteered(settings: Settings) -> Iterator[Finding]:
    for name, egress in settings.egress.egresses.items():
        if egress.applied_to.ip_blocks:
            path = (*_egress(name), "applied_to", "ip_blocks")
            message = "is kept and checked, but this version carries the address alone"
            hint = "set up SNAT to the address yourself until a later version does"
            yield Finding((path,), message, hint, warning=True)


RULES: dict[str, Callable[[Settings], Iterator[Finding]]] = {
    "probe-timeout": _probe_timeout,
    "cadence": _cadence,
    "lease": _lease,
    "same-address": _same_address,
    "own-address": _own_address,
    "encryption": _encryption,
    "advertised": _advertised,
    "allowed": _allowed,
    "alone": _alone,
    "listeners": _listeners,
    "interfaces": _interfaces,
    "same-sources": _same_sources,
    "unsteered": _unsteered,
}
