"""What is known about a field besides its type: who may set it, and what a change takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WrapSerializer

from config.types import listed

T = TypeVar("T")
K = TypeVar("K")


class Scope(Enum):
    """Which layers may set a field.

    `CLUSTER` fields must be the same on every node, so only the files may set them; `GROUP` ones
    also groups and nodes; `NODE` ones are facts of one node; `PROCESS` ones belong to the host
    and can be set by its files, environment and flags alone.
    """

    CLUSTER = "cluster"
    GROUP = "group"
    NODE = "node"
    PROCESS = "process"


class Modifiability(Enum):
    """What a change takes: a new cluster, a restart, a new socket, or nothing."""

    IMMUTABLE = "immutable"
    STATIC = "static"
    REBIND = "rebind"
    DYNAMIC = "dynamic"


C, G, N, P = Scope.CLUSTER, Scope.GROUP, Scope.NODE, Scope.PROCESS
IMMUTABLE, STATIC = Modifiability.IMMUTABLE, Modifiability.STATIC
REBIND, DYNAMIC = Modifiability.REBIND, Modifiability.DYNAMIC


@dataclass(frozen=True, slots=True)
class Option:
    """Metadata of one field; `restart_reason` is required for what is not live."""

    scope: Scope
    modifiability: Modifiability
    description: str
    restart_reason: str = ""
    unit: str = ""
    since: str = "0.1.0"
    sensitive: bool = False
    example: str = ""

    def __get_pydantic_json_schema__(
        self, core: object, handler: Callable[[object], Mapping[str, object]]
    ) -> dict[str, object]:
        extras = {
            "description": self.description,
            "x-wayout-scope": self.scope.value,
            "x-wayout-modifiability": self.modifiability.value,
            "x-wayout-since": self.since,
        }
        if self.restart_reason:
            extras["x-wayout-restart-reason"] = self.restart_reason
        if self.unit:
            extras["x-wayout-unit"] = self.unit
        return {**handler(core), **extras, **({"writeOnly": True} if self.sensitive else {})}


class Section(BaseModel):
    """A part of the settings: strict, frozen, without unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)

    def __eq__(self, other: object) -> bool:
        """By value; most that are compared are the very same default."""
        return self is other or super().__eq__(other)

    def __hash__(self) -> int:
        """By value, as frozen models have it."""
        return hash((type(self), *(getattr(self, name) for name in type(self).model_fields)))

    def __deepcopy__(self, _memo: dict[int, Any] | None = None) -> Self:
        """Frozen through and through, so a copy would be the same."""
        return self


def _thaw(value: Mapping[str, Any], shown: Callable[[Any], object]) -> object:
    return shown(dict(value))


Named = Annotated[
    dict[K, T],
    AfterValidator(MappingProxyType),
    WrapSerializer(_thaw),
]
"""A map by name that nobody can change."""

Listed = Annotated[tuple[T, ...], BeforeValidator(listed)]
"""A list, frozen as a tuple."""


def nothing() -> Any:  # noqa: ANN401
    """The default of a map: empty, and as frozen as any other."""
    return Field(default_factory=lambda: MappingProxyType({}))
