"""Laws of what the wire lets in: in whatever pieces, under which keys, and at what cost."""

import itertools
import time
import typing

import msgpack
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gossip.wire import codec, compound, lzw, own, stream
from gossip.wire.messages import Ack, Nack, Ping, PushPull, Reason, User, WireError
from gossip.wire.packet import Envelope
from gossip.wire.seal import OVERHEAD, Keyring
from gossip.wire.stream import Assembler

PING = codec.encode(Ping(1, "a"))
PATIENCE = 1.0
"""Seconds of processor time: far above what any refusal takes, far below what a bomb would."""
REASONS = typing.get_args(Reason)

keys = st.sampled_from([bytes([n]) * size for n in (1, 2, 3) for size in (16, 24, 32)])
rings = st.lists(keys, min_size=1, max_size=3, unique=True).map(lambda each: Keyring(tuple(each)))
labels = st.sampled_from([b"", b"a", b"blue", b"blu", b"\xf4\x01a"])
datagrams = st.sampled_from([PING, codec.encode(Nack(7)), b"\x08" + bytes(50)])
conversations = st.sampled_from(
    [Ping(1, "a"), Ack(3), User(b"x" * 300), PushPull(join=True, states=())]
)


def nonces(size):
    return bytes(range(size))


def outcome(read, *arguments):
    """What came of it: a value, or the reason why not; and it took no time to speak of."""
    began = time.process_time()
    try:
        found = read(*arguments)
    except WireError as error:
        found = error.reason
    assert not isinstance(found, str) or found in REASONS
    assert time.process_time() - began < PATIENCE
    return found


def in_pieces(data, cuts, envelope, *, dialler):
    """What an assembler makes of `data` cut at these places."""
    assembler = Assembler(envelope, dialler=dialler)

    def read():
        for start, end in itertools.pairwise([0, *sorted(cuts), len(data)]):
            if (message := assembler.feed(data[start:end])) is not None:
                return message
        return None

    return outcome(read)


# In whatever pieces.


def compressed(plain):
    return bytes([codec.COMPRESS]) + codec.body({"Algo": 0, "Buf": lzw.encode(plain)})


SEALED = Envelope(label=b"blue", keyring=Keyring((bytes(16),)), nonces=nonces)
STREAMS = [
    stream.frame(message, envelope, dialler=True)
    for envelope in (Envelope(), SEALED)
    for message in (Ping(1, "a"), User(b"hello"), PushPull(join=True, states=(), user_state=b"us"))
]
STREAMS += [
    compressed(stream.encode(PushPull(join=True, states=(), user_state=b"us" * 30))),
    codec.encode_header(codec.PUSH_PULL, {"Nodes": 3, "UserStateLen": 1, "Join": True})
    + b"\x80" * 3,
    codec.encode_header(codec.USER, {"UserMsgLen": 9}) + b"too short",
]


@given(
    st.sampled_from(STREAMS),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=3),
    st.binary(max_size=8),
    st.data(),
)
def test_pieces_change_nothing_about_what_a_stream_means(whole, damage, rest, data):
    broken = bytearray(whole + rest)
    for position, value in damage:
        broken[position % len(broken)] = value
    cuts = data.draw(st.sets(st.integers(0, len(broken)), max_size=8))
    for envelope, dialler in itertools.product((Envelope(), SEALED), (False, True)):
        at_once = in_pieces(bytes(broken), (), envelope, dialler=dialler)

        assert in_pieces(bytes(broken), cuts, envelope, dialler=dialler) == at_once


@given(st.binary(min_size=1, max_size=300), st.booleans())
def test_bytes_one_by_one_mean_what_they_mean_at_once(data, dialler):
    for first in (b"", bytes([codec.PUSH_PULL]), bytes([codec.USER]), bytes([codec.COMPRESS])):
        whole = first + data
        cuts = range(1, len(whole))

        assert in_pieces(whole, cuts, Envelope(), dialler=dialler) == in_pieces(
            whole, (), Envelope(), dialler=dialler
        )


@given(conversations, st.integers(1, 5))
def test_a_compressed_stream_is_the_stream(message, size):
    data = compressed(stream.encode(message))

    assert in_pieces(data, range(0, len(data), size), Envelope(), dialler=False) == message


# Under which keys.


@given(rings, labels, rings, labels, datagrams, st.booleans())
def test_a_datagram_opens_with_the_key_and_the_label_it_was_closed_with(
    theirs, said, ours, meant, plain, crc
):
    data = Envelope(label=said, keyring=theirs, nonces=nonces).close(plain, crc=crc)
    found = outcome(Envelope(label=meant, keyring=ours).open, data)

    if said == meant and theirs.keys[0] in ours.keys:
        assert found == codec.decode_packet(plain)
    else:
        assert found == ("no_key_fits" if said == meant else "wrong_label")


@given(rings, labels, rings, labels, conversations, st.booleans())
def test_a_stream_opens_with_the_key_and_the_label_it_was_closed_with(
    theirs, said, ours, meant, message, dialler
):
    framed = stream.frame(
        message, Envelope(label=said, keyring=theirs, nonces=nonces), dialler=dialler
    )
    found = in_pieces(framed, (), Envelope(label=meant, keyring=ours), dialler=not dialler)

    if said == meant and theirs.keys[0] in ours.keys:
        assert found == message
    else:
        # A reply carries no label that could be read; but it was sealed with it.
        assert found == ("no_key_fits" if said == meant or not dialler else "wrong_label")


@given(rings, labels, datagrams)
def test_a_sealed_datagram_means_nothing_to_those_without_a_key(ring, label, plain):
    data = Envelope(label=label, keyring=ring, nonces=nonces).close(plain, crc=False)

    assert isinstance(outcome(Envelope(label=label).open, data), str)


@given(rings, labels, labels, datagrams)
def test_where_plain_packets_are_taken_still_the_label_decides(ring, said, meant, plain):
    data = Envelope(label=said).close(plain, crc=False)
    lenient = Envelope(label=meant, keyring=ring, verify_incoming=False)
    strict = Envelope(label=meant, keyring=ring)

    assert outcome(lenient.open, data) == (
        codec.decode_packet(plain) if said == meant else "wrong_label"
    )
    assert outcome(strict.open, data) == ("not_sealed" if said == meant else "wrong_label")


@given(rings, st.binary(max_size=80), st.binary(max_size=8))
def test_bytes_that_nobody_sealed_are_opened_by_no_key(ring, data, extra):
    for sealed in (data, b"\x00" + data, b"\x01" + data):
        expected = "not_sealed" if len(sealed) < OVERHEAD or sealed[0] > 1 else "no_key_fits"
        assert outcome(ring.open, sealed, extra) == expected


@given(rings, st.binary(max_size=70), st.binary(max_size=8), st.sampled_from([0, 1]), st.data())
def test_a_cut_off_seal_is_none(ring, plain, extra, version, data):
    sealed = ring.seal(plain, extra, nonces(12), version)
    cut = data.draw(st.integers(0, len(sealed) - 1))

    assert ring.open(sealed, extra) == plain
    assert outcome(ring.open, sealed[:cut], extra) in {"not_sealed", "no_key_fits"}


# At what cost.

plains = st.builds(
    lambda part, count: part * count, st.binary(min_size=1, max_size=5), st.integers(1, 4000)
)


@given(plains, st.integers(-3, 3))
def test_decompression_gives_all_or_refuses_but_never_more_than_the_limit(plain, more):
    limit = len(plain) + more
    found = outcome(lzw.decode, lzw.encode(plain), limit)

    assert found == (plain if more >= 0 else "decompressed_too_long")


@given(st.binary(max_size=600), st.integers(0, 5000))
def test_bytes_that_nobody_compressed_give_no_more_than_the_limit(data, limit):
    found = outcome(lzw.decode, data, limit)

    assert isinstance(found, str) or len(found) <= limit


@pytest.mark.parametrize("size", [10**5, 10**6])
def test_a_bomb_costs_its_limit_and_not_its_size(size):
    bomb = lzw.encode(bytes(size))

    assert outcome(lzw.decode, bomb, 1000) == "decompressed_too_long"
    assert outcome(codec.decode_packet, compressed(bytes(size))) == "decompressed_too_long"


def trees(inner):
    return st.one_of(
        st.lists(inner, min_size=1, max_size=4).map(lambda each: ("bundle", each)),
        inner.map(lambda each: ("compressed", [each])),
    )


wrapped = st.recursive(st.integers(0, 9), trees, max_leaves=12)


def written(tree):
    match tree:
        case int():
            return codec.encode(Nack(tree))
        case ("compressed", [inner]):
            return compressed(written(inner))
        case (_, parts):
            return compound.bundle([written(each) for each in parts])


def leaves(tree):
    return [tree] if isinstance(tree, int) else [n for each in tree[1] for n in leaves(each)]


def depth(tree):
    """Wrappers around the deepest leaf; one part alone is bundled bare."""
    if isinstance(tree, int):
        return 0
    kind, parts = tree
    return max(map(depth, parts)) + (kind == "compressed" or len(parts) > 1)


@given(wrapped)
def test_messages_in_wrappers_are_found_in_their_order_or_the_whole_is_refused(tree):
    found = outcome(codec.decode_packet, written(tree))

    if depth(tree) <= codec.NESTING_MAX:
        assert found == tuple(map(Nack, leaves(tree)))
    else:
        assert found == "too_deep"


hostile = st.one_of(
    st.integers(1, 60000).map(lambda size: compressed(b"\x08" + bytes(size))),
    st.integers(1, 255).map(lambda count: b"\x07" + bytes([count]) + bytes(2 * count)),
    st.integers(1, 300).map(lambda count: bytes([0]) + b"\x91" * count),
    st.binary(max_size=40).map(lambda noise: bytes([codec.COMPRESS]) + codec.body({"Buf": noise})),
    st.just(PING),
)


@given(st.lists(hostile, min_size=2, max_size=100), st.integers(1, 3))
def test_no_datagram_costs_much_time(parts, layers):
    data = compound.bundle(parts)
    for _ in range(layers):
        data = compound.bundle([data] * 3) if len(data) < 20000 else data
    assume(len(data) <= codec.PACKET_MAX)
    found = outcome(Envelope().open, data)

    assert isinstance(found, str) or 0 < len(found) <= codec.PARTS_MAX


@given(st.integers(1, 3000), st.sampled_from([b"\x91", b"\x81\xa1a", b"\x92\xc0"]))
def test_a_nest_of_ours_is_as_deep_as_the_limit_or_refused(levels, opening):
    found = outcome(own.unpack, own.MAGIC + b"\x05" + opening * levels + b"\xc0")

    if levels <= own.DEPTH_MAX:
        assert found[0] == 5
    else:
        assert found in {"too_deep", "not_msgpack"}


@given(st.binary(max_size=300))
def test_what_is_read_of_ours_is_what_would_be_written(data):
    found = outcome(own.unpack, own.MAGIC + b"\x04" + data)
    if isinstance(found, str):
        return

    # As text: a number that is none does not equal itself.
    assert repr(own.unpack(own.pack(*found))) == repr(found)
    assert repr(found[1]) == repr(msgpack.unpackb(data, raw=False))


@given(st.binary(max_size=700))
def test_the_parts_of_a_compound_are_pieces_of_it_in_order(data):
    parts = outcome(compound.split, b"\x07" + data)
    if isinstance(parts, str):
        assert parts == "truncated"
        return

    assert len(parts) <= data[0]
    assert data[1 + 2 * data[0] :].startswith(b"".join(parts))
