"""Claims fold the same in any order, and junk from the network is refused with a reason."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egress.claims import CLAIMS_MAX, EPOCH_MAX, FOREIGN_KEPT, FOREIGN_MAX, NAME_MAX, Claims
from egress.model import Cause, Claim
from egress.scores import score
from gossip.wire import own

IPS = [ip_address("192.0.2.40"), ip_address("2001:db8::40")]

claim = st.builds(
    Claim,
    ip=st.sampled_from(IPS),
    epoch=st.integers(1, 4),
    owner=st.sampled_from("abc"),
    held=st.booleans(),
    at=st.sampled_from([0.0, 1.5e9]),
    to=st.none() | st.sampled_from("abc"),
    why=st.none() | st.sampled_from(Cause),
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=17),
    lambda inner: st.lists(inner, max_size=7) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


wild = {
    "ip": st.sampled_from(IPS),
    "epoch": st.integers(1, EPOCH_MAX),
    "owner": st.text(min_size=1, max_size=NAME_MAX).filter(lambda name: name.isprintable()),
    "held": st.booleans(),
    "at": st.floats(0, 1e10),
    "to": st.none() | st.sampled_from(["b", "ä" * 60]),
    "why": st.none() | st.sampled_from(Cause),
}


def folded(claims):
    table = Claims()
    for each in claims:
        table.fold(each)
    return {ip: table.top(ip) for ip in IPS}


@given(st.lists(claim, max_size=12), st.randoms())
def test_claims_fold_the_same_in_any_order_and_however_often(claims, rng):
    again = claims + claims
    rng.shuffle(again)

    assert folded(again) == folded(claims)


def test_a_higher_epoch_wins_and_a_release_beats_the_holding_of_its_owner():
    table = Claims()
    held = Claim(IPS[0], 3, "a", held=True)
    released = Claim(IPS[0], 3, "a", held=False)

    assert table.fold(held)
    assert not table.fold(Claim(IPS[0], 2, "b", held=True))
    assert table.fold(released)
    assert not table.fold(held)
    assert table.holder(IPS[0]) is None
    assert table.fold(Claim(IPS[0], 4, "b", held=True))
    assert table.held_by("b") == (IPS[0],)


def test_equal_epochs_go_by_score_whoever_comes_first():
    one, other = (Claim(IPS[0], 5, name, held=True) for name in ("a", "b"))
    best = max("ab", key=lambda name: score(IPS[0], name))

    for order in ([one, other], [other, one]):
        table = Claims()
        for each in order:
            table.fold(each)
        assert table.holder(IPS[0]) == best


@given(st.lists(claim, max_size=30))
def test_claims_survive_the_wire_in_pages(claims):
    pages = list(Claims().pages(claims, 200))

    assert [each for page in pages for each in Claims.read(page)] == claims


@given(
    st.lists(st.builds(Claim, **wild), max_size=30, unique_by=lambda each: each.owner),
    st.integers(400, 1100),
)
def test_a_page_of_claims_fits_what_it_was_made_for(claims, size):
    pages = list(Claims().pages(claims, size))

    packed = [len(own.pack(32, page)) - len(own.pack(32, [])) - 2 for page in pages]
    assert all(bytes_ <= size or len(page) == 1 for bytes_, page in zip(packed, pages, strict=True))
    assert sum(map(len, pages)) == len(claims)


def test_a_full_table_can_be_read_back_from_one_message():
    rows = [[b"\x0a\0\0\1", 1, "a", False, 0.0, None, "selector"]] * CLAIMS_MAX

    _, value = own.unpack(own.pack(32, rows))

    assert len(Claims.read(value)) == CLAIMS_MAX


@given(anything)
def test_whatever_comes_is_claims_or_a_value_error(value):
    try:
        found = Claims.read(value)
    except ValueError:
        return
    assert all(isinstance(each, Claim) for each in found)


@pytest.mark.parametrize(
    "row",
    [
        [b"\x0a", 1, "a", True, 0.0, None],
        [b"\x0a\0\0\1", 0, "a", True, 0.0, None],
        [b"\x0a\0\0\1", True, "a", True, 0.0, None],
        [b"\x0a\0\0\1", 1 << 60, "a", True, 0.0, None],
        [b"\x0a\0\0\1", 1, "", True, 0.0, None],
        [b"\x0a\0\0\1", 1, "a", 1, 0.0, None],
        [b"\x0a\0\0\1", 1, "a", True, float("nan"), None],
        [b"\x0a\0\0\1", 1, "a", True, True, None],
        [b"\x0a\0\0\1", 1, "a" * 300, True, 0.0, None],
        [b"\x0a\0\0\1", 1, "a\n", True, 0.0, None],
        [b"\x0a\0\0\1", 1, "a", True, 0.0, ["b"]],
        [b"\x0a\0\0\1", 1, "a"],
    ],
)
def test_an_impossible_claim_is_refused(row):
    Claims.read([[b"\x0a\0\0\1", 1, "a", True, 1.0, None]])
    with pytest.raises(ValueError, match="claim"):
        Claims.read([row])


def test_a_cause_that_we_do_not_know_is_no_reason_to_refuse_a_claim():
    row = [b"\x0a\0\0\1", 1, "a", False, 0.0, None]

    known, unknown, odd = Claims.read([[*row, "drain"], [*row, "boredom"], [*row, 7]])

    assert (known.why, unknown.why, odd.why) == (Cause.DRAIN, None, None)


def test_what_no_egress_names_is_forgotten_after_a_while():
    table = Claims()
    for ip in IPS:
        table.fold(Claim(ip, 1, "a", held=True))
    table.want({IPS[0]}, 100.0)
    table.want({IPS[0]}, 100.0 + FOREIGN_KEPT - 1)
    assert len(table) == 2

    table.want({IPS[0]}, 100.0 + FOREIGN_KEPT)

    assert table.held_by("a") == (IPS[0],)


def test_what_is_wanted_again_in_time_is_kept():
    table = Claims()
    table.fold(Claim(IPS[0], 1, "a", held=True))
    table.want((), 0.0)
    table.want({IPS[0]}, FOREIGN_KEPT - 1)
    table.want((), FOREIGN_KEPT)

    assert len(table) == 1


def test_junk_leaves_room_for_what_egresses_name():
    table = Claims()
    table.want({IPS[0]}, 0.0)
    junk = [Claim(ip_address(number), 1, "a", held=True) for number in range(1, FOREIGN_MAX + 2)]

    assert [table.fold(each) for each in junk] == [True] * FOREIGN_MAX + [False]
    assert table.fold(Claim(IPS[0], 1, "b", held=True))


def test_changes_are_told_since_a_version():
    table = Claims()
    table.fold(Claim(IPS[0], 1, "a", held=True))
    version = table.version
    table.fold(Claim(IPS[1], 1, "a", held=True))
    table.fold(Claim(IPS[1], 2, "a", held=True))
    table.fold(Claim(IPS[0], 1, "a", held=True))

    assert table.changes(version) == [IPS[1]]
    assert table.changes(0) == [IPS[1], IPS[0]]
    assert table.changes(table.version) == []


def test_an_address_is_with_its_holder_since_it_changed_hands():
    table = Claims()
    table.fold(Claim(IPS[0], 1, "a", held=True), 10.0)
    table.fold(Claim(IPS[0], 2, "a", held=True), 20.0)
    assert table.since(IPS[0]) == 10.0

    table.fold(Claim(IPS[0], 3, "b", held=True), 30.0)

    assert table.since(IPS[0]) == 30.0
