"""What a member says of itself fits, comes back as it was, and junk is not believed."""

from dataclasses import replace
from ipaddress import ip_address, ip_network

from hypothesis import given
from hypothesis import strategies as st

from agent import facts
from agent.facts import Facts
from gossip.wire import own

FULL = Facts(
    version="0.1.0",
    cluster="blue",
    generation=42,
    cluster_digest="f61f0530d61c13d0",
    node_digest="a043c6447e3e631c",
    reasons=("draining", "isolated"),
    weight=2.5,
    capacity=20,
    labels=(("rack", "r7"), ("zone", "b")),
    macs=frozenset({"02:00:00:00:00:0b"}),
    networks=(ip_network("10.77.0.0/24"), ip_network("2001:db8:77::/64")),
    addresses=(ip_address("10.77.0.11"), ip_address("2001:db8:77::11")),
    lease=5.0,
    restarting=30.0,
)

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats()
    | st.text(max_size=9)
    | st.binary(max_size=18),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)
keys = st.sampled_from(["v", "k", "g", "d", "n", "r", "w", "c", "l", "m", "s", "a", "t"])


def test_facts_survive_the_wire():
    assert facts.read(facts.packed(FULL)) == FULL
    assert facts.read(facts.packed(Facts())) == Facts()


def test_full_facts_fit_into_the_metadata():
    assert len(facts.packed(FULL)) <= facts.LIMIT
    assert len(facts.packed(Facts(version="0.1.0"))) < 20


def test_metadata_of_others_is_not_ours():
    assert facts.read(b"\xff\x81\xa4role\xa3web") is None
    assert facts.read(b"") is None
    assert facts.read(own.pack(5, {"v": "0.1.0"})) is None


@given(st.dictionaries(keys, plain) | plain)
def test_hostile_metadata_gives_facts_with_sane_fields_or_none(value):
    found = facts.read(own.pack(facts.META_KIND, value))

    if found is not None:
        assert 0.0 <= found.weight <= 100.0
        assert 1.0 <= found.lease <= 3600.0
        assert 0.0 <= found.restarting <= 600.0
        assert len(found.reasons) <= facts.MOST_REASONS
        assert all(len(mac) == 17 for mac in found.macs)


def test_a_field_of_the_wrong_kind_is_as_good_as_absent():
    value = facts.to_plain(replace(FULL, weight=1.0)) | {"w": "heavy", "c": -1, "m": 7}
    found = facts.read(own.pack(facts.META_KIND, value))

    assert (found.weight, found.capacity, found.macs) == (1.0, None, frozenset())
    assert found.labels == FULL.labels
