"""The section `node`: who this node is and how much it may carry."""

from __future__ import annotations

from typing import Annotated

from config.addresses import AUTO, IP, NODE_ADDRESS, Auto, OnInterface
from config.schema.option import (
    DYNAMIC,
    IMMUTABLE,
    STATIC,
    C,
    G,
    N,
    Named,
    Option,
    P,
    Section,
    nothing,
)
from config.types import (
    LABEL,
    LABEL_KEY,
    LABEL_VALUE,
    NODE_NAME,
    SWITCH,
    duration,
    number,
    optional,
    whole,
)

WEIGHT_MAX = 100.0
ADDRESSES_MAX = 10_000


class NodeSection(Section):
    """Who this node is and how much it may carry."""

    name: Annotated[
        str,
        NODE_NAME,
        Option(
            P,
            STATIC,
            "Name of this node in the cluster; the host name if it is not set.",
            "peers know this node, its incarnation and its claims by this name",
            example="node-1",
        ),
    ] = ""
    cluster: Annotated[
        str,
        LABEL,
        Option(
            C,
            IMMUTABLE,
            "Name of the cluster; the same on every node.",
            "nodes of another cluster are not peers",
        ),
    ] = "wayout"
    address: Annotated[
        IP | Auto | OnInterface,
        NODE_ADDRESS,
        Option(
            N,
            STATIC,
            "Address of this node: auto (source of the default route), an IP, or iface:NAME.",
            "the gossip sockets are bound to it and peers would have to learn it anew",
        ),
    ] = AUTO
    stop_timeout: Annotated[
        float,
        duration("1s", "5m"),
        Option(G, DYNAMIC, "How long a stop may take to hand addresses over and leave."),
    ] = 10.0
    restart_timeout: Annotated[
        float,
        duration("1s", "5m"),
        Option(G, DYNAMIC, "How long addresses are kept while the process is replaced."),
    ] = 30.0
    labels: Annotated[
        Named[Annotated[str, LABEL_KEY], Annotated[str, LABEL_VALUE]],
        Option(N, DYNAMIC, "Labels that node_selector and groups look at."),
    ] = nothing()
    zone: Annotated[
        str | None,
        optional(LABEL_VALUE),
        Option(N, DYNAMIC, "Failure zone of this node, such as a rack."),
    ] = None
    eligible: Annotated[
        bool, SWITCH, Option(G, DYNAMIC, "Whether this node may carry egress addresses.")
    ] = True
    weight: Annotated[
        float,
        number(0, WEIGHT_MAX),
        Option(N, DYNAMIC, "Share of addresses relative to other nodes; 0 takes none."),
    ] = 1.0
    max_addresses: Annotated[
        int,
        whole(0, ADDRESSES_MAX),
        Option(G, DYNAMIC, "Most addresses that this node carries; 0 means no limit."),
    ] = 0
    maintenance: Annotated[
        bool,
        SWITCH,
        Option(N, DYNAMIC, "Hand every address over and stay a member (drain)."),
    ] = False
