"""The section `gossip`: membership, its timing and its security."""

from __future__ import annotations

import re
from enum import Enum
from typing import Annotated

from config.addresses import (
    AUTO,
    AUTO_OR_IP,
    AUTO_OR_USABLE,
    IP,
    NETWORK,
    PORT_MAX,
    SEED,
    Auto,
    Network,
    Seed,
)
from config.problems import quoted
from config.schema.option import DYNAMIC, IMMUTABLE, STATIC, C, G, Listed, N, Option, P, Section
from config.types import PATH, Form, choice, duration, optional, refuse, text, text_of, whole

MEMBERS_MAX = 10_000
VERSION_MAX = 255
LABEL_BYTES_MAX = 255


class Preset(Enum):
    """A set of timings; single options still win over it."""

    DEFAULT = "default"
    FAST = "fast"


class Encryption(Enum):
    """`permissive` seals what it sends and still reads plain packets: the step between."""

    OFF = "off"
    PERMISSIVE = "permissive"
    REQUIRED = "required"


_VERSIONS = {"none": (0, 0, 0), "serf": (2, 5, 5)}


def _versions(value: object) -> tuple[int, int, int]:
    found = text_of(value, 'write none, serf, or "MIN,MAX,CURRENT"')
    if found in _VERSIONS:
        return _VERSIONS[found]
    if not re.fullmatch(r"[0-9]{1,3},[0-9]{1,3},[0-9]{1,3}", found):
        refuse(f"is {quoted(found)}", 'write none, serf, or three numbers such as "2,5,5"')
    low, high, current = (int(each) for each in found.split(","))
    if not low <= current <= high <= VERSION_MAX:
        refuse(f"is {quoted(found)}", f"write MIN <= CURRENT <= MAX <= {VERSION_MAX}")
    return low, high, current


def _show_versions(value: tuple[int, int, int]) -> str:
    for word, versions in _VERSIONS.items():
        if versions == value:
            return word
    return ",".join(str(each) for each in value)


VERSIONS = Form(_versions, _show_versions, {"type": "string", "examples": ["none", "serf"]})
LABEL = text(re.compile(r"[\x21-\x7e]*"), "printable letters without spaces", LABEL_BYTES_MAX)


class GossipSection(Section):
    """Membership, its timing and its security."""

    bind_address: Annotated[
        IP | Auto,
        AUTO_OR_IP,
        Option(
            N,
            STATIC,
            "Address to listen on (UDP and TCP); auto is the node's address.",
            "the sockets of a running member cannot move",
        ),
    ] = AUTO
    bind_port: Annotated[
        int,
        whole(1, PORT_MAX),
        Option(
            C,
            STATIC,
            "Port to listen on, UDP and TCP; the same on every node.",
            "the sockets of a running member cannot move",
        ),
    ] = 7955
    advertise_address: Annotated[
        IP | Auto,
        AUTO_OR_USABLE,
        Option(
            N,
            STATIC,
            "Address that peers are told; auto is the one listened on.",
            "peers would have to learn this node anew",
        ),
    ] = AUTO
    seeds: Annotated[
        Listed[Annotated[Seed, SEED]],
        Option(G, DYNAMIC, "Members to join through: addresses or names, with or without port."),
    ] = ()
    preset: Annotated[
        Preset,
        choice(Preset),
        Option(C, DYNAMIC, "Timings to begin with; options that are set win over it."),
    ] = Preset.DEFAULT
    keyring_file: Annotated[
        str | None,
        optional(PATH),
        Option(
            P,
            DYNAMIC,
            "File with one base64 key in a line; the first encrypts, all decrypt.",
            sensitive=True,
        ),
    ] = None
    encryption: Annotated[
        Encryption,
        choice(Encryption),
        Option(C, DYNAMIC, "Whether packets are sealed; go off, permissive, required."),
    ] = Encryption.OFF
    delegate_version: Annotated[
        tuple[int, int, int],
        VERSIONS,
        Option(
            C,
            IMMUTABLE,
            'What we tell other memberlist programs: none, serf, or "MIN,MAX,CURRENT".',
            "members that do not agree refuse each other",
        ),
    ] = (0, 0, 0)
    label: Annotated[
        str,
        LABEL,
        Option(
            C,
            IMMUTABLE,
            "Label in front of every packet; only equal labels talk.",
            "members with another label do not hear each other",
        ),
    ] = ""
    allowed_cidrs: Annotated[
        Listed[Annotated[Network, NETWORK]],
        Option(C, DYNAMIC, "Networks that members may come from; an empty list means all."),
    ] = ()
    expected_nodes: Annotated[
        int | None,
        optional(whole(1, MEMBERS_MAX)),
        Option(C, DYNAMIC, "Least number of nodes to count with, for majority and timing."),
    ] = None
    join_timeout: Annotated[
        float,
        duration("0s", "5m"),
        Option(G, DYNAMIC, "How long a start waits for a first peer before it acts alone."),
    ] = 5.0
    rejoin_interval: Annotated[
        float,
        duration("1s", "1h"),
        Option(G, DYNAMIC, "How often seeds that are no members are tried, with jitter."),
    ] = 5.0
    probe_interval: Annotated[
        float,
        duration("100ms", "30s"),
        Option(C, DYNAMIC, "Time between two probes."),
    ] = 0.5
    probe_timeout: Annotated[
        float,
        duration("20ms", "10s"),
        Option(C, DYNAMIC, "How long a direct answer may take before others are asked."),
    ] = 0.2
    watch_interval: Annotated[
        float,
        duration("20ms", "1s"),
        Option(C, DYNAMIC, "Time between heartbeats of a node that carries addresses."),
    ] = 0.1
    gossip_interval: Annotated[
        float,
        duration("20ms", "5s"),
        Option(C, DYNAMIC, "Time between two rounds of rumours."),
    ] = 0.2
    push_pull_interval: Annotated[
        float,
        duration("1s", "10m"),
        Option(C, DYNAMIC, "Time between two full exchanges with one peer over TCP."),
    ] = 30.0
    indirect_checks: Annotated[
        int,
        whole(0, 8),
        Option(C, DYNAMIC, "How many peers are asked to reach one that does not answer."),
    ] = 3
    suspicion_mult: Annotated[
        int,
        whole(2, 10),
        Option(C, DYNAMIC, "Factor of the time that a suspect has to refute."),
    ] = 4
    suspicion_max_mult: Annotated[
        int,
        whole(1, 12),
        Option(C, DYNAMIC, "How much longer that time is while only one member suspects."),
    ] = 6
    awareness_max: Annotated[
        int,
        whole(1, 16),
        Option(C, DYNAMIC, "Worst local health score; it stretches our own timeouts."),
    ] = 8
    retransmit_mult: Annotated[
        int,
        whole(1, 10),
        Option(C, DYNAMIC, "Factor of how often a rumour is passed on."),
    ] = 4
    fanout: Annotated[
        int,
        whole(1, 8),
        Option(C, DYNAMIC, "How many peers hear the rumours of a round."),
    ] = 3
