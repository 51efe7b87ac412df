"""Every decoder of bytes from the network, each as a function that refuses or reads.

`DECODERS[name](data)` returns what was read, or the reason of the refusal as text; whatever else
is raised is a bug. `seeds(name)` gives inputs to begin with. Used by bench/fuzz.py, which looks
for new bytes with coverage as its guide, and by the tests of what it has found.
"""

import base64
import contextlib
import itertools
import json
import random
from pathlib import Path

from agent import facts, notices
from agent.keys import words
from agent.keys.words import Operation
from egress.claims import Claims
from gossip.events import Dropped
from gossip.machine import Machine
from gossip.peer import Address, Identity
from gossip.tuning import default
from gossip.wire import checksum, codec, compound, label, lzw, own, stream
from gossip.wire.messages import Err, Ping, PushPull, User, WireError
from gossip.wire.packet import Envelope
from gossip.wire.seal import Keyring, _unpadded
from gossip.wire.stream import Assembler

TESTS = Path(__file__).resolve().parents[1]
REGRESSIONS = TESTS / "fuzz" / "regressions"
"""Inputs that broke a decoder once: a folder for each decoder, a file for each input."""
VECTORS = [
    json.loads(path.read_text()) for path in sorted((TESTS / "vectors/memberlist").glob("*.json"))
]
LIMIT = 0.05
"""Seconds of processor time that no input may take."""
SPEECH_MAX = 1 << 16
PLACE = Address("10.0.0.9", 7955)


def nonces(size):
    return bytes(range(size))


PLAIN = Envelope()
LABELLED = Envelope(label=b"blue")
RING = Keyring((bytes(16), bytes([1]) * 24, bytes([2]) * 32))
SEALED = Envelope(label=b"blue", keyring=RING, nonces=nonces)
SWITCHING = Envelope(keyring=RING, verify_incoming=False, nonces=nonces)


def _refusing(read):
    def decoder(data):
        try:
            return read(data)
        except WireError as error:
            return error.reason

    return decoder


def _assembled(envelope, *, dialler, data):
    """The first byte cuts the rest into pieces of its size; 0 leaves it whole."""
    step = data[0] if data else 0
    rest = data[1:]
    assembler = Assembler(envelope, dialler=dialler)
    size = step or max(1, len(rest))
    for start in range(0, len(rest), size):
        if (message := assembler.feed(rest[start : start + size])) is not None:
            return message
    return None


def _sealed_inside(data):
    """What somebody with the key may say: the layers within the seal."""
    version = data[0] & 1 if data else 1
    sealed = RING.seal(data[1:], b"blue", nonces(12), version)
    return SEALED.open(label.header(b"blue") + sealed)


def _sealed_stream(data):
    plain = data[1:]
    head = bytes([codec.ENCRYPT]) + (len(plain) + 29).to_bytes(4, "big")
    framed = head + RING.seal(plain, head + b"blue", nonces(12))
    return Assembler(SEALED, dialler=True).feed(framed)


def _valued(read):
    """For readers of plain values: what is no value of ours never reaches them."""

    def decoder(data):
        try:
            _, value = own.unpack(own.MAGIC + b"\x20" + data)
            return read(value)
        except WireError as error:
            return error.reason
        except ValueError as error:
            return str(error)

    return decoder


def _facts(data):
    return facts.read(own.MAGIC + bytes([own.META]) + data)


def _told(data):
    """A fresh machine hears datagrams, each behind its length; the refusals that came of it."""
    machine = Machine(
        Identity("me", Address("10.0.0.1", 7955)), default(), PLAIN, random.Random(1), 0.0
    )
    machine.start(0.0)
    told, now = [], 0.0
    while len(data) > 1 and len(told) < 64:
        size = int.from_bytes(data[:2], "big")
        said, data = data[2 : 2 + size], data[2 + size :]
        now += 0.05
        told += machine.receive(said, PLACE, now).events
        told += machine.advance(max(now, machine.deadline)).events
    return [event.reason for event in told if isinstance(event, Dropped)]


def _spoken(data):
    """A fresh machine is dialled by a peer with this message."""
    machine = Machine(
        Identity("me", Address("10.0.0.1", 7955)), default(), PLAIN, random.Random(1), 0.0
    )
    machine.start(0.0)
    message = _assembled(PLAIN, dialler=False, data=data)
    return None if message is None else machine.answer(message, PLACE, 1.0)


DECODERS = {
    "datagram": _refusing(PLAIN.open),
    "datagram_labelled": _refusing(LABELLED.open),
    "datagram_sealed": _refusing(SEALED.open),
    "datagram_switching": _refusing(SWITCHING.open),
    "inside_seal": _refusing(_sealed_inside),
    "compound": _refusing(compound.split),
    "compression": _refusing(lambda data: lzw.decode(data, codec.PACKET_MAX)),
    "checksum": _refusing(checksum.open_),
    "label": _refusing(lambda data: label.strip(data, b"blue")),
    "padding": _refusing(_unpadded),
    "stream_heard": _refusing(lambda data: _assembled(PLAIN, dialler=False, data=data)),
    "stream_answer": _refusing(lambda data: _assembled(PLAIN, dialler=True, data=data)),
    "stream_sealed": _refusing(lambda data: _assembled(SEALED, dialler=False, data=data)),
    "stream_inside_seal": _refusing(_sealed_stream),
    "own_value": _refusing(own.unpack),
    "metadata": _facts,
    "claims": _valued(Claims.read),
    "notices": _valued(notices.read),
    "keys": _valued(words.read),
    "machine_datagrams": _refusing(_told),
    "machine_stream": _refusing(_spoken),
}
PREFIXES = {
    **dict.fromkeys(("stream_heard", "stream_answer", "stream_sealed", "machine_stream"), b"\0"),
    **dict.fromkeys(("inside_seal", "stream_inside_seal"), b"\1"),
}
VALUES = [None, [], {}, "text", b"bytes", 1.5, [[b"\x0a\0\0\1", "kind", "", "detail"]]]


def seeds(name):
    """Inputs to begin with: the recordings, and a few of our own."""
    if name in ("claims", "notices", "keys", "metadata", "own_value"):
        skip = 0 if name == "own_value" else own.HEADER
        return [own.pack(32, value)[skip:] for value in VALUES + _values()]
    transport = "tcp" if "stream" in name else "udp"
    datas = [bytes.fromhex(each["hex"]) for each in VECTORS if each["transport"] == transport]
    datas += _opened(transport) + _ours(transport)
    if name == "machine_datagrams":
        return _speeches(datas)
    return [PREFIXES.get(name, b"") + data for data in datas]


def _values():
    claim = [b"\x0a\0\0\1", 7, "n1", True, 1.0, None]
    said = facts.to_plain(facts.Facts(version="1", labels=(("zone", "a"),)))
    ident = bytes(words.IDENT)
    talk = [
        words.Ask(ident),
        words.Tell(ident, ("sha256:00112233",), ident),
        words.Do(ident, ident, Operation.ADD, bytes(32)),
        words.Done(ident, (), "no"),
    ]
    return [[claim], [claim, claim], said, *map(words.to_plain, talk)]


def _opened(transport):
    """The recordings without their label and seal."""
    found = []
    for each in VECTORS:
        if transport != each["transport"] or not each["key"]:
            continue
        ring = Keyring((base64.b64decode(each["key"]),))
        extra = (each["label"] or "").encode()
        data = bytes.fromhex(each["hex"])
        if data[0] == label.KIND:
            data = data[2 + data[1] :]
        if transport == "tcp":
            extra, data = data[:5] + extra, data[5:]
        with contextlib.suppress(WireError):
            found.append(ring.open(data, extra))
    return found


def _ours(transport):
    messages = [Ping(1, "me"), User(own.pack(32, [1]))]
    if transport == "tcp":
        said = [*messages, PushPull(join=True, states=(), user_state=b"us"), Err("no")]
        pairs = itertools.product(said, (PLAIN, SEALED))
        return [stream.frame(each, envelope, dialler=True) for each, envelope in pairs]
    plain = [codec.encode(each) for each in messages]
    pairs = itertools.product(plain, (PLAIN, LABELLED, SEALED))
    return [envelope.close(each, crc=True) for each, envelope in pairs]


def _speeches(datas):
    """One recording alone, and neighbours together, each behind its length."""
    framed = [len(data).to_bytes(2, "big") + data for data in datas]
    return framed + [b"".join(framed[start : start + 8]) for start in range(0, len(framed), 8)]
