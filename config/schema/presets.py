"""Timings by name: what `gossip.preset` puts just above the built-in defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.schema.gossip import Preset

if TYPE_CHECKING:
    from collections.abc import Mapping

PRESETS: Mapping[Preset, Mapping[str, str | int]] = {
    Preset.DEFAULT: {},
    # About half of every default: for a quiet LAN where packets and wake-ups are cheap.
    Preset.FAST: {
        "probe_interval": "200ms",
        "probe_timeout": "100ms",
        "watch_interval": "50ms",
        "gossip_interval": "100ms",
        "push_pull_interval": "15s",
        "suspicion_mult": 3,
    },
}
