"""What a plan says is what the election does: it is the same from any picture, and then rests."""

from dataclasses import replace
from ipaddress import ip_address

from hypothesis import given, settings
from hypothesis import strategies as st

from agent import whatif
from agent.picture import read
from agent.whatif import Picture
from egress.election import Rules
from egress.model import Candidate, Claim, Egress

NAMES = [f"n{number}" for number in range(1, 7)]


@st.composite
def pictures(draw):
    members = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    candidates = {
        name: Candidate(
            name,
            reasons=draw(st.sampled_from([(), (), (), ("draining",), ("no_carrier",)])),
            capacity=draw(st.sampled_from([None, None, 3])),
            healthy_since=draw(st.sampled_from([-1000.0, -5.0])),
        )
        for name in members
    }
    count = draw(st.integers(0, 12))
    egresses = tuple(Egress(f"e{n}", (ip_address(0x0A4D0000 + n),)) for n in range(count))
    claims = tuple(
        Claim(each.ips[0], draw(st.integers(1, 5)), draw(st.sampled_from(NAMES)), held=True)
        for each in egresses
        if draw(st.booleans())
    )
    held = {each.ip: draw(st.sampled_from([-2000.0, -10.0])) for each in claims}
    return Picture(
        egresses=egresses, candidates=candidates, claims=claims, held=held, rules=Rules()
    )


def applied(picture, found):
    """Everything that was planned has happened."""
    moved = {ip_address(each["ip"]): each["to"] for each in found["moves"]}
    tops = {each.ip: each for each in picture.claims}
    for ip, owner in moved.items():
        epoch = tops[ip].epoch + 1 if ip in tops else 1
        tops[ip] = Claim(ip, epoch, owner or tops[ip].owner, held=owner is not None)
    held = {ip: 31.0 if ip in moved else picture.held.get(ip, 0.0) for ip in tops}
    return replace(picture, claims=tuple(tops.values()), held=held)


@given(pictures(), st.sets(st.sampled_from(NAMES), max_size=2))
@settings(deadline=None)
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(picture, gone):
    after = whatif.without(picture, gone)
    found = whatif.plan(picture, after)

    done = applied(after, found)
    again = whatif.plan(done, done)

    assert again["moves"] == []
    assert again["load"] == found["load"]


@given(pictures(), st.sets(st.sampled_from(NAMES), max_size=2))
@settings(deadline=None)
def test_a_plan_accounts_for_every_address(picture, gone):
    after = whatif.without(picture, gone)
    found = whatif.plan(picture, after)

    total = sum(len(each.ips) for each in picture.egresses)
    assert sum(found["load"].values()) + len(found["unassigned"]) == total
    assert not gone & found["load"].keys()
    assert not [each for each in found["moves"] if each["to"] in gone]
    assert all(each["from"] != each["to"] for each in found["moves"])


@given(pictures())
@settings(deadline=None)
def test_a_picture_survives_the_way_through_the_socket(picture):
    _, back = read(told(picture))

    assert whatif.plan(back, back) == whatif.plan(picture, picture)


def told(picture):
    """As `agent.picture.rows` tells a snapshot."""
    from agent import picture as words

    return [
        {
            "kind": "rules",
            "node": "n1",
            "seed": picture.rules.seed,
            "load_factor": picture.rules.load_factor,
            "failback_delay": picture.rules.failback_delay,
        },
        *(words._member(each, 0.0) for each in picture.candidates.values()),
        *map(words._egress, picture.egresses),
        *(words._claim(each, -picture.held[each.ip]) for each in picture.claims),
    ]
