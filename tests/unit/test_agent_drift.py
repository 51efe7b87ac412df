"""Members by what they run: the majority first, and what has just changed is no drift."""

from agent import drift, facts
from agent.drift import Drift
from agent.facts import Facts
from agent.inputs import MembersSeen
from agent.world import World, fold
from gossip.peer import Address, Health, Member
from support.settings import parsed

OLD, NEW = "aa" * 8, "bb" * 8


def member(name, digest, *, health=Health.ALIVE, **more):
    said = Facts(version="0.1.0", cluster_digest=digest, node_digest=digest, **more)
    return Member(
        name=name,
        address=Address("10.77.0.12", 7955),
        health=health,
        incarnation=1,
        meta=facts.packed(said),
        versions=b"",
        since=0.0,
        rtt=None,
        wayout=True,
        unreachable=False,
    )


def rows(watch, now, *others, mine=OLD):
    own = Facts(version="0.1.0", cluster_digest=mine, node_digest=mine, generation=3)
    start = World(me="a", settings=parsed("version: 1\nnode: {name: a}\n").settings, started=0.0)
    seen = MembersSeen({each.name: each for each in others}, frozenset(), {}, synced=True)
    return watch.see(fold(start, seen, now), own, now)


def told(found, now, grace=120.0):
    return drift.document(found, grace=grace, now=now, wall=now + 1e9)


def test_members_that_agree_are_one_group():
    found = told(rows(Drift(), 500.0, member("b", OLD), member("c", OLD)), 500.0)

    assert (found["drift"], found["converging"], found["all_ok"]) == (False, False, True)
    assert [row["name"] for row in found["groups"][0]["members"]] == ["a", "b", "c"]


def test_a_canary_converges_first_and_drifts_after_the_grace():
    watch = Drift()
    rows(watch, 0.0, member("b", OLD), member("c", OLD))
    fresh = told(rows(watch, 500.0, member("b", OLD), member("c", NEW)), 500.0)
    later = told(rows(watch, 700.0, member("b", OLD), member("c", NEW)), 700.0)

    assert (fresh["drift"], fresh["converging"]) == (False, True)
    assert fresh["groups"][1]["members"][0]["agreement"] == "converging"
    assert (later["drift"], later["converging"]) == (True, False)
    assert [(each["count"], each["majority"]) for each in later["groups"]] == [
        (2, True),
        (1, False),
    ]
    assert later["groups"][1]["members"][0]["age_seconds"] == 200.0


def test_between_equals_this_node_comes_first():
    found = told(rows(Drift(), 0.0, member("b", OLD), mine=NEW), 0.0)

    assert [each["local"] for each in found["groups"]] == [True, False]


def test_the_dead_and_other_clusters_are_not_compared():
    others = (
        member("b", NEW, health=Health.DEAD),
        member("c", NEW, cluster="other"),
        member("d", OLD),
    )

    assert told(rows(Drift(), 0.0, *others), 0.0)["all_ok"]


def test_what_is_wrong_with_a_configuration_travels_in_the_metadata():
    others = (member("b", OLD, config=frozenset({"stale", "pending"})), member("c", ""))
    found = rows(Drift(), 0.0, *others)

    assert [each.state for each in found] == ["ok", "stale", "unknown"]
    assert drift.counts(found) == (
        {"ok": 1, "inconsistent": 0, "stale": 1, "pending": 0, "unknown": 1},
        1,
    )


def test_every_state_survives_the_wire():
    for state in facts.CONFIG_STATES:
        said = Facts(version="1", config=frozenset({state}))
        assert facts.read(facts.packed(said)).config == {state}
