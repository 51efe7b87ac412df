"""The label header: type 244, length, label; before everything else on the wire."""

from __future__ import annotations

from gossip.wire.messages import WireError

KIND = 244
LABEL_MAX = 255


def header(label: bytes) -> bytes:
    """What goes before a packet, or before what the dialling side of a stream sends."""
    assert len(label) <= LABEL_MAX
    return bytes((KIND, len(label))) + label if label else b""


def strip(data: bytes, label: bytes) -> bytes:
    """The bytes behind the header; WireError unless it carries exactly `label`."""
    if not data or data[0] != KIND:
        if label:
            raise WireError("wrong_label")
        return data
    if len(data) < 2 or data[1] == 0 or len(data) < 2 + data[1]:  # noqa: PLR2004 - type and length
        raise WireError("bad_label")
    end = 2 + data[1]
    if data[2:end] != label:
        raise WireError("wrong_label")
    return data[end:]
