"""The support archive: what a daemon and its host say of themselves, with every secret struck out.

Nothing goes in that has not been through `Redactor`: the gossip keys that the host knows, and
whatever looks like one.
"""

from __future__ import annotations

import base64
import io
import json
import re
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STRUCK = "[redacted]"
KEY_FILE_MAX = 16384
PART_MAX = 16 * 1024 * 1024
"""Bytes of one file in the archive; of a longer one the end is kept."""
_B64 = "[A-Za-z0-9+/]"
KEYS = re.compile(rf"(?<!{_B64})(?<!=)(?:{_B64}{{22}}==|{_B64}{{32}}|{_B64}{{43}}=)(?!{_B64})(?!=)")
"""Base64 of 16, 24 or 32 bytes, as keys are."""
DIGEST = re.compile(r"[0-9a-f]{32}")
"""Of what has 32 letters, hexadecimal digits are a digest or a boot, and no key."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """Strikes out `secrets`, in base64 and in hexadecimal, and what looks like a key."""

    secrets: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, files: Iterable[str | Path]) -> Redactor:
        """With the keys in these files; one that cannot be read hides nothing that we know."""
        found: set[str] = set()
        for each in files:
            try:
                text = Path(each).read_bytes()[:KEY_FILE_MAX].decode("ascii", "replace")
            except OSError:
                continue
            lines = (line.strip() for line in text.splitlines())
            found |= {line for line in lines if line and not line.startswith("#")}
        return cls(frozenset(spelling for each in found for spelling in _spellings(each)))

    def __call__(self, text: str) -> str:
        """The same without secrets."""
        for each in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(each, STRUCK)
        return KEYS.sub(_struck, text)


def _struck(found: re.Match[str]) -> str:
    return found[0] if DIGEST.fullmatch(found[0]) else STRUCK


def _spellings(key: str) -> Iterable[str]:
    yield key
    try:
        raw = base64.b64decode(key, validate=True)
    except ValueError:
        return
    if raw:
        yield raw.hex()
        yield base64.urlsafe_b64encode(raw).decode()
        yield base64.b64encode(raw).decode().rstrip("=")


def name_of(node: str, at: str) -> str:
    """`wayout-bundle-NODE-TIME.tar.gz`; a node may be called anything."""
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", node)[:64] or "unknown"
    return f"wayout-bundle-{safe}-{at}.tar.gz"


def archive(parts: Mapping[str, object], redact: Redactor, folder: str, at: float) -> bytes:
    """A gzipped tar of text files, JSON where a part is no text, in one folder."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as tar:
        for name, part in parts.items():
            text = part if isinstance(part, str) else json.dumps(part, indent=2, ensure_ascii=False)
            data = redact(text).encode("utf-8", "replace")[-PART_MAX:]
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size, info.mtime, info.mode = len(data), int(at), 0o600
            tar.addfile(info, io.BytesIO(data))
    return target.getvalue()
