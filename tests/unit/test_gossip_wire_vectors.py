"""125 payloads recorded from real nodes are read, and written again to the byte.

Recorded from serf 0.9.4, prometheus-alertmanager 0.25 and a program on memberlist's head.
"""

import base64
import json
from pathlib import Path

import pytest

from gossip.wire import checksum, codec, compound, label, lzw, seal, stream
from gossip.wire.messages import Err, User, WireError
from gossip.wire.packet import Envelope
from gossip.wire.seal import Keyring
from gossip.wire.stream import Assembler

FOLDER = Path(__file__).parent.parent / "vectors" / "memberlist"
VECTORS = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]
EXACT = [each for each in VECTORS if each["byte_exact"]]


def envelope(vector):
    key = vector["key"]
    ring = Keyring((base64.b64decode(key),)) if key else None
    return Envelope(label=label_of(vector), keyring=ring)


def label_of(vector):
    return (vector["label"] or "").encode()


def data_of(vector):
    return bytes.fromhex(vector["hex"])


def rebuilt(data):
    """The same message, read and written layer by layer."""
    match data[0]:
        case codec.COMPOUND:
            return compound.bundle([rebuilt(part) for part in compound.split(data)])
        case codec.COMPRESS:
            plain = codec.decompress(data, 1 << 20)
            again = {"Algo": 0, "Buf": lzw.encode(rebuilt(plain))}
            return bytes([codec.COMPRESS]) + codec.body(again)
        case codec.HAS_CRC:
            return checksum.close(rebuilt(checksum.open_(data)))
        case kind:
            return codec.encode(codec.decode(kind, data))


def rebuilt_stream(data):
    if data[0] == codec.COMPRESS:
        again = {"Algo": 0, "Buf": lzw.encode(rebuilt_stream(codec.decompress(data, 1 << 20)))}
        return bytes([codec.COMPRESS]) + codec.body(again)
    return stream.encode(Assembler(Envelope(), dialler=True).feed(data))


def named(vectors):
    return [pytest.param(each, id=each["id"]) for each in vectors]


def test_all_vectors_are_here():
    assert len(VECTORS) == 125
    assert len(EXACT) == 122


@pytest.mark.parametrize("vector", named([v for v in VECTORS if v["transport"] == "udp"]))
def test_a_recorded_datagram_is_read(vector):
    messages = envelope(vector).open(data_of(vector))

    text = json.dumps(vector["decoded"])
    assert messages
    for message in messages:
        for name in ("node", "accuser"):
            said = getattr(message, name, "")
            assert not said or f'"{said}"' in text or "plain_hex" in text
        if hasattr(message, "seq"):
            assert f'"SeqNo": {message.seq}' in text or "plain_hex" in text


@pytest.mark.parametrize("vector", named([v for v in EXACT if v["transport"] == "udp"]))
def test_a_recorded_datagram_is_written_again_to_the_byte(vector):
    data = data_of(vector)
    inner = label.strip(data, label_of(vector))
    nonce = version = None
    ring = envelope(vector).keyring
    if ring is not None:
        version, nonce = inner[0], inner[1 : 1 + seal.NONCE]
        inner = ring.open(inner, label_of(vector))
    again = rebuilt(inner)
    if ring is not None:
        again = ring.seal(again, label_of(vector), nonce, version)

    assert (label.header(label_of(vector)) + again).hex() == vector["hex"]


def streamed(vector, data, chunk):
    assembler = Assembler(envelope(vector), dialler=vector["role"] == "server")
    for start in range(0, len(data), chunk):
        message = assembler.feed(data[start : start + chunk])
        if message is not None:
            assert start + chunk >= len(data), "complete before all bytes had come"
            return message
    return None


TCP = [each for each in VECTORS if each["transport"] == "tcp"]
WRONG = {"124-head-wronglabel-client", "head-wronglabel-client"}


@pytest.mark.parametrize("vector", named([v for v in TCP if v["id"] not in WRONG]))
@pytest.mark.parametrize("chunk", [1 << 20, 7])
def test_a_recorded_stream_is_read_in_whatever_pieces_it_comes(vector, chunk):
    data = data_of(vector)
    message = streamed(vector, data, chunk)
    found = vector["decoded"]["message"]
    found = found.get("inner", found)

    assert message is not None
    if "nodes" in found:
        expected = [
            (each["Name"], each["Incarnation"], each["State"], each["Addr"]["hex"])
            for each in found["nodes"]
        ]
        assert [(s.name, s.incarnation, s.health, s.addr.hex()) for s in message.states] == expected
    if found.get("type") == "err":
        assert message == Err(found["fields"]["Error"])


def test_a_stream_with_another_label_is_refused():
    (vector,) = [v for v in TCP if v["id"] in WRONG]
    with pytest.raises(WireError, match="wrong_label"):
        Assembler(Envelope(label=b"right"), dialler=False).feed(data_of(vector))


@pytest.mark.parametrize("vector", named([v for v in EXACT if v["transport"] == "tcp"]))
def test_a_recorded_stream_is_written_again_to_the_byte(vector):
    label_bytes, data = label_of(vector), data_of(vector)
    head = b""
    if data[0] == label.KIND:
        head = label.header(data[2 : 2 + data[1]])
        data = data[len(head) :]
    if data[0] == codec.ENCRYPT:
        ring = envelope(vector).keyring
        extra, sealed = data[:5] + label_bytes, data[5:]
        plain = rebuilt_stream(ring.open(sealed, extra))
        again = ring.seal(plain, extra, sealed[1 : 1 + seal.NONCE], sealed[0])
        data = data[:5] + again
    else:
        data = rebuilt_stream(data)

    assert (head + data).hex() == vector["hex"]


def test_a_user_message_with_a_table_reset_in_its_compression_survives():
    (vector,) = [v for v in TCP if v["id"].endswith("lzw-reset-user-client")]
    message = streamed(vector, data_of(vector), 1 << 20)

    assert isinstance(message, User)
    assert len(message.payload) == 9000
