"""Laws of the election: one answer however it was reached, and no needless move."""

from dataclasses import replace
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from egress.claims import Claims
from egress.election import Election, Rules, elect, score
from egress.eligibility import Refusal, Vacancy, refusal
from egress.model import Candidate, Claim, Egress, Expression, Failback, Selector

NAMES = ["node-a", "node-b", "node-c", "node-d", "node-e"]
IPS = [ip_address("192.0.2.0") + number for number in range(1, 13)]
NETS = [ip_network("192.0.2.0/24"), ip_network("192.0.2.0/29"), ip_network("10.0.0.0/8")]

selectors = st.sampled_from(
    [
        *[Selector()] * 5,
        Selector(labels=(("rack", "r1"),)),
        Selector(expressions=(Expression("rack", "In", ("r1", "r2")),)),
        Selector(expressions=(Expression("rack", "DoesNotExist"),)),
    ]
)
egress = st.builds(
    Egress,
    name=st.sampled_from([f"e{number}" for number in range(12)]),
    ips=st.tuples(st.sampled_from(IPS))
    | st.lists(st.sampled_from(IPS), min_size=1, max_size=2, unique=True).map(tuple),
    selector=selectors,
    priority=st.sampled_from([0, 0, 0, 1]),
    failback=st.sampled_from(Failback),
    pin=st.sampled_from([None] * 5 + NAMES),
    interface=st.sampled_from([None, None, "eth1"]),
    failover=st.sampled_from([True, True, True, False]),
)
egresses = st.lists(egress, min_size=3, max_size=12, unique_by=lambda each: each.name)
fields = {
    "present": st.sampled_from([True, True, True, False]),
    "left": st.sampled_from([False, False, False, True]),
    "unreachable": st.sampled_from([False, False, True]),
    "restarting": st.sampled_from([False, False, True]),
    "reasons": st.sampled_from([(), (), ("draining",), ("starting",), ("not_eligible",)]),
    "weight": st.sampled_from([1.0, 1.0, 2.5, 0.0]),
    "capacity": st.none() | st.integers(0, 4),
    "labels": st.sampled_from([(), (("rack", "r1"),), (("rack", "r2"),)]),
    "networks": st.sampled_from([(), tuple(NETS[:1]), tuple(NETS[1:]), tuple(NETS)]),
    "addresses": st.sampled_from([(), (), (IPS[0],), (IPS[1], IPS[2]), (ip_address("10.0.0.1"),)]),
    "healthy_since": st.floats(0, 100).map(lambda value: round(value, 1)),
}
changes = st.sampled_from(sorted(fields)).flatmap(
    lambda name: st.tuples(st.just(name), fields[name])
)
candidates = st.dictionaries(st.sampled_from(NAMES), st.fixed_dictionaries(fields), max_size=5).map(
    lambda found: {name: Candidate(name, **values) for name, values in found.items()}
)
claim = st.builds(
    Claim,
    ip=st.sampled_from(IPS),
    epoch=st.integers(1, 5),
    owner=st.sampled_from(NAMES),
    held=st.sampled_from([True, True, False]),
    to=st.none() | st.sampled_from(NAMES),
)


class Incremental(RuleBasedStateMachine):
    """Whatever happened before, the answer is that of an election that knows nothing of it."""

    def __init__(self):
        super().__init__()
        self.election = Election()
        self.egresses = ()
        self.candidates = {}
        self.claims = Claims()
        self.rules = Rules()
        self.now = 0.0

    @initialize(
        egresses=egresses, candidates=candidates, claims=st.lists(claim, min_size=4, max_size=12)
    )
    def begin(self, egresses, candidates, claims):
        self.egresses, self.candidates = tuple(egresses), candidates
        self.somebody_claims(claims)

    @rule(egresses=egresses)
    def reload(self, egresses):
        self.egresses = tuple(egresses)

    @rule(data=st.data())
    def reload_one(self, data):
        new = data.draw(egress)
        self.egresses = (*(each for each in self.egresses if each.name != new.name), new)

    @rule(name=st.sampled_from(NAMES))
    def node_comes_or_goes(self, name):
        self.candidates = dict(self.candidates)
        if self.candidates.pop(name, None) is None:
            self.candidates[name] = Candidate(name, healthy_since=self.now)

    @rule(name=st.sampled_from(NAMES), change=changes)
    def node_changes(self, name, change):
        if name in self.candidates:
            changed = replace(self.candidates[name], **dict([change]))
            self.candidates = {**self.candidates, name: changed}

    @rule(claims=st.lists(claim, min_size=1, max_size=6))
    def others_claim(self, claims):
        self.somebody_claims(claims)

    def somebody_claims(self, claims):
        for each in claims:
            self.claims.fold(each, self.now)

    @rule()
    def owners_claim(self):
        for each in self.egresses:
            owner = self.election.result[each.name].owner
            for ip in each.ips:
                top = self.claims.top(ip)
                if owner is not None and self.claims.holder(ip) != owner:
                    epoch = 1 if top is None else top.epoch + 1
                    self.claims.fold(Claim(ip, epoch, owner, held=True), self.now)

    @rule(seconds=st.sampled_from([0.5, 29.0, 31.0]))
    def time_passes(self, seconds):
        self.now += seconds

    @rule(seed=st.sampled_from(["", "blue"]), factor=st.sampled_from([1.0, 1.1, 2.0]))
    def other_rules(self, seed, factor):
        self.rules = Rules(seed, factor, self.rules.failback_delay)

    @rule(delay=st.sampled_from([0.0, 30.0]))
    def other_delay(self, delay):
        self.rules = replace(self.rules, failback_delay=delay)

    @rule()
    def an_update_is_abandoned(self):
        for _ in self.election.steps(
            self.egresses, self.candidates, self.claims, self.rules, self.now
        ):
            break

    @invariant()
    def the_answer_is_the_pure_one(self):
        inputs = (self.egresses, self.candidates, self.claims, self.rules, self.now)
        assert self.election.update(*inputs) == elect(*inputs)
        self.check_owners()

    def check_owners(self):
        """Owners are fit, and within capacity."""
        for each in self.egresses:
            found = self.election.result[each.name]
            if found.owner is None:
                assert found.reason in set(Vacancy)
            elif found.rule != "sticky":
                word = refusal(self.candidates[found.owner], each)
                claimed = any(self.claims.top(ip) for ip in each.ips)
                assert word is None or (word is Refusal.STARTING and not claimed)
        for name, candidate in self.candidates.items():
            carried = [each.owner for each in self.election.result.values()].count(name)
            assert candidate.capacity is None or carried <= candidate.capacity


class TestIncremental(Incremental.TestCase):
    settings = settings(max_examples=20, stateful_step_count=20, deadline=None)


@pytest.mark.slow
class TestIncrementalForLong(Incremental.TestCase):
    settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


# -- no needless move -------------------------------------------------------------------------

sizes = st.tuples(st.integers(1, 40), st.integers(2, 5))
SETTLED = 1000.0


class Cluster:
    """Whoever is elected claims at once; `moves` are all changes of owner, in order."""

    def __init__(self, size):
        number, nodes = size
        self.egresses = tuple(plain(each) for each in range(number))
        self.candidates = {name: Candidate(name) for name in NAMES[:nodes]}
        self.claims = Claims()
        self.election = Election()
        self.now = SETTLED
        self.owners = {}
        self.epoch = 0
        self.moves = []
        self.settle()

    def settle(self, seconds=0.0):
        """Follow the elections until nothing moves any more."""
        self.now += seconds
        self.moves = []
        for _ in range(10):
            found = self.election.update(
                self.egresses, self.candidates, self.claims, Rules(), self.now
            )
            news = {each.name: found[each.name].owner for each in self.egresses}
            moved = [name for name, owner in news.items() if self.owners.get(name) != owner]
            if not moved:
                return
            self.moves += [(name, self.owners.get(name), news[name]) for name in moved]
            self.epoch += 1
            self.owners = news
            for each in self.egresses:
                if each.name in moved:
                    claim = Claim(each.ips[0], self.epoch, news[each.name], held=True)
                    self.claims.fold(claim, self.now)
        raise AssertionError("it does not come to rest")

    def lose(self, name):
        """The node dies, and is forgotten later."""
        self.candidates = {**self.candidates, name: replace(self.candidates[name], present=False)}

    def forget(self, name):
        self.candidates = {each: found for each, found in self.candidates.items() if each != name}

    def join(self, name):
        self.candidates = {**self.candidates, name: Candidate(name, healthy_since=self.now)}

    def suits(self, name, better, than):
        """Whether one node suits an egress better than another one."""
        return self.score(name, better) > self.score(name, than)

    def score(self, name, node):
        return score(plain(int(name[1:])).ips[0], node)

    def carried(self, name):
        return {egress for egress, owner in self.owners.items() if owner == name}


def plain(number):
    return Egress(f"e{number:02}", (ip_address("198.51.100.0") + number,))


@given(sizes, st.sampled_from(NAMES[:2]))
def test_a_death_moves_what_the_dead_carried_and_nothing_afterwards(size, lost):
    cluster = Cluster(size)
    carried = cluster.carried(lost)

    cluster.lose(lost)
    cluster.settle(1)
    assert {name for name, _, _ in cluster.moves} == carried

    cluster.forget(lost)
    cluster.settle(30)
    assert cluster.moves == []


@given(sizes, st.sampled_from(NAMES[:2]))
def test_who_comes_back_is_given_back_what_it_carried_and_nobody_else_is_disturbed(size, lost):
    cluster = Cluster(size)
    carried = cluster.carried(lost)
    cluster.lose(lost)
    cluster.settle(1)
    cluster.forget(lost)
    cluster.settle(60)
    cluster.join(lost)

    cluster.settle(29)
    assert cluster.moves == []
    missed = [name for name in carried if cluster.suits(name, lost, cluster.owners[name])]

    cluster.settle(1)
    assert {to for _, _, to in cluster.moves} <= {lost}
    assert {name for name, _, _ in cluster.moves} <= carried
    assert bool(cluster.moves) == bool(missed)


@given(sizes)
def test_a_newcomer_takes_its_share_at_most(size):
    cluster = Cluster(size)
    cluster.join("node-z")

    cluster.settle(30)

    assert {to for _, _, to in cluster.moves} <= {"node-z"}
    share = 1.1 * len(cluster.egresses) / len(cluster.candidates)
    assert len(cluster.moves) <= share + 1


@given(sizes, st.data())
def test_a_reload_that_adds_or_removes_an_egress_moves_no_other(size, data):
    cluster = Cluster(size)
    for _ in range(3):
        number = data.draw(st.integers(0, 70))
        rest = tuple(each for each in cluster.egresses if each != plain(number))
        added = rest == cluster.egresses
        cluster.egresses = (*rest, plain(number)) if added else rest
        cluster.settle(5)
        assert {name for name, _, _ in cluster.moves} <= {plain(number).name}


@given(sizes, st.data())
def test_a_reload_after_a_newcomer_has_settled_moves_no_other_egress(size, data):
    cluster = Cluster(size)
    cluster.join("node-z")
    cluster.settle(60)
    for _ in range(3):
        number = data.draw(st.integers(0, 70))
        rest = tuple(each for each in cluster.egresses if each != plain(number))
        added = rest == cluster.egresses
        # As the daemon does: the addresses of before, then those of now.
        for egresses in (cluster.egresses, (*rest, plain(number)) if added else rest):
            wanted = {ip for each in egresses for ip in each.ips}
            cluster.claims.want(wanted, cluster.now, settled=cluster.now - 40.0)
            cluster.egresses = egresses
        cluster.settle(35)
        assert {name for name, _, _ in cluster.moves} <= {plain(number).name}


@given(sizes)
def test_what_is_shared_out_is_stable(size):
    """No egress and node that both would rather have each other than what they have."""
    cluster = Cluster(size)
    bound = -(-len(cluster.egresses) * 11 // (10 * len(cluster.candidates)))

    for each, owner in cluster.owners.items():
        for name in cluster.candidates:
            if cluster.suits(each, name, owner):
                rivals = cluster.carried(name)
                assert len(rivals) == bound
                assert min(cluster.score(rival, name) for rival in rivals) > cluster.score(
                    each, name
                )
