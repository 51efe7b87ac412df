"""Other programs that put addresses on interfaces, or take away what they did not put there."""

from __future__ import annotations

import configparser
from pathlib import Path
from typing import TYPE_CHECKING

from agent.sysctls import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from egress.model import Interface

ROOT = Path("/")
RIVALS = {
    "keepalived": "keepalived",
    "kube-vip": "kube-vip",
    "speaker": "MetalLB",
    "antrea-agent": "Antrea",
    "ucarp": "UCARP",
    "uvrrpd": "VRRP",
    "vrrpd": "VRRP",
    "pacemakerd": "Pacemaker",
    "vip-manager": "vip-manager",
    "openelb-manager": "OpenELB",
}
"""Programs that hold addresses for a cluster, by the name of their process."""
KEEPS = {"yes", "true", "1", "on", "static"}
"""Values of KeepConfiguration= with which networkd leaves static addresses alone."""
COMM_MAX = 15
"""Letters of a process name that the kernel keeps."""


def examine(links: tuple[Interface, ...], root: Path = ROOT) -> Iterator[Finding]:
    """Everybody who may get in the way on these interfaces."""
    running = processes(root)
    rivals = [title for name, title in RIVALS.items() if name[:COMM_MAX] in running]
    for title in dict.fromkeys(rivals):
        yield Finding(
            Severity.WARNING,
            f"{title} runs on this host",
            "two programs that hold the same address fight for it",
            f"make sure that no egress IP is configured in {title}",
        )
    if not rivals:
        yield Finding(Severity.OK, "no other VIP manager runs here", "nobody else holds addresses")
    for link in links:
        yield from _network_manager(link, root)
        yield from _networkd(link, root)


def processes(root: Path = ROOT) -> frozenset[str]:
    """Names of all processes."""
    names = set()
    for each in root.glob("proc/[0-9]*/comm"):
        try:
            names.add(each.read_text().strip())
        except OSError:  # it has just ended
            continue
    return frozenset(names)


def _network_manager(link: Interface, root: Path) -> Iterator[Finding]:
    told = _section(root / f"run/NetworkManager/devices/{link.index}", "device")
    if told.get("managed", "").lower() == "true":
        yield Finding(
            Severity.WARNING,
            f"NetworkManager manages {link.name}",
            "it may drop egress IPs when a connection is activated again; they are put back, late",
            f"leave it to others: nmcli device set {link.name} managed no, or a keyfile "
            "unmanaged-devices",
        )


def _networkd(link: Interface, root: Path) -> Iterator[Finding]:
    path = root / f"run/systemd/netif/links/{link.index}"
    told = _section(path, "link", bare=True)
    if told.get("admin_state", "unmanaged") in {"unmanaged", "linger", "pending"}:
        return
    file = told.get("network_file", "")
    if any(_keeps(each) for each in _with_dropins(file, root)):
        yield Finding(
            Severity.OK,
            f"systemd-networkd keeps addresses on {link.name}",
            "egress IPs survive its restart",
        )
        return
    yield Finding(
        Severity.WARNING,
        f"systemd-networkd manages {link.name}",
        "it drops addresses that it does not know when it starts or reconfigures the link; "
        "they are put back, late",
        f"KeepConfiguration=static under [Network] of {file or 'its .network file'}, and "
        "ManageForeignRoutes=no in networkd.conf",
    )


def _with_dropins(file: str, root: Path) -> Iterator[Path]:
    if not file:
        return
    yield root / file.lstrip("/")
    name = Path(file).name
    for folder in ("etc", "run", "usr/lib"):
        yield from sorted((root / folder / "systemd/network" / f"{name}.d").glob("*.conf"))


def _keeps(path: Path) -> bool:
    return _section(path, "Network").get("keepconfiguration", "").lower() in KEEPS


def _section(path: Path, name: str, *, bare: bool = False) -> Mapping[str, str]:
    """A section of a file as services write it; empty if there is none, or it makes no sense."""
    parser = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    try:
        text = path.read_text()
        parser.read_string(f"[{name}]\n{text}" if bare else text)
    except (OSError, UnicodeDecodeError, configparser.Error):
        return {}
    if not parser.has_section(name):
        return {}
    return {key: value or "" for key, value in parser.items(name)}
