"""Field types: what they read, what they show, and what they tell."""

from ipaddress import ip_address

import pytest
from pydantic_core import PydanticCustomError

from config import addresses, types
from config.addresses import AUTO, Endpoint, OnInterface, Seed
from config.schema.agent import AutoReload, Level
from config.schema.gossip import VERSIONS


def refusal(form, value):
    with pytest.raises(PydanticCustomError) as caught:
        form.parse(value)
    return caught.value.message()


@pytest.mark.parametrize(
    ("text", "value"),
    [("500ms", 0.5), ("3s", 3.0), ("1m30s", 90.0), ("1.5s", 1.5), ("2h", 7200.0), ("1d", 86400.0)],
)
def test_a_duration_becomes_seconds(text, value):
    assert types.seconds(text) == value


@pytest.mark.parametrize("text", ["0s", "1ms", "999ms", "1m1s1ms", "1d1h", "59m59s"])
def test_a_duration_is_shown_as_it_was_written(text):
    assert types.show_seconds(types.seconds(text)) == text


@pytest.mark.parametrize(
    ("value", "write"),
    [
        (5, "write 5ms or 5s"),
        (0.5, "write 0.5ms or 0.5s"),
        ("5", "write 5ms or 5s"),
        ("5 s", "write 5s"),
        ("5S", "write a duration"),
        ("5min", "write 5m"),
        ("2 hours", "write 2h"),
        ("1:02:03", "write 1h2m3s"),
        ("0.5ms", "write whole milliseconds"),
        ("-1s", "write a duration"),
        ("soon", "write a duration"),
        ("", "write a duration"),
        (True, "write a duration"),
        (["1s"], "write a duration"),
        ("2h", "write a duration from 1s to 1h"),
    ],
)
def test_a_strange_duration_is_told_how_to_be_written(value, write):
    assert write in refusal(types.duration("1s", "1h"), value)


@pytest.mark.parametrize(("text", "share"), [("50%", 0.5), ("0%", 0.0), ("100%", 1.0)])
def test_a_share_is_a_part_of_one(text, share):
    assert types.SHARE_OR_OFF.parse(text) == share
    assert types.SHARE_OR_OFF.show(share) == text


def test_a_share_can_be_off():
    assert types.SHARE_OR_OFF.parse("off") is None
    assert types.SHARE_OR_OFF.show(None) == "off"


@pytest.mark.parametrize("value", ["101%", "half", 0.5, "50", True, "5.5%"])
def test_a_strange_share_is_refused(value):
    assert "%" in refusal(types.SHARE_OR_OFF, value)


def test_a_switch_is_no_word_and_no_number():
    assert types.SWITCH.parse(value=True) is True
    assert "write true without quotes" in refusal(types.SWITCH, "yes")
    assert "write false without quotes" in refusal(types.SWITCH, 0)
    assert "write true or false" in refusal(types.SWITCH, "maybe")


def test_a_switch_is_no_whole_number():
    assert "the switch true" in refusal(types.whole(0, 5), value=True)


def test_a_choice_named_off_may_be_written_as_a_switch():
    assert types.choice(AutoReload).parse(value=False) is AutoReload.OFF
    assert "write one of debug" in refusal(types.choice(Level), value=False)


@pytest.mark.parametrize(
    "value",
    ["0.0.0.0", "0.1.2.3", "::", "127.0.0.1", "::1", "169.254.1.1", "fe80::1", "224.0.0.1",
     "ff02::1", "240.0.0.1", "255.255.255.255"],
)  # fmt: skip
def test_an_address_that_no_host_can_carry_is_refused(value):
    assert "write an address of your network" in refusal(addresses.EGRESS_IP, value)


@pytest.mark.parametrize(
    ("value", "write"),
    [
        ("192.0.2.1/24", "write 192.0.2.1"),
        ("192.0.2.1:80", "write 192.0.2.1"),
        ("[2001:db8::1]", "write 2001:db8::1"),
        ("[2001:db8::1]:80", "write 2001:db8::1"),
        ("192.0.02.1", "write 192.0.2.1"),
        (" 192.0.2.1", "write 192.0.2.1"),
        ("192.0.2.256", "256 is above 255"),
        ("192.0.2", "no IP address"),
        ("fe80::1%eth0", "with a zone"),
        ("::ffff:192.0.2.1", "write 192.0.2.1"),
        (3221225985, "write an address"),
        (None, "is empty"),
        ("", "no IP address"),
        ("²", "no IP address"),
        ("1.²", "no IP address"),
        ("192.0.2.²", "no IP address"),
        ("192.0.2.1/²", "with a prefix length"),
        ("192.0.2.1:²", "no IP address"),
        ("9" * 5000, "no IP address"),
    ],
)
def test_a_strange_address_is_told_how_to_be_written(value, write):
    assert write in refusal(addresses.EGRESS_IP, value)


def test_any_spelling_of_an_address_is_the_same_address():
    assert addresses.read_ip("2001:DB8:0::1") == ip_address("2001:db8::1")


@pytest.mark.parametrize(
    ("value", "write"),
    [
        ("10.0.0.0", "write 10.0.0.0/32"),
        ("10.0.0.0/33", "from 0 to 32"),
        ("10.0.0.1/8", "write 10.0.0.0/8, or 10.0.0.1/32"),
        ("2001:db8::/129", "from 0 to 128"),
        ("10.0.0.0/255.0.0.0", "from 0 to 32"),
        ("10.0.0.0/²", "from 0 to 32"),
        (f"10.0.0.0/{'1' * 5000}", "from 0 to 32"),
        (10, "write a network"),
    ],
)
def test_a_strange_network_is_told_how_to_be_written(value, write):
    assert write in refusal(addresses.NETWORK, value)


@pytest.mark.parametrize(
    ("text", "seed"),
    [
        ("192.0.2.11", Seed("192.0.2.11")),
        ("192.0.2.11:7000", Seed("192.0.2.11", 7000)),
        ("2001:db8::11", Seed("2001:db8::11")),
        ("[2001:db8::11]:7000", Seed("2001:db8::11", 7000)),
        ("[2001:db8::11]", Seed("2001:db8::11")),
        ("gossip.example.org", Seed("gossip.example.org")),
        ("gossip:7000", Seed("gossip", 7000)),
    ],
)
def test_a_seed_is_a_host_with_or_without_a_port(text, seed):
    assert addresses.SEED.parse(text) == seed
    assert addresses.SEED.parse(addresses.SEED.show(seed)) == seed


@pytest.mark.parametrize(
    "value", ["", "10.0.0.1:0", "10.0.0.1:x", "10.0.0.300", "a b", "http://x", ":80", "[::1]x", 7]
)
def test_a_strange_seed_is_refused(value):
    assert "write" in refusal(addresses.SEED, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("127.0.0.1:9765", Endpoint(ip_address("127.0.0.1"), 9765)),
        ("[::]:9765", Endpoint(ip_address("::"), 9765)),
    ],
)
def test_an_endpoint_is_an_address_and_a_port(text, value):
    assert addresses.ENDPOINT.parse(text) == value
    assert addresses.ENDPOINT.show(value) == text


@pytest.mark.parametrize(
    ("value", "write"),
    [
        (":9765", "write 0.0.0.0:9765"),
        ("9765", "write 127.0.0.1:9765"),
        (9765, "write an address and a port"),
        ("::1", "write 127.0.0.1:9765 or [::1]:9765"),
        ("2001:db8::1:9765:x", "write [2001:db8::1:9765]:x"),
        ("127.0.0.1:70000", "write 1 to 65535"),
        ("localhost:9765", "no IP address"),
    ],
)
def test_a_strange_endpoint_is_told_how_to_be_written(value, write):
    assert write in refusal(addresses.ENDPOINT_OR_OFF, value)


def test_an_endpoint_can_be_off():
    assert addresses.ENDPOINT_OR_OFF.parse("off") is None
    assert addresses.ENDPOINT_OR_OFF.show(None) == "off"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("auto", AUTO),
        ("iface:eth0", OnInterface("eth0")),
        ("192.0.2.11", ip_address("192.0.2.11")),
    ],
)
def test_a_node_address_is_found_on_an_interface_or_given(text, value):
    assert addresses.NODE_ADDRESS.parse(text) == value
    assert addresses.NODE_ADDRESS.show(value) == text


def test_an_interface_in_the_place_of_a_node_address_is_told_how_to_be_written():
    assert "iface:eth0" in refusal(addresses.NODE_ADDRESS, "eth0")


@pytest.mark.parametrize("value", ["", "a/b", "sixteen-letters!", "eth 0", ".", "eth*", 0])
def test_a_name_that_no_interface_has_is_refused(value):
    assert "interface" in refusal(addresses.INTERFACE, value)


@pytest.mark.parametrize(
    ("text", "value"), [("none", (0, 0, 0)), ("serf", (2, 5, 5)), ("1,4,3", (1, 4, 3))]
)
def test_delegate_versions_have_names_and_numbers(text, value):
    assert VERSIONS.parse(text) == value
    assert VERSIONS.show(value) == text


@pytest.mark.parametrize("value", ["2,5", "5,2,3", "2,5,6", "0,256,1", "", 2])
def test_strange_delegate_versions_are_refused(value):
    assert "write" in refusal(VERSIONS, value)
