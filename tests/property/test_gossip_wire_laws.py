"""Laws of the wire: whatever is written is read again, and no bytes do harm.

`refused_or_read` is the fuzz target of every decoder: it lets WireError pass and nothing else.
"""

import base64
import itertools
import json
from pathlib import Path

import msgpack
from hypothesis import example, given
from hypothesis import strategies as st

from gossip.wire import checksum, codec, compound, label, lzw, own, stream
from gossip.wire.messages import (
    NIL,
    Ack,
    Alive,
    Dead,
    Err,
    IndirectPing,
    Nack,
    Origin,
    PeerState,
    Ping,
    PushPull,
    Suspect,
    User,
    WireError,
)
from gossip.wire.packet import Envelope
from gossip.wire.seal import Keyring
from gossip.wire.stream import Assembler

FOLDER = Path(__file__).parent.parent / "vectors" / "memberlist"
VECTORS = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]

# Lone surrogates are how bytes that are no UTF-8 look; those from U+DC80 to U+DCFF survive.
names = st.text(max_size=40).map(
    lambda text: text.encode("utf-8", "ignore").decode("utf-8", "surrogateescape")
) | st.binary(max_size=40).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
numbers = st.integers(0, 0xFFFFFFFF)
ports = st.integers(0, 0xFFFF)
addresses = st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16)
metas = st.binary(max_size=512)
versions = st.binary(min_size=6, max_size=6)
origins = st.none() | st.builds(Origin, addresses, st.integers(1, 0xFFFF), names)
packets = st.one_of(
    st.builds(Ping, numbers, names, origins),
    st.builds(IndirectPing, numbers, addresses, ports, names, st.booleans(), origins),
    st.builds(Ack, numbers, st.just(NIL) | st.binary(max_size=300)),
    st.builds(Nack, numbers),
    st.builds(Suspect, numbers, names, names),
    st.builds(Dead, numbers, names, names),
    st.builds(Alive, numbers, names, addresses, ports, metas, versions),
    st.builds(User, st.binary(max_size=300)),
)
states = st.builds(PeerState, names, addresses, ports, metas, numbers, st.integers(0, 3), versions)
streams = st.one_of(
    st.builds(
        PushPull,
        st.booleans(),
        st.lists(states, max_size=8).map(tuple),
        st.binary(max_size=300),
    ),
    st.builds(Ping, numbers, names, origins),
    st.builds(Ack, numbers),
    st.builds(User, st.binary(max_size=300)),
    st.builds(Err, names),
)


def nonces(size):
    return bytes(range(size))


keyrings = st.none() | st.lists(
    st.sampled_from([16, 24, 32]).flatmap(lambda size: st.binary(min_size=size, max_size=size)),
    min_size=1,
    max_size=3,
    unique=True,
).map(lambda keys: Keyring(tuple(keys)))
envelopes = st.builds(
    Envelope,
    label=st.binary(max_size=20),
    keyring=keyrings,
    verify_incoming=st.booleans(),
    nonces=st.just(nonces),
)
plains = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), inner)
    ),
    max_leaves=20,
)


def refused_or_read(read, *arguments):
    try:
        return read(*arguments)
    except WireError:
        return None


# Round trips.


@given(st.lists(packets, min_size=1, max_size=20), envelopes, st.booleans())
def test_every_datagram_written_is_read_again(messages, envelope, crc):
    plain = compound.bundle([codec.encode(each) for each in messages])
    data = envelope.close(plain, crc=crc)

    assert envelope.open(data) == tuple(messages)
    assert len(data) - len(plain) == envelope.overhead + (checksum.OVERHEAD if crc else 0)


@given(streams, envelopes, st.booleans(), st.data())
def test_every_stream_written_is_read_again_in_whatever_pieces(message, envelope, dialler, data):
    framed = stream.frame(message, envelope, dialler=dialler)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(framed)), max_size=6)) | {0, len(framed)})
    assembler = Assembler(envelope, dialler=not dialler)
    read = None
    for start, end in itertools.pairwise(cuts):
        assert read is None, "complete before all bytes had come"
        read = assembler.feed(framed[start:end])

    assert read == message


@given(st.binary(max_size=3000) | st.lists(st.sampled_from(b"ab"), max_size=9000).map(bytes))
@example(b"")
@example(bytes(20000))
def test_compression_is_undone(plain):
    assert lzw.decode(lzw.encode(plain), len(plain)) == plain


@given(st.integers(0, 255), plains)
def test_our_own_values_come_through(kind, value):
    assert own.unpack(own.pack(kind, value)) == (kind, value)


@given(packets)
def test_what_is_sent_uses_the_old_msgpack_alone(message):
    data = codec.encode(message)
    if isinstance(message, User):
        return
    unpacked = msgpack.Unpacker(raw=True)
    unpacked.feed(data[1:])
    fields = unpacked.unpack()

    assert list(fields) == sorted(fields)
    assert data[1:] == msgpack.packb(fields, use_bin_type=False)


# Whatever comes.

DECODERS = [
    codec.decode_packet,
    Envelope().open,
    Envelope(label=b"blue").open,
    lambda data: codec.decompress(data, 1000),
    lambda data: lzw.decode(data, 1000),
    checksum.open_,
    lambda data: label.strip(data, b"blue"),
    compound.split,
    own.unpack,
    lambda data: own.unpack(own.MAGIC + data),
    lambda data: Assembler(Envelope(), dialler=False).feed(data),
    lambda data: Assembler(Envelope(), dialler=True).feed(data),
]
SEALED = Envelope(label=b"blue", keyring=Keyring((bytes(16),)), nonces=nonces)


@given(
    st.binary(max_size=400)
    | st.tuples(st.integers(0, 13), st.binary()).map(lambda both: bytes([both[0]]) + both[1])
)
def test_random_bytes_are_refused_or_read(data):
    for decode in DECODERS:
        refused_or_read(decode, data)
    refused_or_read(SEALED.open, data)
    refused_or_read(Assembler(SEALED, dialler=False).feed, data)


def envelope_of(vector):
    ring = Keyring((base64.b64decode(vector["key"]),)) if vector["key"] else None
    return Envelope(label=(vector["label"] or "").encode(), keyring=ring)


@given(st.sampled_from(VECTORS), st.data())
def test_a_damaged_recording_is_refused_or_read(vector, data):
    bytes_ = bytearray.fromhex(vector["hex"])
    for _ in range(data.draw(st.integers(1, 4))):
        bytes_[data.draw(st.integers(0, len(bytes_) - 1))] = data.draw(st.integers(0, 255))
    del bytes_[data.draw(st.integers(0, len(bytes_))) :]
    envelope = envelope_of(vector)
    if vector["transport"] == "udp":
        refused_or_read(envelope.open, bytes(bytes_))
    else:
        refused_or_read(Assembler(envelope, dialler=False).feed, bytes(bytes_))
        refused_or_read(Assembler(envelope, dialler=True).feed, bytes(bytes_))


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**33) | st.binary(max_size=20) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.binary(max_size=3), inner),
    max_leaves=6,
)
FIELDS = """
    SeqNo Node Target Port Nack SourceAddr SourcePort SourceNode Payload Incarnation From Addr
    Meta Vsn Algo Buf Name State Nodes UserStateLen UserMsgLen Join Error
"""
fields = st.sampled_from(FIELDS.split())


@given(st.integers(0, 13), st.dictionaries(fields, values), st.binary(max_size=30))
def test_fields_of_a_wrong_type_are_refused_or_read(kind, fields, rest):
    data = bytes([kind]) + msgpack.packb(fields) + rest

    refused_or_read(codec.decode_packet, data)
    refused_or_read(Assembler(Envelope(), dialler=True).feed, data)


@given(st.lists(packets, min_size=1, max_size=5), st.lists(st.binary(max_size=30), max_size=5))
def test_parts_that_nobody_can_read_spoil_no_others(messages, noise):
    unknown = [b"\x63" + each for each in noise]
    parts = [*unknown, *(codec.encode(each) for each in messages), *unknown, b""]

    assert codec.decode_packet(compound.bundle(parts)) == tuple(messages)


@given(packets, st.data())
def test_no_byte_of_a_sealed_datagram_can_be_changed(message, data):
    sealed = bytearray(SEALED.close(codec.encode(message), crc=False))
    position = data.draw(st.integers(0, len(sealed) - 1))
    sealed[position] ^= data.draw(st.integers(1, 255))

    assert refused_or_read(SEALED.open, bytes(sealed)) is None
