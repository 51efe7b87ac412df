"""Who gets what, and why."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egress.claims import Claims
from egress.election import Election, Rules, elect, ranking
from egress.matching import Room
from egress.model import Candidate, Claim, Egress, Expression, Failback, Selector

NAMES = ["node-a", "node-b", "node-c", "node-d"]
SETTLED = 100.0


def egress(number, **fields):
    return Egress(f"e{number}", (ip_address("192.0.2.0") + number,), **fields)


def nodes(names, **fields):
    return {name: Candidate(name, **fields) for name in names}


def elected(egresses, candidates, claims=None, now=SETTLED, **rules):
    return elect(egresses, candidates, claims or Claims(), Rules(**rules), now)


def owners(egresses, candidates, claims=None, now=SETTLED):
    result = elected(egresses, candidates, claims, now)
    return {name: each.owner for name, each in result.items()}


def claimed(owned):
    claims = Claims()
    for each, owner in owned:
        claims.fold(Claim(each.ips[0], 1, owner, held=True))
    return claims


many = st.lists(st.integers(1, 250), unique=True, max_size=40).map(
    lambda numbers: [egress(number) for number in numbers]
)


@given(many, st.permutations(NAMES), st.randoms())
def test_the_answer_does_not_depend_on_the_order_of_anything(egresses, names, rng):
    shuffled = egresses.copy()
    rng.shuffle(shuffled)

    assert owners(shuffled, nodes(names)) == owners(egresses, nodes(NAMES))


@given(many, st.sampled_from(NAMES))
def test_losing_a_node_moves_only_what_it_carried(egresses, lost):
    before = owners(egresses, nodes(NAMES))
    claims = claimed((each, before[each.name]) for each in egresses)
    left = nodes(NAMES)
    left[lost] = Candidate(lost, present=False)

    after = owners(egresses, left, claims)

    assert all(after[name] == owner for name, owner in before.items() if owner != lost)
    assert lost not in after.values()


@given(many)
def test_nobody_carries_more_than_the_bound(egresses):
    found = list(owners(egresses, nodes(NAMES)).values())

    bound = -(-len(egresses) * 11 // 40)
    assert all(found.count(name) <= bound for name in NAMES)
    assert None not in found


@given(many)
def test_hard_capacity_is_never_exceeded(egresses):
    found = list(owners(egresses, nodes(NAMES, capacity=3)).values())

    assert all(found.count(name) <= 3 for name in NAMES)
    assert found.count(None) == max(len(egresses) - 12, 0)


def test_a_short_capacity_goes_to_the_highest_priority():
    egresses = [egress(number, priority=number) for number in range(1, 5)]

    found = owners(egresses, nodes(["node-a"], capacity=2))

    assert found == {"e1": None, "e2": None, "e3": "node-a", "e4": "node-a"}


def test_selectors_choose_by_labels():
    rack = {"node-a": "r1", "node-b": "r2", "node-c": "r3"}
    candidates = {name: Candidate(name, labels=(("rack", value),)) for name, value in rack.items()}
    by_label = egress(1, selector=Selector(labels=(("rack", "r2"),)))
    by_set = egress(2, selector=Selector(expressions=(Expression("rack", "NotIn", ("r1", "r2")),)))
    nobody = egress(3, selector=Selector(expressions=(Expression("rack", "DoesNotExist"),)))

    result = elected([by_label, by_set, nobody], candidates)

    assert result["e1"].owner == "node-b"
    assert result["e2"].owner == "node-c"
    assert (result["e3"].owner, result["e3"].reason) == (None, "no_eligible_node")


def test_t39_an_address_lives_in_its_rack_or_nowhere():
    names = [(f"r{rack}-n{n}", f"r{rack}") for rack in range(1, 4) for n in range(3)]
    candidates = {name: Candidate(name, labels=(("rack", rack),)) for name, rack in names}
    racks = {f"e{n}": f"r{n % 4}" for n in range(1, 41)}
    wanted = [
        egress(n, selector=Selector(labels=(("rack", racks[f"e{n}"]),))) for n in range(1, 41)
    ]
    gone = {name: each for name, each in candidates.items() if not name.startswith("r2-")}

    for there in (candidates, gone, dict([*candidates.items()][::4])):
        alive = {name.split("-")[0] for name in there}
        for name, each in elected(wanted, there).items():
            if racks[name] in alive:
                assert each.owner.startswith(f"{racks[name]}-")
            else:
                assert (each.owner, each.reason) == (None, "no_eligible_node")


def test_many_that_may_only_live_on_one_node_live_there_whatever_the_bound():
    one = Selector(labels=(("disk", "ssd"),))
    candidates = nodes(NAMES) | {"node-a": Candidate("node-a", labels=(("disk", "ssd"),))}

    found = owners([egress(number, selector=one) for number in range(1, 21)], candidates)

    assert set(found.values()) == {"node-a"}


def test_a_node_without_the_subnet_is_no_candidate_unless_an_interface_is_named():
    far = Candidate("far", networks=(ip_network("10.0.0.0/8"),))

    assert owners([egress(1)], {"far": far}) == {"e1": None}
    assert owners([egress(1, interface="eth0")], {"far": far}) == {"e1": "far"}


def test_an_address_of_a_member_belongs_to_nobody():
    taken = Candidate("node-b", addresses=(ip_address("192.0.2.1"),))

    result = elected([egress(1)], nodes(NAMES) | {"node-b": taken})

    assert (result["e1"].owner, result["e1"].reason) == (None, "own_address")


def test_a_suspect_keeps_and_an_unreachable_one_does_not():
    each = egress(1, failback=Failback.NEVER)
    claims = claimed([(each, "node-b")])

    assert owners([each], nodes(NAMES), claims) == {"e1": "node-b"}
    gone = nodes(NAMES) | {"node-b": Candidate("node-b", unreachable=True)}
    assert owners([each], gone, claims)["e1"] in {"node-a", "node-c", "node-d"}
    waits = nodes(NAMES) | {"node-b": Candidate("node-b", unreachable=True, restarting=True)}
    assert owners([each], waits, claims) == {"e1": "node-b"}


def test_a_draining_holder_gives_up():
    claims = claimed([(egress(1), "node-b")])
    candidates = nodes(NAMES) | {"node-b": Candidate("node-b", reasons=("draining",))}

    assert owners([egress(1)], candidates, claims)["e1"] != "node-b"


def test_the_heir_that_a_release_names_is_elected():
    claims = Claims()
    claims.fold(Claim(egress(1).ips[0], 4, "node-a", held=False, to="node-d"))

    assert owners([egress(1)], nodes(NAMES), claims) == {"e1": "node-d"}


def away(failback, **fields):
    """An egress that is with somebody else than the node that scores highest for it."""
    each = egress(1, failback=failback, **fields)
    home = owners([each], nodes(NAMES))["e1"]
    other = next(name for name in NAMES if name != home)
    return each, home, claimed([(each, other)]), other


def test_a_delayed_failback_waits_until_the_better_node_has_been_well_for_long():
    each, home, claims, other = away(Failback.DELAYED)
    back = nodes(NAMES) | {home: Candidate(home, healthy_since=1000.0)}

    assert owners([each], back, claims, now=1029.9) == {"e1": other}
    assert owners([each], back, claims, now=1030.0) == {"e1": home}


def test_an_immediate_failback_does_not_wait_and_never_means_never():
    each, home, claims, other = away(Failback.IMMEDIATE)
    assert owners([each], nodes(NAMES), claims) == {"e1": home}
    each, _, claims, other = away(Failback.NEVER)
    assert owners([each], nodes(NAMES), claims) == {"e1": other}


def test_an_immediate_failback_goes_to_a_node_that_came_a_moment_ago():
    each, home, claims, _ = away(Failback.IMMEDIATE)
    back = nodes(NAMES) | {home: Candidate(home, healthy_since=SETTLED)}

    assert elected([each], back, claims)["e1"].rule == "failback"
    assert owners([each], back, claims) == {"e1": home}


def test_nothing_goes_back_to_a_node_that_was_well_all_the_while():
    each, home, _, other = away(Failback.DELAYED)
    claims = Claims()
    claims.fold(Claim(each.ips[0], 1, other, held=True), 50.0)
    there = nodes(NAMES) | {home: Candidate(home, healthy_since=49.0)}
    came = nodes(NAMES) | {home: Candidate(home, healthy_since=51.0)}

    assert owners([each], there, claims) == {"e1": other}
    assert owners([each], came, claims) == {"e1": home}


def test_a_node_that_is_being_replaced_keeps_and_gets_nothing_new():
    claims = claimed([(egress(1), "node-b")])
    candidates = nodes(["node-a"]) | {"node-b": Candidate("node-b", restarting=True)}

    assert owners([egress(1), egress(2)], candidates, claims) == {"e1": "node-b", "e2": "node-a"}


def test_the_first_to_be_ready_leaves_their_share_to_those_that_start_with_it():
    egresses = [egress(number) for number in range(1, 31)]
    starting = nodes(NAMES, reasons=("starting",)) | {"node-a": Candidate("node-a")}

    assert owners(egresses, starting) == owners(egresses, nodes(NAMES))


def test_what_somebody_lost_does_not_wait_for_a_start():
    egresses = [egress(number) for number in range(1, 9)]
    claims = claimed((each, "node-z") for each in egresses)
    starting = nodes(NAMES, reasons=("starting",)) | {"node-a": Candidate("node-a")}

    assert set(owners(egresses, starting, claims).values()) == {"node-a"}


def test_who_starts_without_carrier_is_not_waited_for():
    lame = Candidate("node-b", reasons=("starting", "no_carrier"))

    assert (
        owners([egress(n) for n in range(9)], {"node-a": Candidate("node-a"), "node-b": lame})["e1"]
        == "node-a"
    )


def test_a_lowered_capacity_sheds_the_least_important():
    stay = Failback.NEVER
    egresses = [egress(number, priority=number % 3, failback=stay) for number in range(1, 7)]
    claims = claimed((each, "node-a") for each in egresses)
    candidates = {"node-a": Candidate("node-a", capacity=2), "node-b": Candidate("node-b")}

    found = owners(egresses, candidates, claims)

    assert {name for name, owner in found.items() if owner == "node-a"} == {"e2", "e5"}


def test_a_pool_of_few_nodes_is_balanced_as_well():
    pool = Selector(labels=(("pool", "p"),))
    candidates = {f"n{number:02}": Candidate(f"n{number:02}") for number in range(20)}
    for name in ("n03", "n11"):
        candidates[name] = Candidate(name, labels=(("pool", "p"),))

    found = list(
        owners([egress(number, selector=pool) for number in range(100)], candidates).values()
    )

    assert found.count("n03") + found.count("n11") == 100
    assert abs(found.count("n03") - found.count("n11")) <= 12


def test_an_address_that_its_holder_has_without_our_mark_is_no_conflict():
    claims = claimed([(egress(1), "node-b")])
    stripped = nodes(NAMES) | {"node-b": Candidate("node-b", addresses=egress(1).ips)}
    foreign = nodes(NAMES) | {"node-c": Candidate("node-c", addresses=egress(1).ips)}

    assert owners([egress(1)], stripped, claims) == {"e1": "node-b"}
    assert elected([egress(1)], foreign, claims)["e1"].reason == "own_address"


def test_the_address_of_a_member_that_left_is_free():
    gone = Candidate("node-b", present=False, left=True, addresses=egress(1).ips)

    assert owners([egress(1)], nodes(NAMES) | {"node-b": gone})["e1"] is not None


def test_the_standby_is_the_next_best_that_is_well():
    ranked = [entry.name for entry in ranking(egress(1), nodes(NAMES), Rules())]
    assert elected([egress(1)], nodes(NAMES))["e1"].standby == ranked[1]

    ill = nodes(NAMES) | {ranked[1]: Candidate(ranked[1], reasons=("draining",))}

    assert elected([egress(1)], ill)["e1"].standby == ranked[2]


def test_without_failover_an_address_returns_to_its_only_owner():
    each = egress(1, failover=False)
    claims = Claims()
    claims.fold(Claim(each.ips[0], 7, "node-b", held=False))

    assert owners([each], nodes(NAMES), claims) == {"e1": "node-b"}
    assert owners([each], nodes(["node-a"]), claims) == {"e1": None}


def test_the_highest_epoch_of_two_families_decides_who_keeps_both():
    ips = (ip_address("192.0.2.1"), ip_address("2001:db8::1"))
    both = Egress("e1", ips, failback=Failback.NEVER)
    claims = Claims()
    claims.fold(Claim(both.ips[0], 3, "node-a", held=True))
    claims.fold(Claim(both.ips[1], 4, "node-c", held=True))

    assert owners([both], nodes(NAMES), claims) == {"e1": "node-c"}
    assert owners([both], nodes(["node-a", "node-b"]), claims) == {"e1": "node-a"}


def test_a_pin_wins_over_the_score_and_is_only_a_preference():
    pinned = [egress(number, pin="node-c") for number in range(1, 4)]

    assert elected(pinned, nodes(NAMES))["e1"].rule == "pinned"
    assert set(owners(pinned, nodes(["node-a", "node-b"])).values()) <= {"node-a", "node-b"}


def test_without_failover_an_address_dies_with_its_owner():
    each = egress(1, failover=False)
    claims = claimed([(each, "node-b")])
    dead = nodes(NAMES) | {"node-b": Candidate("node-b", present=False)}

    result = elected([each], dead, claims)["e1"]

    assert (result.owner, result.reason) == (None, "failover_none")


@given(many, st.sampled_from(NAMES))
def test_failback_comes_to_rest_and_only_evens_out(egresses, lost):
    left = nodes(NAMES) | {lost: Candidate(lost, present=False)}
    before = owners(egresses, nodes(NAMES))
    found = owners(egresses, left, claimed((each, before[each.name]) for each in egresses))
    for _ in range(3):
        claims = claimed((each, found[each.name]) for each in egresses)
        again = owners(egresses, left, claims, now=10 * SETTLED)
        assert spread(again) <= spread(found)
        found = again
    assert owners(egresses, left, claimed((e, found[e.name]) for e in egresses)) == found


def spread(found):
    loads = [list(found.values()).count(name) for name in NAMES]
    return sum(load * load for load in loads)


@pytest.mark.parametrize("weights", [(1, 1, 2), (1, 0, 3)])
def test_weights_share_out_in_proportion(weights):
    candidates = {
        name: Candidate(name, weight=float(weight))
        for name, weight in zip(NAMES, weights, strict=False)
    }
    egresses = [
        Egress(f"e{number}", (ip_address(f"10.0.{number >> 8}.{number & 255}"),))
        for number in range(1, 1001)
    ]

    found = list(owners(egresses, candidates).values())

    for name, weight in zip(NAMES, weights, strict=False):
        due = 1000 * weight / sum(weights)
        assert abs(found.count(name) - due) <= 0.1 * due + 1


def test_the_incremental_election_answers_as_the_pure_one():
    election, claims = Election(), Claims()
    egresses = [egress(number) for number in range(1, 20)]
    for now, names in [(0.0, NAMES[:2]), (50.0, NAMES), (51.0, NAMES[1:]), (90.0, NAMES[1:])]:
        candidates = nodes(names)
        found = election.update(egresses, candidates, claims, Rules(), now)
        assert found == elect(egresses, candidates, claims, Rules(), now)
        for each in egresses:
            claims.fold(Claim(each.ips[0], int(now) + 1, found[each.name].owner, held=True))


def test_one_that_was_to_go_back_stays_when_its_home_has_filled_up_meanwhile():
    """Nothing about it changed itself, but the load that its going would have evened out did."""
    names = ["node-a", "node-b"]
    ranked = {each: ranking(egress(each), nodes(names), Rules())[0].name for each in range(1, 40)}
    home = [egress(number) for number, best in ranked.items() if best == "node-a"][:2]
    other = egress(next(number for number, best in ranked.items() if best == "node-b"))
    egresses = [*home, other]
    claims = claimed((each, "node-b") for each in home)
    claims.fold(Claim(other.ips[0], 1, "node-a", held=False, to="node-b"))
    election = Election()
    before = election.update(egresses, nodes(names), claims, Rules(), SETTLED)
    assert [before[each.name].owner for each in home].count("node-a") == 1

    claims.fold(Claim(other.ips[0], 2, "node-a", held=True))

    after = election.update(egresses, nodes(names), claims, Rules(), SETTLED)
    assert after == elected(egresses, nodes(names), claims)
    assert [after[each.name].owner for each in home] == ["node-b", "node-b"]


def test_a_capacity_that_is_lifted_lets_what_belongs_there_come_home():
    each, home, claims, _ = away(Failback.IMMEDIATE)
    election = Election()
    full = nodes(NAMES) | {home: Candidate(home, capacity=0)}
    assert election.update([each], full, claims, Rules(), SETTLED)["e1"].owner != home

    found = election.update([each], nodes(NAMES), claims, Rules(), SETTLED)

    assert found["e1"].owner == home


def test_another_load_factor_is_another_layout():
    egresses = tuple(egress(number) for number in range(1, 30))
    election, claims = Election(), Claims()
    layouts = [
        election.update(egresses, nodes(NAMES), claims, Rules(load_factor=factor), SETTLED)
        for factor in (1.0, 3.0)
    ]

    assert layouts[1] != layouts[0]
    assert layouts[1] == elected(egresses, nodes(NAMES), load_factor=3.0)


def test_going_home_follows_another_load_factor():
    """Two would be at home on one node, where there is room for one under the tight bound."""
    names = NAMES[:3]
    ranked = {number: ranking(egress(number), nodes(names), Rules()) for number in range(1, 60)}
    fond = [number for number, rank in ranked.items() if rank[0].name == "node-a"]
    second, first = sorted(fond, key=lambda number: ranked[number][0].score)[:2]
    there = ranked[second][1].name
    elsewhere = next(name for name in names if name not in {"node-a", there})
    stays = egress(first, failback=Failback.NEVER)
    moves = egress(second, failback=Failback.IMMEDIATE)
    claims = claimed([(stays, elsewhere), (moves, there)])
    election = Election()

    owner = [
        election.update((stays, moves), nodes(names), claims, Rules("", factor), SETTLED)[
            moves.name
        ].owner
        for factor in (1.0, 3.0)
    ]

    assert owner == [there, "node-a"]


@pytest.mark.parametrize(
    ("weights", "total", "bounds"),
    [
        ([1.0, 1.0, 1.0, 1.0], 40, [11, 11, 11, 11]),  # and not 12, for 1.1 · 10 is a hair above
        ([1.0, 1.0, 1.0, 1.0], 41, [12, 12, 12, 12]),
        ([3.0, 1.0, 0.0, 1e-12], 40, [33, 11, 0, 1]),
    ],
)
def test_the_bound_is_a_tenth_above_the_share(weights, total, bounds):
    room = Room([0, 1, 2, 3], weights, [0] * 4, [None] * 4)

    among = [seat for seat, weight in enumerate(weights) if weight]
    assert room.bounds(total, 1.1, among, loaded=True) == bounds


def test_the_bound_counts_what_is_carried_and_gives_way_to_the_capacity():
    room = Room([0, 1], [1.0, 1.0], [4, 30], [6, None])

    assert room.bounds(40, 1.1, [0, 1], loaded=True) == [2, 0]
    assert room.bounds(40, 1.1, [0, 1], loaded=False) == [2, 22]


def test_going_home_evens_out_by_weight():
    heavy = {"node-a": Candidate("node-a", weight=3.0), "node-b": Candidate("node-b")}
    ranked = [egress(number, failback=Failback.IMMEDIATE) for number in range(1, 40)]
    fond = [each for each in ranked if ranking(each, heavy, Rules())[0].name == "node-a"][:3]

    for carried, owner in [(1, "node-a"), (2, "node-b")]:
        there = [(each, "node-a") for each in fond[:carried]]
        claims = claimed([*there, (fond[2], "node-b")])
        assert owners(fond[:carried] + fond[2:], heavy, claims)[fond[2].name] == owner


@pytest.mark.parametrize("light", [1e-12, 1e-3])
def test_a_node_of_next_to_no_weight_still_serves_what_only_it_may_have(light):
    one = Selector(labels=(("disk", "ssd"),))
    candidates = nodes(NAMES) | {
        "node-e": Candidate("node-e", weight=light, labels=(("disk", "ssd"),))
    }

    found = owners([egress(number, selector=one) for number in range(5)], candidates)

    assert set(found.values()) == {"node-e"}


def after_a_reload_that_removes_one(*, settled):
    """What moves among eight egresses on four nodes, of which the last has come late."""
    egresses = [Egress(f"e{n}", (ip_address(f"10.77.7.{n + 1}"),)) for n in range(8)]
    members = {name: Candidate(name) for name in ("n0", "n1", "n2")}
    claims, election, moves = Claims(), Election(), []

    def settle(now):
        moves.clear()
        claims.want({ip for each in egresses for ip in each.ips}, now, settled=settled(now))
        while True:
            found = election.update(egresses, members, claims, Rules(), now)
            owners = {each: found[each.name].owner for each in egresses}
            news = [each for each in egresses if claims.holder(each.ips[0]) != owners[each]]
            if not news:
                return
            for each in news:
                top = claims.top(each.ips[0])
                epoch = top.epoch + 1 if top is not None else 1
                claims.fold(Claim(each.ips[0], epoch, owners[each], held=True), now)
                moves.append(each.name)

    settle(1.0)
    members["n3"] = Candidate("n3", healthy_since=100.0)
    members = dict(members)
    settle(101.0)
    settle(200.0)
    del egresses[6]
    egresses = list(egresses)
    settle(1000.0)
    return moves


def test_a_reload_that_widens_the_bound_gives_nothing_to_who_came_late():
    assert after_a_reload_that_removes_one(settled=lambda now: now - 40.0) == []


def test_without_remembering_who_has_settled_such_a_reload_would_move_another_egress():
    assert after_a_reload_that_removes_one(settled=lambda _: float("-inf")) == ["e1"]
