"""The roster: order of probing, sampling, size, graves."""

from random import Random

from gossip.addressing import allowed, canonical, locate, pack
from gossip.peer import Address, Health
from gossip.roster import Record, Roster
from gossip.tuning import default
from gossip.wire.messages import Alive

VERSIONS = bytes((1, 5, 2, 0, 0, 0))


def record(number, now=0.0, incarnation=1):
    addr = bytes((10, 0, 0, number))
    claim = Alive(incarnation, f"n{number}", addr, 7955, b"", VERSIONS)
    return Record(claim, Address(f"10.0.0.{number}", 7955), now)


def roster(count):
    known = Roster("n0", Random(1))
    for number in range(count):
        known.add(record(number))
    return known


def test_a_round_of_probing_reaches_everybody_once_and_never_ourselves():
    known = roster(20)

    rounds = [[known.next_target(0.0, 30.0).name for _ in range(19)] for _ in range(3)]

    for names in rounds[1:]:
        assert sorted(names) == sorted(f"n{number}" for number in range(1, 20))
    assert rounds[1] != rounds[2]


def test_the_dead_are_reaped_but_stay_in_their_graves_and_the_left_go():
    known = roster(4)
    known.records["n1"].health = Health.DEAD
    known.bury(known.records["n1"])
    known.records["n2"].health = Health.LEFT

    known.reap(10.0, 30.0)
    assert len(known) == 4
    known.reap(31.0, 30.0)

    assert sorted(known.records) == ["n0", "n3"]
    assert sorted(known.graves) == ["n1"]


def test_nobody_to_probe_is_no_target():
    assert roster(1).next_target(0.0, 30.0) is None


def test_the_only_relay_of_a_tiny_cluster_is_always_found():
    known = roster(3)

    found = [known.sample(3, lambda each: each.name == "n2") for _ in range(200)]

    assert all([each.name for each in names] == ["n2"] for names in found)


def test_a_sample_has_no_repetition():
    known = roster(40)

    for _ in range(100):
        names = [each.name for each in known.sample(3, lambda _: True)]
        assert len(names) == len(set(names)) == 3
        assert "n0" not in names


def test_the_size_for_timing_is_the_largest_of_ten_minutes():
    known = roster(40)
    assert known.size(100.0, 600.0) == 40
    for number in range(1, 30):
        known.records[f"n{number}"].health = Health.LEFT
    known.reap(200.0, 30.0)

    assert len(known) == 11
    assert known.size(200.0, 600.0) == 40
    assert known.size(640.0, 600.0) == 40
    # Then it shrinks by a sixth a minute, until it is the size of today.
    assert [known.size(60.0 * minute, 600.0) for minute in range(10, 16)] == [
        40,
        33,
        27,
        22,
        18,
        15,
    ]
    assert known.size(1200.0, default().size_memory) == 11
    assert known.size(1210.0, 0.0) == 11


def test_both_forms_of_an_address_are_one_place():
    mapped = bytes(10) + b"\xff\xff" + bytes((10, 0, 0, 1))

    assert locate(mapped, 7955) == locate(bytes((10, 0, 0, 1)), 7955) == Address("10.0.0.1", 7955)
    assert pack("::ffff:10.0.0.1") == bytes((10, 0, 0, 1))
    assert canonical(Address("::ffff:10.0.0.1", 1)) == Address("10.0.0.1", 1)
    assert canonical(Address("fe80::1%eth0", 1)) == Address("fe80::1", 1)


def test_nobody_lives_nowhere():
    assert locate(bytes(4), 7955) is None
    assert locate(bytes((10, 0, 0, 1)), 0) is None
    assert locate(b"\xff\x02" + bytes(14), 7955) is None
    assert locate(b"abc", 7955) is None


def test_no_networks_let_everybody_in():
    assert allowed("10.0.0.1", ())
