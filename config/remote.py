"""The layer of one node that lies elsewhere: a document named by an annotation of the node.

Where it comes from is somebody else's business (a `LayerSource`: the API of a cluster, a fake).
Here is what an annotation may say, and what holds while a document cannot be had.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, assert_never

from config.documents import Text
from config.problems import ConfigError, Problem, quoted
from config.tree import Mark
from config.yaml import SIZE_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

ANNOTATION = "wayout.dev/config-source"
KEY = "config.yaml"
PREFIX = "wayout-"
FILLED = 0.8
"""Share of its size limit at which a shared object deserves a warning."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_KEY = re.compile(r"[-._A-Za-z0-9]{1,253}")
_NAME_MAX, _NAMESPACE_MAX = 253, 63
_WRITE = "write [namespace/]name[#key], for example wayout-rack7#config.yaml"


@dataclass(frozen=True, slots=True)
class Reference:
    """Which key of which object has the layer."""

    namespace: str
    name: str
    key: str = KEY

    def __str__(self) -> str:
        return f"configmap {self.namespace}/{self.name}#{self.key}"


@dataclass(frozen=True, slots=True)
class Reach:
    """What annotations may name: `namespace` is our own, `prefix` begins every name.

    A node may write its own annotations, so the limits keep it from reading what others own.
    """

    namespace: str = "wayout"
    prefix: str = PREFIX
    others: bool = False

    def reference(self, said: str) -> Reference:
        """What an annotation names. Raises ConfigError, which says what to write."""
        where, _, key = said.partition("#")
        namespace, slash, name = where.rpartition("/")
        found = Reference(namespace if slash else self.namespace, name, key or KEY)
        wrong = self._wrong(said, found, keyed="#" in said)
        if wrong is not None:
            raise ConfigError((Problem(Mark(f"annotation {ANNOTATION}"), "", *wrong),))
        return found

    def _wrong(self, said: str, found: Reference, *, keyed: bool) -> tuple[str, str] | None:
        if not said.strip():
            return "is empty", f"remove it, or {_WRITE}"
        well_named = _NAME.fullmatch(found.name) and len(found.name) <= _NAME_MAX
        spaced = _NAME.fullmatch(found.namespace) and len(found.namespace) <= _NAMESPACE_MAX
        if not well_named or not spaced or "." in found.namespace:
            return f"is {quoted(said)}", _WRITE
        if not _KEY.fullmatch(found.key) or (keyed and said.endswith("#")):
            return f"names the key {quoted(found.key if said[-1] != '#' else '')}", _WRITE
        if found.namespace != self.namespace and not self.others:
            return f"names the namespace {found.namespace}", f"use an object of {self.namespace}"
        if not found.name.startswith(self.prefix):
            return f"names {found.name}", f"name an object that begins with {self.prefix}"
        return None


class SourceError(Exception):
    """The source does not answer; `reason` is for people.

    `wait`: seconds for which it wants to be left alone. `expired`: what was read is too old to
    be followed and must be read anew.
    """

    def __init__(self, reason: str, *, wait: float = 0.0, expired: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait = wait
        self.expired = expired


class LayerSource(Protocol):
    """Where annotations and documents are: known from a read, and followed from there on.

    All methods may raise SourceError; the caller paces itself.
    """

    async def read(self) -> None:
        """Ask for everything anew (a LIST): one request."""
        ...

    async def changed(self) -> bool:
        """Wait for news (a WATCH): True if something changed, False at its normal end."""
        ...

    def annotation(self, node: str) -> str | None:
        """What the annotation of the node says, None if it has none; as last known."""
        ...

    def document(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """The keys and texts of an object, None if there is no such object; as last known."""
        ...


class Standing(Enum):
    """`none`: the node has no layer. `current`: as the source has it now.

    `kept`: as it was last taken, since it cannot be had at the moment.
    """

    NONE = "none"
    CURRENT = "current"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at the source; `reason` says why a layer is kept, or missing."""

    standing: Standing
    text: Text | None = None
    reason: str = ""
    warning: str = ""


class RemoteLayer:
    """The layer of this node, kept while its source is out of reach."""

    def __init__(self, reach: Reach | None = None, kept: Text | None = None) -> None:
        """`kept` is what a former process took last, if anything."""
        self._reach = reach or Reach()
        self._kept = kept
        self._fresh_at: float | None = None
        self.last = Reading(Standing.NONE if kept is None else Standing.KEPT, kept)

    def stale_seconds(self, now: float) -> float:
        """For how long the layer in force has not been confirmed by its source."""
        match self.last.standing:
            case Standing.KEPT:
                return 0.0 if self._fresh_at is None else max(0.0, now - self._fresh_at)
            case Standing.NONE | Standing.CURRENT:
                return 0.0
            case _:
                assert_never(self.last.standing)

    def look(self, source: LayerSource, node: str, now: float) -> Reading:
        """What the source says of `node`.

        Unavailable is not invalid: without an answer, or with an object that is not there, what
        was taken last still holds. An annotation that makes no sense raises ConfigError.
        """
        try:
            said = source.annotation(node)
            if said is None:
                self._kept = None
                return self._told(Reading(Standing.NONE), now)
            wanted = self._reach.reference(said)
            found = source.document(wanted.namespace, wanted.name)
        except SourceError as error:
            return self._withheld(error.reason)
        if found is None or wanted.key not in found:
            lacking = "does not exist" if found is None else f"has no key {wanted.key}"
            return self._withheld(f"{wanted} {lacking}")
        self._kept = Text(str(wanted), found[wanted.key].encode())
        return self._told(Reading(Standing.CURRENT, self._kept, warning=_full(found)), now)

    def lost(self, reason: str) -> Reading:
        """The source is away: what was taken last still holds."""
        return self._withheld(reason)

    def _told(self, reading: Reading, now: float) -> Reading:
        self._fresh_at = now
        self.last = reading
        return reading

    def _withheld(self, reason: str) -> Reading:
        standing = Standing.NONE if self._kept is None else Standing.KEPT
        self.last = Reading(standing, self._kept, reason)
        return self.last


def _full(found: Mapping[str, str]) -> str:
    size = sum(len(each.encode()) for each in found.values())
    if size < FILLED * SIZE_MAX:
        return ""
    return f"the object holds {size} of {SIZE_MAX} bytes; move nodes into objects of their own"
