"""Scores are wire format: a release with others splits a cluster while it is rolled out."""

from ipaddress import ip_address

import pytest

from egress.scores import score

GOLDEN = [
    ("192.0.2.40", "node-a", "", 1.3435848450960557),
    ("192.0.2.40", "node-b", "", 1.3457990200535759),
    ("192.0.2.40", "worker-17.example", "", 3.001096195353714),
    ("192.0.2.41", "node-a", "", 21.072541528272744),
    ("192.0.2.41", "node-b", "", 0.9955094968745812),
    ("192.0.2.41", "worker-17.example", "", 73.32204979588818),
    ("10.77.0.201", "node-a", "", 1.3300511120093077),
    ("10.77.0.201", "node-b", "", 20.1326510259383),
    ("10.77.0.201", "worker-17.example", "", 4.903030139976609),
    ("2001:db8:77::201", "node-a", "", 1.0532069400672441),
    ("2001:db8:77::201", "node-b", "", 0.40200062990194263),
    ("2001:db8:77::201", "worker-17.example", "", 0.5912826600423863),
    ("192.0.2.40", "node-a", "blue", 82.5214746912811),
    ("192.0.2.40", "knoten-ä", "", 1.325168890959392),
    ("2001:db8::1", "n", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 1.070432025465644),
]


@pytest.mark.parametrize(("ip", "name", "seed", "expected"), GOLDEN)
def test_the_score_is_what_it_always_was(ip, name, seed, expected):
    assert score(ip_address(ip), name, seed) == pytest.approx(expected, rel=1e-12)


def test_weight_scales_the_score():
    ip = ip_address("192.0.2.40")

    assert score(ip, "node-a", weight=2.5) == pytest.approx(2.5 * score(ip, "node-a"))
