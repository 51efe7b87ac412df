"""The section `health`: what a node checks of itself before it calls itself fit."""

from __future__ import annotations

import re
from enum import Enum
from typing import Annotated, Self

from pydantic import model_validator

from config.addresses import EGRESS_IP, INTERFACE, IP, Seed, read_seed
from config.problems import quoted
from config.schema.option import DYNAMIC, G, Listed, Named, Option, Section, nothing
from config.types import (
    ANY_TEXT,
    PATH,
    SWITCH,
    Form,
    choice,
    duration,
    number,
    optional,
    refuse,
    text,
    text_of,
    whole,
)

NAME_MAX = 24
"""Names of failing checks travel in the metadata of a node, where bytes are few."""
CHECK_NAME = text(
    re.compile(r"[a-z0-9]([-a-z0-9_]*[a-z0-9])?"),
    "lower case letters, digits, '-' and '_'",
    NAME_MAX,
)
URL = text(
    re.compile(r"https?://[^\s/?#@]+([/?#]\S*)?"),
    "a URL that begins with http:// or https://, without a password",
    2048,
)
ARGUMENTS_MAX = 64
ROUNDS_MAX = 100


class CheckType(Enum):
    """How a check asks."""

    CARRIER = "carrier"
    GATEWAY = "gateway"
    TCP = "tcp"
    HTTP = "http"
    EXEC = "exec"
    FILE = "file"


class Action(Enum):
    """`ineligible` hands every address over; `warn` only says so."""

    INELIGIBLE = "ineligible"
    WARN = "warn"


def _target(value: object) -> Seed:
    found = read_seed(text_of(value, "write HOST:PORT"))
    if found.port is None:
        refuse(f"is {quoted(str(value))}", "write HOST:PORT, such as 192.0.2.10:443")
    return found


TARGET = Form(_target, str, {"type": "string", "x-wayout-format": "HOST:PORT"})
"""A host (name or address) and a port; IPv6 addresses in brackets."""

OWN = {
    CheckType.CARRIER: {"interface"},
    CheckType.GATEWAY: {"interface", "address"},
    CheckType.TCP: {"target"},
    CheckType.HTTP: {"url", "status", "contains", "verify", "ca_file"},
    CheckType.EXEC: {"command"},
    CheckType.FILE: {"path", "contains", "max_age", "absent"},
}
"""The fields that a type has besides those that all have."""
NEEDED = {
    CheckType.TCP: "target",
    CheckType.HTTP: "url",
    CheckType.EXEC: "command",
    CheckType.FILE: "path",
}
SHARED = {"type", "interval", "timeout", "rise", "fall", "action"}


class CheckEntry(Section):
    """One check: what is asked, how often, and what it takes to change its verdict."""

    type: Annotated[
        CheckType,
        choice(CheckType),
        Option(G, DYNAMIC, "How it asks: carrier, gateway, tcp, http, exec or file."),
    ]
    interval: Annotated[
        float, duration("100ms", "1h"), Option(G, DYNAMIC, "Time between two rounds.")
    ] = 2.0
    timeout: Annotated[
        float,
        duration("50ms", "5m"),
        Option(G, DYNAMIC, "A round that takes longer has failed; programs are killed then."),
    ] = 1.0
    rise: Annotated[
        int,
        whole(1, ROUNDS_MAX),
        Option(G, DYNAMIC, "Rounds in a row that must pass before a failed check is well."),
    ] = 2
    fall: Annotated[
        int,
        whole(1, ROUNDS_MAX),
        Option(G, DYNAMIC, "Rounds in a row that must fail before a check has failed."),
    ] = 3
    action: Annotated[
        Action,
        choice(Action),
        Option(G, DYNAMIC, "ineligible hands every address over; warn only logs and counts."),
    ] = Action.INELIGIBLE
    interface: Annotated[
        str | None,
        optional(INTERFACE),
        Option(
            G, DYNAMIC, "carrier, gateway: interface to look at; all egress interfaces if unset."
        ),
    ] = None
    address: Annotated[
        IP | None,
        optional(EGRESS_IP),
        Option(G, DYNAMIC, "gateway: who must answer ARP or NS; the default gateways if unset."),
    ] = None
    target: Annotated[
        Seed | None,
        optional(TARGET),
        Option(G, DYNAMIC, "tcp: HOST:PORT that must accept a connection."),
    ] = None
    url: Annotated[
        str | None,
        optional(URL),
        Option(G, DYNAMIC, "http: URL that must answer; redirections are not followed."),
    ] = None
    status: Annotated[
        Listed[Annotated[int, whole(100, 599)]],
        Option(G, DYNAMIC, "http: status codes that pass; an empty list means 200 to 399."),
    ] = ()
    verify: Annotated[
        bool,
        SWITCH,
        Option(G, DYNAMIC, "http: whether the certificate of an https URL is verified."),
    ] = True
    ca_file: Annotated[
        str | None,
        optional(PATH),
        Option(G, DYNAMIC, "http: certificates to trust instead of those of the system."),
    ] = None
    command: Annotated[
        Listed[Annotated[str, ANY_TEXT]],
        Option(G, DYNAMIC, "exec: program (absolute path) and its arguments, without a shell."),
    ] = ()
    path: Annotated[
        str | None,
        optional(PATH),
        Option(G, DYNAMIC, "file: the file that must exist."),
    ] = None
    contains: Annotated[
        str | None,
        optional(ANY_TEXT),
        Option(G, DYNAMIC, "file, http: text that must be in the first 64 KiB."),
    ] = None
    max_age: Annotated[
        float | None,
        optional(duration("1s", "365d")),
        Option(G, DYNAMIC, "file: how old its last change may be."),
    ] = None
    absent: Annotated[
        bool, SWITCH, Option(G, DYNAMIC, "file: passes while the file does not exist.")
    ] = False

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        kind, needed = self.type.value, NEEDED.get(self.type)
        strange = [
            name
            for name, field in type(self).model_fields.items()
            if name not in SHARED | OWN[self.type] and getattr(self, name) != field.default
        ]
        if strange:
            takes = ", ".join(sorted(OWN[self.type]))
            refuse(f"has {strange[0]}, for which type {kind} has no use", f"it takes {takes}")
        if needed is not None and not getattr(self, needed):
            refuse(f"has type {kind} and no {needed}", f"write {needed}")
        if self.command and not self.command[0].startswith("/"):
            refuse("has a command without an absolute path", "begin command with /path/to/program")
        if len(self.command) > ARGUMENTS_MAX:
            refuse("has a command that is too long", f"write at most {ARGUMENTS_MAX} arguments")
        if self.absent and (self.contains is not None or self.max_age is not None):
            refuse("has absent beside contains or max_age", "keep one of them")
        return self


class HealthSection(Section):
    """What a node checks of itself before it calls itself fit; damping is after RFC 2439."""

    checks: Annotated[
        Named[Annotated[str, CHECK_NAME], CheckEntry],
        Option(G, DYNAMIC, "The checks by name; a node that fails one carries nothing."),
    ] = nothing()
    damping_half_life: Annotated[
        float,
        duration("1s", "1h"),
        Option(G, DYNAMIC, "After so long half of the penalty for failures is forgotten."),
    ] = 60.0
    damping_suppress: Annotated[
        float,
        number(1, 100),
        Option(G, DYNAMIC, "Penalty (1 for each failure) above which a check is not believed."),
    ] = 3.0
    damping_reuse: Annotated[
        float,
        number(0.1, 100),
        Option(G, DYNAMIC, "Penalty below which it is believed again."),
    ] = 1.0
    damping_longest: Annotated[
        float,
        duration("1s", "1d"),
        Option(G, DYNAMIC, "Longest time that a check is not believed after its last failure."),
    ] = 300.0

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        reuse, suppress = self.damping_reuse, self.damping_suppress
        if reuse >= suppress:
            refuse(
                f"has damping_reuse {reuse:g}, not below damping_suppress {suppress:g}",
                "write a smaller damping_reuse",
            )
        return self
