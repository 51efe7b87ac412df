"""The sections of the daemon itself: interfaces, api, metrics, logging, state, config."""

from __future__ import annotations

from enum import Enum
from ipaddress import IPv4Address
from typing import Annotated

from config.addresses import (
    AUTO,
    AUTO_OR_INTERFACE,
    ENDPOINT,
    ENDPOINT_OR_OFF,
    GLOB,
    Auto,
    Endpoint,
)
from config.schema.option import DYNAMIC, REBIND, STATIC, G, Listed, N, Option, P, Section
from config.types import FOLDER, PATH, choice, duration, optional

DENIED = ("lo", "veth*", "cni*", "docker*", "cali*", "lxc*")


class Level(Enum):
    """Least level that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(Enum):
    """`auto` is console on a terminal and json elsewhere."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


class AutoReload(Enum):
    """`auto` is on in Kubernetes and off on bare metal."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class InterfacesSection(Section):
    """Where addresses may be put."""

    default: Annotated[
        str | Auto,
        AUTO_OR_INTERFACE,
        Option(N, DYNAMIC, "Interface of egresses that name none; auto finds it by subnet."),
    ] = AUTO
    allow: Annotated[
        Listed[Annotated[str, GLOB]],
        Option(N, DYNAMIC, "Patterns of interfaces that may carry addresses."),
    ] = ("*",)
    deny: Annotated[
        Listed[Annotated[str, GLOB]],
        Option(N, DYNAMIC, "Patterns of interfaces that never carry addresses; wins over allow."),
    ] = DENIED


class ApiSection(Section):
    """Where the daemon can be asked."""

    socket: Annotated[
        str,
        PATH,
        Option(P, REBIND, "Unix socket of the client commands.", "the socket is opened at start"),
    ] = "/run/wayout/admin.sock"
    http_listen: Annotated[
        Endpoint | None,
        ENDPOINT_OR_OFF,
        Option(
            N,
            REBIND,
            "Where page, health, API and metrics are served, or off.",
            "the listener is opened at start",
        ),
    ] = Endpoint(IPv4Address("127.0.0.1"), 9765)


class MetricsSection(Section):
    """Where metrics are served."""

    listen: Annotated[
        Endpoint | None,
        optional(ENDPOINT),
        Option(
            N,
            REBIND,
            "Own listener for metrics; api.http_listen has them if it is not set.",
            "the listener is opened at start",
        ),
    ] = None


class LoggingSection(Section):
    """What is logged."""

    level: Annotated[Level, choice(Level), Option(G, DYNAMIC, "Least level that is logged.")] = (
        Level.INFO
    )
    format: Annotated[
        LogFormat, choice(LogFormat), Option(G, DYNAMIC, "How a line looks: auto, json, console.")
    ] = LogFormat.AUTO


class StateSection(Section):
    """Where the daemon keeps what outlives it."""

    dir: Annotated[
        str,
        PATH,
        Option(
            P,
            STATIC,
            "What outlives a reboot: claims, history.",
            "what was kept would be left behind",
        ),
    ] = "/var/lib/wayout"
    runtime_dir: Annotated[
        str,
        PATH,
        Option(
            P,
            STATIC,
            "What outlives the process alone: bound addresses, restart marks.",
            "what was kept would be left behind",
        ),
    ] = "/run/wayout"


class ConfigSection(Section):
    """How the configuration itself is read."""

    auto_reload: Annotated[
        AutoReload,
        choice(AutoReload),
        Option(P, DYNAMIC, "Whether a changed file is applied without being asked."),
    ] = AutoReload.AUTO
    poll_interval: Annotated[
        float,
        duration("1s", "10m"),
        Option(P, DYNAMIC, "How often the files are looked at."),
    ] = 5.0
    dropin_dir: Annotated[
        str,
        FOLDER,
        Option(
            P,
            STATIC,
            "Folder of drop-ins (*.yaml, in byte order), beside the main file.",
            "the sources of a running configuration do not move",
        ),
    ] = "conf.d"
