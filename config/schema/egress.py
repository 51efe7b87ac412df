"""The section `egress`: the addresses, what they apply to, and who may carry them."""

from __future__ import annotations

import re
from enum import Enum
from typing import Annotated, Self

from pydantic import model_validator

from config.addresses import EGRESS_IP, INTERFACE, IP, NETWORK, Network
from config.schema.option import DYNAMIC, IMMUTABLE, C, Listed, Named, Option, Section, nothing
from config.types import (
    ANY_TEXT,
    LABEL_KEY,
    LABEL_VALUE,
    NODE_NAME,
    SHARE_OR_OFF,
    choice,
    duration,
    number,
    optional,
    refuse,
    text,
    whole,
)

PRIORITY_MAX = 1_000_000
EGRESS_NAME = text(
    re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"), "letters, digits, '-', '_' and '.'", 63
)


class Partition(Enum):
    """What a node does that sees less than half of the members."""

    MAJORITY = "majority"
    KEEP = "keep"
    RELEASE = "release"


class Failback(Enum):
    """When an address goes back to the node that scores higher."""

    IMMEDIATE = "immediate"
    DELAYED = "delayed"
    NEVER = "never"


class Failover(Enum):
    """`none` means that an egress stays with its owner and goes nowhere else."""

    AUTO = "auto"
    NONE = "none"


class Operator(Enum):
    """How a match expression looks at a label."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class Expression(Section):
    """One condition on one label."""

    key: Annotated[str, LABEL_KEY, Option(C, DYNAMIC, "Label to look at.")]
    operator: Annotated[
        Operator, choice(Operator), Option(C, DYNAMIC, "In, NotIn, Exists or DoesNotExist.")
    ]
    values: Annotated[
        Listed[Annotated[str, LABEL_VALUE]],
        Option(C, DYNAMIC, "Values for In and NotIn; none for the others."),
    ] = ()

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        needs = self.operator in (Operator.IN, Operator.NOT_IN)
        if needs and not self.values:
            refuse(f"{self.operator.value} has no values", "write values: [a, b]")
        if not needs and self.values:
            refuse(f"{self.operator.value} takes no values", "remove them")
        return self


class NodeSelector(Section):
    """Which nodes may carry an egress; empty means all."""

    match_labels: Annotated[
        Named[Annotated[str, LABEL_KEY], Annotated[str, LABEL_VALUE]],
        Option(C, DYNAMIC, "Labels that a node must have."),
    ] = nothing()
    match_expressions: Annotated[
        Listed[Expression], Option(C, DYNAMIC, "Conditions that a node must meet, all of them.")
    ] = ()


class AppliedTo(Section):
    """Which traffic leaves from the address; empty means the address alone, without SNAT."""

    ip_blocks: Annotated[
        Listed[Annotated[Network, NETWORK]],
        Option(C, DYNAMIC, "Source networks whose traffic leaves from this address."),
    ] = ()


class EgressEntry(Section):
    """One egress: an address for each family, what it applies to, who may carry it."""

    egress_ip: Annotated[
        IP | None, optional(EGRESS_IP), Option(C, DYNAMIC, "The address, if there is one.")
    ] = None
    egress_ips: Annotated[
        Listed[Annotated[IP, EGRESS_IP]],
        Option(C, DYNAMIC, "An IPv4 and an IPv6 address that always move together."),
    ] = ()
    applied_to: Annotated[
        AppliedTo, Option(C, DYNAMIC, "Which traffic leaves from the address.")
    ] = AppliedTo()
    node_selector: Annotated[NodeSelector, Option(C, DYNAMIC, "Which nodes may carry it.")] = (
        NodeSelector()
    )
    failback: Annotated[
        Failback | None,
        optional(choice(Failback)),
        Option(C, DYNAMIC, "Fail-back of this egress; egress.failback if it is not set."),
    ] = None
    priority: Annotated[
        int,
        whole(0, PRIORITY_MAX),
        Option(C, DYNAMIC, "Where selections overlap or capacity is short, the highest wins."),
    ] = 0
    pin: Annotated[
        str | None,
        optional(NODE_NAME),
        Option(C, DYNAMIC, "Node that carries it whenever that node can."),
    ] = None
    interface: Annotated[
        str | None,
        optional(INTERFACE),
        Option(C, DYNAMIC, "Interface to put it on; interfaces.default if it is not set."),
    ] = None
    failover: Annotated[
        Failover,
        choice(Failover),
        Option(C, DYNAMIC, "Whether another node takes over: auto or none."),
    ] = Failover.AUTO

    @property
    def ips(self) -> tuple[IP, ...]:
        """The addresses, IPv4 first."""
        if not self.egress_ips:
            return () if self.egress_ip is None else (self.egress_ip,)
        single = () if self.egress_ip is None else (self.egress_ip,)
        return tuple(sorted((*single, *self.egress_ips), key=lambda ip: ip.version))

    @model_validator(mode="after")
    def _addressed(self) -> Self:
        if self.egress_ip is not None and not self.egress_ips:
            return self  # Nearly all of thousands.
        if self.egress_ip is not None:
            refuse("has egress_ip and egress_ips", "keep one of the two")
        if not self.ips:
            refuse("has no address", "write egress_ip: ADDRESS")
        if len({ip.version for ip in self.ips}) != len(self.ips):
            refuse("has two addresses of one family", "write one egress for each of them")
        return self


class EgressSection(Section):
    """The addresses and the rules of ownership."""

    egresses: Annotated[
        Named[Annotated[str, EGRESS_NAME], EgressEntry],
        Option(C, DYNAMIC, "The egresses by name."),
    ] = nothing()
    partition: Annotated[
        Partition,
        choice(Partition),
        Option(C, DYNAMIC, "What a node does that sees less than half of the members."),
    ] = Partition.MAJORITY
    failback: Annotated[
        Failback,
        choice(Failback),
        Option(C, DYNAMIC, "When addresses go back to the node that scores higher."),
    ] = Failback.DELAYED
    failback_delay: Annotated[
        float,
        duration("0s", "1d"),
        Option(C, DYNAMIC, "How long a node must be healthy before a delayed fail-back."),
    ] = 30.0
    lease: Annotated[
        float,
        duration("2s", "1m"),
        Option(C, DYNAMIC, "Lifetime that the kernel enforces; renewed after a quarter of it."),
    ] = 3.0
    load_factor: Annotated[
        float,
        number(1, 10),
        Option(C, DYNAMIC, "How far above its share a node may be loaded: 1.1 is 10 % above."),
    ] = 1.1
    hash_seed: Annotated[
        str,
        ANY_TEXT,
        Option(
            C,
            IMMUTABLE,
            "Seed of the ownership scores; another seed is another layout.",
            "nodes with different seeds elect different owners",
        ),
    ] = ""
    removal_guard: Annotated[
        float | None,
        SHARE_OR_OFF,
        Option(C, DYNAMIC, "A reload that drops more of the egresses is refused; off lets it."),
    ] = 0.5
