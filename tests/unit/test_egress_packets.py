"""Frames of ARP and neighbour discovery, made and read."""

from ipaddress import IPv4Address, IPv6Address

from hypothesis import given
from hypothesis import strategies as st

from egress import packets
from egress.packets import Kind, Sighting

MAC = "02:00:00:00:00:0b"
IP4, IP6 = IPv4Address("10.77.0.201"), IPv6Address("2001:db8:77::201")
macs = st.binary(min_size=6, max_size=6).map(lambda raw: raw.hex(":"))


@given(macs, st.ip_addresses(v=4), st.ip_addresses(v=4))
def test_an_arp_request_is_read_as_it_was_meant(mac, sender, target):
    frame = packets.arp_request(mac, sender, target)
    who = None if int(sender) == 0 else sender

    assert packets.read(frame) == Sighting(Kind.REQUEST, mac, who, target)
    assert len(frame) == 42


@given(macs, st.ip_addresses(v=6), st.ip_addresses(v=6))
def test_a_solicitation_is_read_as_it_was_meant(mac, sender, target):
    frame = packets.solicitation(mac, sender, target)
    who = None if int(sender) == 0 else sender

    assert packets.read(frame) == Sighting(Kind.REQUEST, mac, who, target)


def test_a_probe_speaks_for_no_address():
    arp = packets.read(packets.arp_request(MAC, None, IP4))
    nd = packets.read(packets.solicitation(MAC, None, IP6))

    assert arp.probe
    assert nd.probe
    assert arp.claims is None
    assert nd.claims is None


def test_both_forms_of_gratuitous_arp_claim_the_address():
    request, reply = (packets.read(frame) for frame in packets.arp_announcements(MAC, IP4))

    assert (request.claims, reply.claims) == (IP4, IP4)
    assert (request.kind, reply.kind) == (Kind.REQUEST, Kind.REPLY)


def test_the_reply_form_targets_our_own_mac_or_it_would_be_ignored():
    _, reply = packets.arp_announcements(MAC, IP4)

    assert reply[32:38].hex(":") == MAC
    assert reply[:6] == packets.BROADCAST


def test_an_advertisement_overrides_and_goes_to_all_nodes():
    frame = packets.advertisement(MAC, IP6)

    assert packets.read(frame) == Sighting(Kind.REPLY, MAC, IP6, IP6)
    assert frame[:6].hex(":") == "33:33:00:00:00:01"
    assert frame[21] == 255
    assert frame[58] & 0x20


def test_a_vlan_tag_is_looked_through():
    frame = packets.arp_request(MAC, IP4, IP4)
    tagged = frame[:12] + bytes.fromhex("81000078") + frame[12:]

    assert packets.read(tagged) == packets.read(frame)


def test_discovery_that_came_through_a_router_or_is_damaged_does_not_count():
    frame = bytearray(packets.advertisement(MAC, IP6))
    frame[21] = 254
    assert packets.read(bytes(frame)) is None
    frame[21] = 255
    frame[70] ^= 1
    assert packets.read(bytes(frame)) is None


@given(st.binary(max_size=120))
def test_any_bytes_are_a_sighting_or_nothing(data):
    found = packets.read(data)

    assert found is None or isinstance(found, Sighting)


@given(st.data())
def test_a_cut_or_flipped_frame_never_raises(data):
    frame = bytearray(packets.solicitation(MAC, IP6, IP6))
    frame[data.draw(st.integers(0, len(frame) - 1))] ^= data.draw(st.integers(1, 255))

    packets.read(bytes(frame[: data.draw(st.integers(0, len(frame)))]))


def accepts(program, frame):
    """Run a classic BPF program (the few instructions that ours use) over a frame."""
    accumulator, at = 0, 0
    while True:
        operation, if_true, if_false, constant = program[at]
        at += 1
        match operation:
            case 0x28 | 0x30:
                size = 2 if operation == 0x28 else 1
                if constant + size > len(frame):
                    return False
                accumulator = int.from_bytes(frame[constant : constant + size], "big")
            case 0x15:
                at += if_true if accumulator == constant else if_false
            case 0x06:
                return constant > 0


ARP = [packets.arp_request(MAC, None, IP4), *packets.arp_announcements(MAC, IP4)]
ND = [packets.solicitation(MAC, None, IP6), packets.advertisement(MAC, IP6)]


def test_the_filters_let_through_what_they_are_for_and_nothing_else():
    for frame in ARP:
        assert accepts(packets.ARP_FILTER, frame)
        assert not accepts(packets.ND_FILTER, frame)
    for frame in ND:
        assert accepts(packets.ND_FILTER, frame)
        assert not accepts(packets.ARP_FILTER, frame)


@given(st.sampled_from(ND), st.integers(0, 255))
def test_other_icmpv6_stays_in_the_kernel(frame, kind):
    other = frame[:54] + bytes([kind]) + frame[55:]

    assert accepts(packets.ND_FILTER, other) == (kind in {135, 136})


@given(st.binary(max_size=90))
def test_whatever_can_be_read_passes_a_filter(data):
    if packets.read(data) is not None and data[12:14] != b"\x81\x00":
        assert accepts(packets.ARP_FILTER, data) or accepts(packets.ND_FILTER, data)


def test_frames_are_what_the_standards_say():
    """RFC 826, and RFC 4861 4.3 with its checksum worked out by hand."""
    assert ARP[0].hex() == (
        "ffffffffffff02000000000b0806000108000604000102000000000b000000000000000000000a4d00c9"
    )
    assert ND[0].hex() == (
        "3333ff00020102000000000b86dd"
        "6000000000183aff"
        "00000000000000000000000000000000"
        "ff0200000000000000000001ff000201"
        "8700" + checksum_by_hand(ND[0]) + "00000000"
        "20010db8007700000000000000000201"
    )


def checksum_by_hand(frame):
    """Of the ICMPv6 part, over the pseudo header of RFC 8200 8.1, in the slow way."""
    body = frame[54:56] + b"\0\0" + frame[58:]
    pseudo = frame[22:54] + len(body).to_bytes(4, "big") + b"\0\0\0\x3a"
    words = [int.from_bytes((pseudo + body)[i : i + 2], "big") for i in range(0, 64, 2)]
    total = sum(words)
    return f"{0xFFFF - (total % 0xFFFF or 0xFFFF):04x}"
