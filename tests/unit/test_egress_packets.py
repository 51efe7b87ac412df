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
