"""Scores and layouts are wire format: others split a cluster while a release is rolled out."""

from ipaddress import ip_address

import pytest

from egress.claims import Claims
from egress.election import Rules, elect
from egress.model import Candidate, Egress
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
    ("192.0.2.40", "b", "blue", 49.9950652461473),
    ("10.0.0.1", "node-a", "", 2.1545716930878545),
    ("10.0.0.1", "node-a", "node-a", 5.73872108814514),
    ("::1", "node-a", "", 10.133568363597494),
    ("203.0.113.255", "a" * 253, "", 1.2446160873011718),
    ("2001:db8::1", "n", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 1.070432025465644),
]


@pytest.mark.parametrize(("ip", "name", "seed", "expected"), GOLDEN)
def test_the_score_is_what_it_always_was(ip, name, seed, expected):
    assert score(ip_address(ip), name, seed) == pytest.approx(expected, rel=1e-12)


def test_a_layout_is_what_it_always_was():
    weights = {"node-a": 1.0, "node-b": 1.0, "node-c": 2.0, "node-d": 0.5}
    candidates = {name: Candidate(name, weight=weight) for name, weight in weights.items()}
    egresses = [
        Egress(f"e{number:02}", (ip_address("192.0.2.0") + number,)) for number in range(1, 21)
    ]

    found = elect(egresses, candidates, Claims(), Rules(), 0.0)

    layout = [found[each.name] for each in egresses]
    assert " ".join(each.owner[-1] + each.standby[-1] for each in layout) == (
        "ab db ca bc cb ac db cb ca ba ca cb ba cb cd ab ba bc cb cb"
    )


def test_weight_scales_the_score():
    ip = ip_address("192.0.2.40")

    assert score(ip, "node-a", weight=2.5) == pytest.approx(2.5 * score(ip, "node-a"))
