"""What the wire refuses, and for which reason: bombs, huge counts, deep nests, cut-off input."""

import itertools
import random
import subprocess
import sys
import time
import typing

import msgpack
import pytest

from egress.claims import CLAIMS_MAX
from gossip.wire import checksum, codec, compound, label, lzw, own, stream
from gossip.wire.messages import (
    NIL,
    Ack,
    Alive,
    Err,
    Nack,
    PeerState,
    Ping,
    PushPull,
    Reason,
    User,
    WireError,
)
from gossip.wire.packet import Envelope
from gossip.wire.seal import Keyring
from gossip.wire.stream import Assembler

PING = codec.encode(Ping(1, "a"))
PATIENCE = 1.0
"""Seconds of processor time: far above what any refusal takes, far below what a bomb would."""


def ring(*keys):
    return Keyring(tuple(bytes([key]) * 16 for key in keys))


def sealed(*keys, label=b"", **kwargs):
    return Envelope(label=label, keyring=ring(*keys), nonces=bytes, **kwargs)


def compressed(plain):
    return bytes([codec.COMPRESS]) + codec.body({"Algo": 0, "Buf": lzw.encode(plain)})


def reason(read, *arguments):
    started = time.process_time()
    with pytest.raises(WireError) as caught:
        read(*arguments)
    assert time.process_time() - started < PATIENCE
    assert caught.value.reason in typing.get_args(Reason)
    return caught.value.reason


def packet(kind, **fields):
    return bytes([kind]) + msgpack.packb(fields, use_bin_type=False)


def inbound(data, envelope=None, **kwargs):
    return Assembler(envelope or Envelope(), dialler=False, **kwargs).feed(data)


def reply(data, envelope=None):
    return Assembler(envelope or Envelope(), dialler=True).feed(data)


def state(name="a", **kwargs):
    fields = {"addr": b"\x0a\0\0\1", "port": 7955, "meta": b"", "incarnation": 1, "health": 0}
    return PeerState(name=name, versions=bytes(6), **fields | kwargs)


def many(count):
    return tuple(state(f"n{number}") for number in range(count))


# Datagrams.


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"\x00", "truncated"),
        (PING[:-1], "truncated"),
        (b"\x07", "truncated"),
        (b"\x07\x00", "empty"),
        (b"\x07\x02\x00\x03", "truncated"),
        (b"\x07\x01\x00\x03\x00", "empty"),
        (b"\x06" + PING[1:], "unknown_type"),
        (b"\x0a" + PING[1:], "unknown_type"),
        (b"\x0c\x00\x00", "unknown_type"),
        (b"\x63", "unknown_type"),
        (b"\x00\xc1", "not_msgpack"),
        (b"\x00\x93\x01\x02\x03", "not_a_map"),
        (b"\x00" + b"\x91" * 2000, "not_msgpack"),
        (b"\x00\x81\x91\x01\x01", "not_msgpack"),
        (b"\x00\xdf\xff\xff\xff\xff", "not_msgpack"),
        (b"\x00\x81\xa1x\xdd\xff\xff\xff\xff", "not_msgpack"),
        (b"\x00\x81\xa1x\xdb\xff\xff\xff\xff", "truncated"),
        (b"\x00\x81\xa1x\xc9\xff\xff\xff\xff\x05", "not_msgpack"),
        (packet(0, SeqNo=-1, Node="a"), "bad_field"),
        (packet(0, SeqNo=1 << 32, Node="a"), "bad_field"),
        (packet(0, SeqNo=True, Node="a"), "bad_field"),
        (packet(0, SeqNo="1", Node="a"), "bad_field"),
        (packet(0, SeqNo=1, Node=7), "bad_field"),
        (packet(0, SeqNo=1, Node="a" * 513), "bad_field"),
        (packet(0, SeqNo=1, SourceAddr=b"123", SourcePort=1), "bad_address"),
        (packet(4, Node="a", Addr=b"1234", Port=65536), "bad_field"),
        (packet(4, Node="a", Addr=b"12345"), "bad_address"),
        (packet(4, Node="a", Addr=b"1234", Meta=bytes(513)), "bad_field"),
        (packet(9, Algo=1, Buf=lzw.encode(PING)), "unknown_compression"),
        (packet(9, Algo=0, Buf=lzw.encode(PING)[:-2]), "truncated"),
        (packet(9, Algo=0, Buf=b"\xff\xff\xff\xff"), "bad_compression"),
        (packet(9, Algo=0, Buf=lzw.encode(b"")), "empty"),
        (packet(9, Algo=0), "truncated"),
        (compressed(bytes(codec.PACKET_MAX + 1)), "decompressed_too_long"),
    ],
)
def test_a_bad_datagram_is_refused_for_its_reason(data, why):
    assert reason(Envelope().open, data) == why


def test_a_datagram_may_be_as_long_as_udp_carries_but_no_longer():
    assert Envelope().open(b"\x08" + bytes(codec.PACKET_MAX - 1)) == (
        User(bytes(codec.PACKET_MAX - 1)),
    )
    assert reason(Envelope().open, b"\x08" + bytes(codec.PACKET_MAX)) == "too_long"


def test_wrappers_within_wrappers_end():
    data = PING
    for _ in range(codec.NESTING_MAX):
        data = compressed(data)

    assert codec.decode_packet(data) == (Ping(1, "a"),)
    assert reason(codec.decode_packet, compressed(data)) == "too_deep"


def test_a_compound_of_compounds_is_no_way_to_many_messages():
    nack = codec.encode(Nack(1))
    nested = compound.bundle([compound.bundle([nack] * 100)] * 100)

    assert reason(codec.decode_packet, nested) == "too_many_parts"


def test_empty_parts_count_as_well():
    nested = compound.bundle([b"\x07\xff" + bytes(510)] * 100)

    assert reason(codec.decode_packet, nested) == "too_many_parts"


def test_many_small_bombs_count_as_one():
    bomb = compressed(b"\x08" + bytes(60000))

    assert len(codec.decode_packet(bomb)[0].payload) == 60000
    assert reason(codec.decode_packet, compound.bundle([bomb] * 50)) == "decompressed_too_long"


def test_the_parts_of_a_cut_off_compound_that_are_there_count():
    whole = compound.bundle([PING, codec.encode(Nack(2)), codec.encode(Nack(3))])

    assert codec.decode_packet(whole[:-1]) == (Ping(1, "a"), Nack(2))


def test_an_unknown_message_beside_a_ping_leaves_the_ping():
    assert codec.decode_packet(compound.bundle([b"\x63\x80", PING])) == (Ping(1, "a"),)


def test_missing_fields_and_nil_are_zero_and_unknown_ones_are_skipped():
    fields = {"SeqNo": None, "Payload": None, "Later": {"a": [1, {"b": 2}]}}

    assert codec.decode_packet(packet(2, **fields)) == (Ack(0, NIL),)
    assert codec.decode_packet(packet(2)) == (Ack(0, NIL),)


def test_the_new_msgpack_and_bytes_after_the_message_are_read():
    fields = {"Incarnation": 3, "Node": "a" * 40, "Addr": b"1234", "Port": 1, "Meta": bytes(40)}
    data = b"\x04" + msgpack.packb(fields | {"Vsn": bytes(6)}, use_bin_type=True) + b"rest"

    assert codec.decode_packet(data) == (Alive(3, "a" * 40, b"1234", 1, bytes(40), bytes(6)),)


def test_a_name_that_is_no_utf8_keeps_its_bytes():
    (ping,) = codec.decode_packet(b"\x00\x82\xa4Node\xa2\xff\xfe\xa5SeqNo\x01")

    assert codec.encode(ping) == b"\x00\x82\xa4Node\xa2\xff\xfe\xa5SeqNo\x01"


def test_a_checksum_that_does_not_match_is_refused():
    data = bytearray(checksum.close(PING))
    data[-1] ^= 1

    assert reason(Envelope().open, bytes(data)) == "bad_checksum"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (PING, "wrong_label"),
        (label.header(b"red") + PING, "wrong_label"),
        (b"\xf4", "bad_label"),
        (b"\xf4\x00" + PING, "bad_label"),
        (b"\xf4\x05blu", "bad_label"),
        (b"", "wrong_label"),
    ],
)
def test_only_packets_of_the_same_label_are_taken(data, why):
    assert reason(Envelope(label=b"blue").open, data) == why


def test_a_label_is_refused_where_none_is_configured():
    assert reason(Envelope().open, label.header(b"blue") + PING) == "wrong_label"


# Keys.


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (PING, "not_sealed"),
        (b"\x02" + bytes(40), "not_sealed"),
        (b"\x01" + bytes(40), "no_key_fits"),
        (sealed(7).close(PING, crc=False), "no_key_fits"),
        (sealed(1, label=b"x").close(PING, crc=False)[3:], "no_key_fits"),
        (ring(1).seal(b"", b"", bytes(12)), "empty"),
        (b"\x00" + ring(1).seal(b"abc\x00", b"", bytes(12))[1:], "bad_padding"),
        (b"\x00" + ring(1).seal(b"abc\x03", b"", bytes(12))[1:], "bad_padding"),
        (b"\x00" + ring(1).seal(b"", b"", bytes(12))[1:], "bad_padding"),
    ],
)
def test_without_the_key_nothing_comes_in(data, why):
    assert reason(sealed(1).open, data) == why


def test_keys_are_changed_without_a_gap():
    old, both = ring(1), ring(1).add(bytes([2]) * 16)
    swapped = both.use(bytes([2]) * 16)
    new = swapped.remove(bytes([1]) * 16)
    steps = itertools.pairwise([old, both, swapped, new])
    for sender, receiver in [way for pair in steps for way in (pair, pair[::-1])]:
        data = Envelope(keyring=sender, nonces=bytes).close(PING, crc=True)

        assert Envelope(keyring=receiver).open(data) == (Ping(1, "a"),)
    assert both.add(bytes([1]) * 16) is both


def test_a_keyring_is_kept_in_order():
    both = ring(1, 2)
    with pytest.raises(ValueError, match="add it first"):
        both.use(bytes(16))
    with pytest.raises(ValueError, match="use another one first"):
        both.remove(both.keys[0])
    with pytest.raises(ValueError, match="16, 24 or 32 bytes"):
        both.add(b"short")
    with pytest.raises(ValueError, match="1 to 16 keys"):
        Keyring(())


def test_a_keyring_does_not_show_its_keys():
    assert repr(Keyring((b"secretsecretsecr",))) == "Keyring(1 keys)"


def test_a_cluster_is_switched_to_encryption_in_steps():
    plain, off = Envelope(), {"verify_incoming": False}
    listening = sealed(1, verify_outgoing=False, **off)
    speaking = sealed(1, **off)
    strict = sealed(1)
    for sender, receiver in [
        (plain, listening),
        (listening, plain),
        (listening, speaking),
        (speaking, listening),
        (speaking, strict),
        (strict, speaking),
    ]:
        data = sender.close(PING, crc=False)
        assert receiver.open(data) == (Ping(1, "a"),)
        framed = stream.frame(Ping(1, "a"), sender, dialler=True)
        assert inbound(framed, receiver) == Ping(1, "a")


# Streams.


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x03" + PING[1:], "unknown_type"),
        (b"\x07\x01", "unknown_type"),
        (b"\xf4\x04blue" + PING, "wrong_label"),
        (b"\xf4\x00", "bad_label"),
        (b"\x0a\x00\x00\x00\x05", "sealed"),
        (packet(6, Nodes=-1, Join=True), "bad_field"),
        (packet(6, Nodes=1 << 20), "bad_field"),
        (packet(6, Nodes=1, UserStateLen=1 << 30), "bad_field"),
        (packet(6, Nodes=1) + b"\xc0", "not_a_map"),
        (packet(6, Nodes=1) + b"\xc1", "not_msgpack"),
        (packet(8, UserMsgLen=1 << 30), "bad_field"),
        (packet(8, UserMsgLen=-1), "bad_field"),
        (packet(13, Error="e" * 2000), "bad_field"),
        (compressed(PING[:-1]), "truncated"),
        (compressed(compressed(PING)), "unknown_type"),
        (compressed(packet(8, UserMsgLen=5) + b"1234"), "truncated"),
        (packet(9, Algo=0, Buf=lzw.encode(b"")), "empty"),
        (packet(9, Algo=3, Buf=b""), "unknown_compression"),
    ],
)
def test_a_bad_stream_is_refused_for_its_reason(data, why):
    assert reason(inbound, data) == why


def test_a_stream_bomb_is_refused():
    bomb = compressed(packet(8, UserMsgLen=900_000) + bytes(900_000))

    assert len(inbound(bomb).payload) == 900_000
    assert reason(lambda: inbound(bomb, limit=100_000)) == "decompressed_too_long"


def test_a_list_of_records_that_goes_on_for_ever_is_refused():
    record = codec.encode_state(state())
    assembler = Assembler(Envelope(), dialler=False, limit=10_000)
    assert assembler.feed(packet(6, Nodes=10_000)) is None

    assert reason(lambda: [assembler.feed(record) for _ in range(1000)]) == "too_long"


def test_a_field_that_goes_on_for_ever_is_refused():
    assembler = Assembler(Envelope(), dialler=False, limit=10_000)
    assert assembler.feed(b"\x00\x81\xa4Node\xdb\x7f\xff\xff\xff") is None

    assert reason(lambda: [assembler.feed(bytes(1000)) for _ in range(20)]) == "too_long"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (PING, "not_sealed"),
        (codec.encode(Err("no")), "not_sealed"),
        (b"\x0a\x7f\xff\xff\xff", "too_long"),
        (b"\x0a\x00\x00\x00\x05hello", "not_sealed"),
        (stream.frame(Ping(1, "a"), sealed(9), dialler=True), "no_key_fits"),
    ],
)
def test_a_stream_without_the_key_is_refused(data, why):
    assert reason(inbound, data, sealed(1)) == why


def test_a_reply_may_complain_in_the_clear_but_say_nothing_else():
    assert reply(codec.encode(Err("no key")), sealed(1)) == Err("no key")
    assert reason(reply, codec.encode(Ack(1)), sealed(1)) == "not_sealed"


def test_a_replier_writes_no_label_but_seals_with_it():
    ours = sealed(1, label=b"blue")
    data = stream.frame(Ack(1), ours, dialler=False)

    assert data[0] == codec.ENCRYPT
    assert reply(data, ours) == Ack(1)
    assert reason(reply, data, sealed(1, label=b"red")) == "no_key_fits"


def test_a_record_that_nobody_can_read_spoils_no_other():
    good = [codec.encode_state(state(name)) for name in "ab"]
    bad = msgpack.packb({"Name": "x", "Addr": b"123"}, use_bin_type=False)
    data = packet(6, Nodes=3, UserStateLen=2, Join=True) + good[0] + bad + good[1] + b"us"

    assert inbound(data) == PushPull(join=True, states=(state("a"), state("b")), user_state=b"us")


def test_bytes_one_by_one_cost_no_more_than_all_at_once():
    message = PushPull(join=True, states=many(1000), user_state=bytes(5000))
    data = stream.frame(message, Envelope(), dialler=True)
    assembler = Assembler(Envelope(), dialler=False)
    started = time.process_time()
    for position in range(0, len(data), 50):
        assembler.feed(data[position : position + 50])

    assert assembler.message == message
    assert time.process_time() - started < PATIENCE


@pytest.mark.parametrize(
    ("data", "turns"),
    [
        (stream.encode(PushPull(join=False, states=many(2000))), 10),
        (compressed(stream.encode(User(random.Random(1).randbytes(60_000)))), 5),
    ],
    ids=["records", "compressed"],
)
def test_a_long_message_is_taken_in_turns(data, turns):
    assembler = Assembler(Envelope(), dialler=False)

    assert sum(1 for _ in assembler.work(data)) >= turns
    assert assembler.message == inbound(data)


def test_after_a_refusal_nothing_more_is_read():
    assembler = Assembler(Envelope(), dialler=False)
    assert reason(assembler.feed, b"\x63") == "unknown_type"

    assert assembler.feed(PING) is None


# Our own.


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not_ours"),
        (own.MAGIC, "not_ours"),
        (own.MAGIC + b"\x01", "not_ours"),
        (b"\x82" + own.pack(1, None), "not_ours"),
        (own.MAGIC + b"\x01\xc1", "not_msgpack"),
        (own.MAGIC + b"\x01\x81", "not_msgpack"),
        (own.MAGIC + b"\x01\xc0\xc0", "not_msgpack"),
        (own.MAGIC + b"\x01\xa1\xff", "not_msgpack"),
        (own.MAGIC + b"\x01\xd4\x05x", "not_msgpack"),
        (own.MAGIC + b"\x01\xc7\x00\x05", "not_msgpack"),
        (own.MAGIC + b"\x01\xd6\xff\x00\x00\x00\x00", "not_msgpack"),
        (own.MAGIC + b"\x01\x81\x01\x01", "not_msgpack"),
        (own.MAGIC + b"\x01\x81\xc4\x01a\x01", "not_msgpack"),
        (own.MAGIC + b"\x01\xdd\x7f\xff\xff\xff", "not_msgpack"),
        (own.MAGIC + b"\x01" + b"\x91" * 900 + b"\x01", "too_deep"),
        (own.MAGIC + b"\x01" + b"\x91" * 5000 + b"\x01", "not_msgpack"),
        (own.pack(1, bytes(own.SIZE_MAX)), "too_long"),
    ],
)
def test_what_is_no_plain_value_of_ours_is_refused(data, why):
    assert reason(own.unpack, data) == why


def test_values_nest_as_deep_as_the_limit():
    assert own.unpack(own.pack(9, nested(own.DEPTH_MAX))) == (9, nested(own.DEPTH_MAX))
    assert reason(own.unpack, own.pack(9, nested(own.DEPTH_MAX + 1))) == "too_deep"


def test_a_message_of_ours_is_none_of_serf_or_of_msgpack():
    assert own.is_ours(own.pack(own.HEARTBEAT, {}))
    assert not own.is_ours(b"\x00\x83")
    with pytest.raises(msgpack.FormatError):
        msgpack.unpackb(own.pack(own.HEARTBEAT, {})[:1])


# What is loaded.


def test_a_cluster_without_keys_does_not_load_cryptography():
    code = (
        "import sys; from gossip.wire import packet, stream, codec;"
        "e = packet.Envelope(); e.open(e.close(codec.encode(codec.Ping(1, 'a')), crc=True));"
        "print('cryptography' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "False"


@pytest.mark.parametrize("size", [16, 24, 32])
@pytest.mark.parametrize("version", [0, 1])
def test_every_length_of_key_seals_in_both_versions_and_version_0_pads(size, version):
    ring = Keyring((bytes(size),))
    for length in (0, 1, 15, 16, 17, 300):
        plain = bytes(range(256))[:length] if length <= 256 else bytes(length)
        sealed = ring.seal(plain, b"blue", bytes(12), version)
        padding = 16 - length % 16 if version == 0 else 0

        assert sealed[0] == version
        assert len(sealed) == 29 + length + padding
        assert ring.open(sealed, b"blue") == plain
        with pytest.raises(WireError, match="no_key_fits"):
            ring.open(sealed, b"blu")


@pytest.mark.parametrize(
    "value",
    [
        [[0] * 1000] * 3000,
        [{"a": 1, "b": 2}] * 100_000,
        [[[]] * 1000] * 200,
    ],
    ids=["wide", "maps", "empty"],
)
def test_a_message_of_ours_holds_so_many_values_in_all_and_no_more(value):
    assert reason(own.unpack, own.pack(32, value)) == "too_many_items"


def test_as_many_claims_as_there_may_be_fit_one_message():
    row = [bytes(4), 7, "n1", True, 1.0, None]
    value = [row] * CLAIMS_MAX

    assert own.unpack(own.pack(32, value)) == (32, value)
