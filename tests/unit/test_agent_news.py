"""Finished moves on the wire: they come back as they were, and nobody tells those of others."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import history, news
from agent.news import TOLD_MAX, WINDOW, Allowance
from agent.publisher import PAGE_BYTES
from egress.decision import Move
from egress.model import Cause
from gossip.wire import own

seconds = st.none() | st.floats(0, 1000)
names = st.sampled_from(["n1", "node-2.example", "ä" * 100, "x" * 253])


def entry(number=0, **parts):
    fields = {"name": "e", "origin": "b", "to": "a", "cause": Cause.DRAIN, "bound": 1.5}
    ip = ip_address(0x0A4D0000 + number)
    return history.entry(Move(ip=ip, **{**fields, "announced": 1.6, **parts}), 2.0, 1.7e9)


@st.composite
def entries(draw):
    times = {key: draw(seconds) for key in ("lost", "detected", "elected", "checked")}
    return entry(
        draw(st.integers(0, 255)),
        name=draw(names),
        origin=draw(st.none() | names),
        cause=draw(st.sampled_from(Cause)),
        **times,
    )


@given(st.lists(entries(), max_size=40))
@pytest.mark.slow
def test_moves_survive_the_wire_in_pages_that_fit(told):
    pages = list(news.pages(told, PAGE_BYTES))

    packed = [own.unpack(own.pack(36, page))[1] for page in pages]
    found = [each for page in packed for each in news.read(page, "a")]
    assert found == told
    assert all(history.read(history.line(each)) == each for each in found)
    assert all(len(own.pack(36, page)) < PAGE_BYTES + 16 or len(page) == 1 for page in pages)


def test_nobody_tells_what_ended_on_another():
    (page,) = news.pages([entry()], PAGE_BYTES)
    (given_up,) = news.pages([entry(to=None)], PAGE_BYTES)

    assert len(news.read(page, "a")) == len(news.read(given_up, "b")) == 1
    for value, sender in ((page, "b"), (page, "c"), (given_up, "a")):
        with pytest.raises(ValueError, match="of others"):
            news.read(value, sender)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (0, b"\x0a"),
        (1, "yesterday"),
        (2, None),
        (2, "a\nb"),
        (3, 7),
        (4, "x" * 300),
        (5, "boredom"),
        (6, -1.0),
        (7, float("nan")),
        (8, True),
        (9, 1e9),
        (10, "1"),
    ],
)
def test_an_impossible_move_is_refused(at, value):
    ((row,),) = news.pages([entry()], PAGE_BYTES)
    row[at] = value

    with pytest.raises(ValueError, match="move"):
        news.read([row], "a")


@pytest.mark.parametrize("value", [None, {}, [[]], [None], [[b""] * 11], [[]] * 100])
def test_what_is_no_list_of_moves_is_refused(value):
    with pytest.raises(ValueError, match="move"):
        news.read(value, "a")


def test_of_a_great_many_only_the_first_are_told_until_a_while_has_passed():
    allowance = Allowance()
    crowd = [entry(number) for number in range(200)]

    assert len(allowance.take(crowd, 0.0)) == 200
    assert len(allowance.take(crowd, 1.0)) == TOLD_MAX - 200
    assert len(allowance.take(crowd, 2.0)) == 0
    assert len(allowance.take(crowd, WINDOW)) == 200
