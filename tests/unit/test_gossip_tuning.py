"""Numbers that follow from the size of the cluster, against memberlist's own."""

import math

import pytest

from gossip.suspicion import length
from gossip.tuning import (
    default,
    fast,
    memberlist_lan,
    push_pull_period,
    retransmissions,
    suspicion_bounds,
)

LAN = memberlist_lan()

# members, retransmissions, confirmations, least s, most s, after one of two s, push/pull s
TABLE = [
    (1, 4, 0, 4, 24, None, 30),
    (3, 4, 0, 4, 24, None, 30),
    (4, 4, 2, 4, 24, 11.381, 30),
    (9, 4, 2, 4, 24, 11.381, 30),
    (10, 8, 2, 4, 24, 11.381, 30),
    (16, 8, 2, 4.816, 28.896, 13.703, 30),
    (32, 8, 2, 6.02, 36.12, 17.129, 30),
    (33, 8, 2, 6.072, 36.432, 17.276, 60),
    (64, 8, 2, 7.224, 43.344, 20.554, 60),
    (65, 8, 2, 7.248, 43.488, 20.623, 90),
    (100, 12, 2, 8, 48, 22.762, 90),
    (128, 12, 2, 8.428, 50.568, 23.980, 90),
    (256, 12, 2, 9.632, 57.792, 27.406, 120),
    (500, 12, 2, 10.792, 64.752, 30.707, 150),
    (1000, 16, 2, 12, 72, 34.144, 180),
    (5000, 16, 2, 14.792, 88.752, 42.088, 270),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"n={row[0]}")
def test_the_derived_numbers_are_memberlists(row):
    members, sent, wanted, least, most, after_one, period = row

    bounds = suspicion_bounds(LAN, members, members)

    assert retransmissions(LAN.retransmit_mult, members) == sent
    assert bounds.wanted == wanted
    assert (bounds.least, bounds.most) == pytest.approx((least, most), abs=1e-9)
    assert push_pull_period(LAN.push_pull_interval, members) == period
    if after_one is None:
        assert length(bounds, 0) == bounds.least
    else:
        assert length(bounds, 0) == pytest.approx(most, abs=0.001)
        assert length(bounds, 1) == pytest.approx(after_one, abs=1e-9)
        assert length(bounds, 2) == pytest.approx(least, abs=0.001)


def test_a_minority_does_not_become_hasty_but_asks_only_those_who_are_there():
    bounds = suspicion_bounds(default(), 3, 1000)

    assert bounds.least == suspicion_bounds(default(), 1000, 1000).least
    assert bounds.wanted == 0


def test_the_comparison_preset_has_none_of_our_additions():
    assert not LAN.additions
    assert LAN.watchers == 0
    assert math.inf in {LAN.rejoin_interval} & {LAN.knock_interval} & {LAN.reclaim_after}


@pytest.mark.parametrize("tuning", [default(), fast()])
def test_a_relay_speaks_before_its_asker_gives_up(tuning):
    assert tuning.probe_timeout * (1 + tuning.nack_share) < tuning.probe_interval
    assert tuning.nack_share < 1
