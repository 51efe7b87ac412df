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
from config.schema.option import DYNAMIC, REBIND, STATIC, C, G, Listed, N, Option, P, Section
from config.types import FOLDER, PATH, SWITCH, choice, duration, optional

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
    level_ttl: Annotated[
        float,
        duration("0s", "7d"),
        Option(
            N,
            DYNAMIC,
            "After how long a level that a group or one node has falls back by itself to what the "
            "files say for all nodes; 0s never.",
        ),
    ] = 0.0
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
    inotify: Annotated[
        bool,
        SWITCH,
        Option(
            P, DYNAMIC, "Whether the kernel tells of changed files, so that none waits for a poll."
        ),
    ] = True
    debounce: Annotated[
        float,
        duration("10ms", "10s"),
        Option(P, DYNAMIC, "How long nothing must have been asked or changed before a reload."),
    ] = 0.25
    debounce_max: Annotated[
        float,
        duration("10ms", "1m"),
        Option(P, DYNAMIC, "How long a reload is put off at most while changes go on."),
    ] = 2.0
    min_reload_interval: Annotated[
        float,
        duration("0s", "10m"),
        Option(P, DYNAMIC, "Least time between two reloads that nobody asked for."),
    ] = 5.0
    prepare_timeout: Annotated[
        float,
        duration("1s", "1m"),
        Option(P, DYNAMIC, "How long all parts together may take to get ready for a reload."),
    ] = 10.0
    confirm_timeout: Annotated[
        float,
        duration("0s", "5m"),
        Option(
            C,
            DYNAMIC,
            "How long a changed gossip section may leave this node without peers before it is "
            "rolled back; 0s never.",
        ),
    ] = 15.0
    drift_grace: Annotated[
        float,
        duration("0s", "1h"),
        Option(C, DYNAMIC, "How long members may differ before that counts as drift."),
    ] = 120.0
    start_with_last_good: Annotated[
        bool,
        SWITCH,
        Option(
            P,
            STATIC,
            "Whether a start with broken files takes the settings that ran last.",
            "it is asked at start alone",
        ),
    ] = False
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
