"""One datagram: label, encryption, checksum and messages, put on and taken off in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gossip.wire import checksum, codec, seal
from gossip.wire import label as labels
from gossip.wire.messages import WireError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gossip.wire.messages import PacketMessage
    from gossip.wire.seal import Keyring


def _no_nonces(_: int) -> bytes:
    raise AssertionError("an envelope with a keyring needs a source of nonces")


@dataclass(frozen=True, slots=True)
class Envelope:
    """The outer layers that all packets of a cluster share.

    `nonces` gives so many random bytes. With `verify_outgoing` false packets leave in the clear,
    with `verify_incoming` false clear ones are taken: together they allow a rolling switch.
    """

    label: bytes = b""
    keyring: Keyring | None = None
    verify_incoming: bool = True
    verify_outgoing: bool = True
    nonces: Callable[[int], bytes] = _no_nonces

    @property
    def sealing(self) -> Keyring | None:
        """The ring that seals what leaves, if anything does."""
        return self.keyring if self.verify_outgoing else None

    @property
    def overhead(self) -> int:
        """Bytes that closing adds, the checksum left out."""
        head = 2 + len(self.label) if self.label else 0
        return head + (seal.OVERHEAD if self.sealing is not None else 0)

    def close(self, plain: bytes, *, crc: bool) -> bytes:
        """A message or compound as it goes over the wire; `crc` for peers known to take it."""
        data = checksum.close(plain) if crc else plain
        if (ring := self.sealing) is not None:
            data = ring.seal(data, self.label, self.nonces(seal.NONCE))
        return labels.header(self.label) + data if self.label else data

    def open(self, data: bytes) -> tuple[PacketMessage, ...]:
        """The messages of a datagram; WireError when it is not one of ours."""
        if len(data) > codec.PACKET_MAX:
            raise WireError("too_long")
        inner = labels.strip(data, self.label)
        if self.keyring is not None:
            inner = self._unsealed(inner, self.keyring)
        return codec.decode_packet(checksum.open_(inner))

    def _unsealed(self, data: bytes, ring: Keyring) -> bytes:
        try:
            return ring.open(data, self.label)
        except WireError:
            if self.verify_incoming:
                raise
            return data
