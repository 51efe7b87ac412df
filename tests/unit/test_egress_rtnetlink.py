"""Messages of rtnetlink as bytes."""

import struct
from ipaddress import IPv4Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from egress import rtnetlink
from egress.rtnetlink import Address, End, Link, Template, Verdict


def encoded_address(kind=rtnetlink.RTM_NEWADDR, family=2, prefix=32, flags=0, pid=0, **attributes):
    message = ifaddrmsg()
    message["header"]["type"] = kind
    message["header"]["pid"] = pid
    message["family"], message["prefixlen"] = family, prefix
    message["flags"], message["index"] = flags & 0xFF, 7
    message["attrs"] = [[f"IFA_{name.upper()}", value] for name, value in attributes.items()]
    message.encode()
    return bytes(message.data)


def encoded_link(kind=rtnetlink.RTM_NEWLINK, flags=0, family=0, **attributes):
    message = ifinfmsg()
    message["header"]["type"] = kind
    message["family"], message["index"], message["flags"] = family, 4, flags
    message["attrs"] = [[f"IFLA_{name.upper()}", value] for name, value in attributes.items()]
    message.encode()
    return bytes(message.data)


def lifetimes(preferred, valid):
    return {"ifa_preferred": preferred, "ifa_valid": valid, "cstamp": 0, "tstamp": 0}


def only(data):
    (message,) = rtnetlink.decode(data)
    return message


def test_an_ipv4_address_is_read_whole():
    data = encoded_address(
        address="10.0.0.60", local="10.0.0.60", label="eth0", cacheinfo=lifetimes(3, 3), proto=0x45
    )

    seen = only(data)

    assert seen.ip == ip_address("10.0.0.60")
    assert (seen.prefix, seen.index, seen.mark, seen.valid) == (32, 7, 0x45, 3.0)
    assert seen.usable
    assert not seen.gone


def test_an_ipv6_address_has_no_local_attribute():
    seen = only(encoded_address(family=10, prefix=64, address="2001:db8::1"))

    assert str(seen.ip) == "2001:db8::1"
    assert str(seen.network) == "2001:db8::/64"


def test_on_a_point_to_point_link_the_address_is_ours_and_the_network_is_theirs():
    seen = only(encoded_address(address="10.9.0.2", local="10.9.0.1"))

    assert str(seen.ip) == "10.9.0.1"
    assert seen.network == IPv4Network("10.9.0.2/32")


def test_without_cacheinfo_or_with_all_ones_a_lifetime_is_for_ever():
    assert only(encoded_address(local="10.0.0.1")).valid is None
    eternal = encoded_address(local="10.0.0.1", cacheinfo=lifetimes(0xFFFFFFFF, 0xFFFFFFFF))
    assert only(eternal).valid is None


@pytest.mark.parametrize("flag", [rtnetlink.IFA_F_TENTATIVE, rtnetlink.IFA_F_DADFAILED])
def test_an_address_in_duplicate_detection_is_not_usable(flag):
    seen = only(encoded_address(family=10, prefix=128, address="fd00::1", flags=flag))

    assert not seen.usable


def test_the_wide_flags_win_over_the_narrow_ones():
    data = encoded_address(local="10.0.0.1", flags=0x80)
    wide = data + struct.pack("=HHI", 8, rtnetlink.IFA_FLAGS, 0x280)
    seen = only(struct.pack("=I", len(wide)) + wide[4:])

    assert seen.flags == 0x280


def test_a_link_is_read_with_its_carrier_its_master_and_its_kind():
    up = rtnetlink.IFF_UP | rtnetlink.IFF_RUNNING | rtnetlink.IFF_LOWER_UP
    data = encoded_link(
        flags=up,
        ifname="eth0",
        address="02:00:00:00:00:01",
        master=9,
        linkinfo={"attrs": [["IFLA_INFO_KIND", "veth"]]},
    )

    seen = only(data)

    assert (seen.index, seen.name, seen.mac) == (4, "eth0", "02:00:00:00:00:01")
    assert (seen.carrier, seen.master, seen.kind) == (True, 9, "veth")


@pytest.mark.parametrize(
    "missing", [rtnetlink.IFF_UP, rtnetlink.IFF_RUNNING, rtnetlink.IFF_LOWER_UP]
)
def test_a_link_that_lacks_one_of_three_flags_has_no_carrier(missing):
    up = rtnetlink.IFF_UP | rtnetlink.IFF_RUNNING | rtnetlink.IFF_LOWER_UP

    assert only(encoded_link(flags=up, ifname="eth0")).carrier
    assert not only(encoded_link(flags=up & ~missing, ifname="eth0")).carrier


def test_what_a_bridge_says_about_its_ports_is_not_about_links():
    assert list(rtnetlink.decode(encoded_link(family=7, ifname="eth0"))) == []


def test_a_refusal_carries_the_words_of_the_kernel():
    words = b"ipv4: Address not found\0"
    tlv = struct.pack("=HH", 4 + len(words), 1) + words
    body = struct.pack("=iIHHII", -99, 48, 21, 0, 5, 0) + tlv
    flags = rtnetlink.NLM_F_CAPPED | rtnetlink.NLM_F_ACK_TLVS
    data = struct.pack("=IHHII", 16 + len(body), rtnetlink.NLMSG_ERROR, flags, 5, 0) + body

    assert only(data) == Verdict(5, 99, "ipv4: Address not found")


def test_a_dump_that_was_torn_says_so_in_one_of_its_messages():
    done = struct.pack("=IHHIIi", 20, rtnetlink.NLMSG_DONE, 0, 3, 0, 0)
    before = bytearray(encoded_address(local="10.0.0.1"))
    assert not rtnetlink.torn(bytes(before) + done)

    before[6] |= rtnetlink.NLM_F_DUMP_INTR
    assert rtnetlink.torn(bytes(before) + done)


def test_an_answer_ends_with_the_message_that_bears_its_number():
    done = struct.pack("=IHHIIi", 20, rtnetlink.NLMSG_DONE, 0, 3, 0, 0)

    assert only(done) == End(3, 0)
    assert rtnetlink.ends(encoded_address(local="10.0.0.1") + done, 3)
    assert not rtnetlink.ends(done, 4)
    assert not rtnetlink.ends(encoded_address(local="10.0.0.1"), 0)


def stamped(family, packed, lifetimes_):
    zero = "0.0.0.0" if family == 2 else "::"
    template = Template(
        encoded_address(
            family=family,
            prefix=32 if family == 2 else 128,
            local=zero,
            address=zero,
            cacheinfo=lifetimes(0, 0),
            proto=0x45,
        )
    )
    return template.stamp(packed, 12, lifetimes_, 77, ack=True)


@given(st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16), st.integers(1, 600))
def test_a_stamped_message_reads_back_as_what_was_stamped(packed, seconds):
    family = 2 if len(packed) == 4 else 10

    data = stamped(family, packed, (seconds, seconds))
    seen = only(data)

    assert (seen.packed, seen.base, seen.index) == (packed, packed, 12)
    assert (seen.mark, seen.valid) == (0x45, float(seconds))
    length, _, flags, sequence, _ = struct.unpack_from("=IHHII", data)
    assert (length, sequence, flags & rtnetlink.NLM_F_ACK) == (len(data), 77, rtnetlink.NLM_F_ACK)


def test_a_template_stays_as_it_was_when_it_is_stamped():
    first = stamped(2, b"\x0a\0\0\x01", (3, 3))

    assert stamped(2, b"\x0a\0\0\x01", (3, 3)) == first


@given(st.binary(max_size=400))
def test_any_bytes_are_decoded_without_an_error(data):
    for message in rtnetlink.decode(data):
        assert isinstance(message, Address | Link | Verdict | End)
    assert rtnetlink.ends(data, 1) in (True, False)
    assert rtnetlink.torn(data) in (True, False)


VALID = [
    encoded_address(address="10.0.0.60", local="10.0.0.60", cacheinfo=lifetimes(3, 3), proto=0x45),
    encoded_address(family=10, prefix=128, address="fd00::1", cacheinfo=lifetimes(0, 3)),
    encoded_link(ifname="eth0", address="02:00:00:00:00:01", master=9),
]


@given(st.sampled_from(VALID), st.integers(0, 200), st.binary(min_size=1, max_size=4))
def test_damaged_messages_are_decoded_without_an_error(data, place, noise):
    torn = bytearray(data)
    torn[place : place + len(noise)] = noise

    for message in rtnetlink.decode(bytes(torn)):
        if isinstance(message, Address):
            assert message.ip.packed == message.packed
            assert message.network.prefixlen == message.prefix
