"""Laws of health: what no row of results can bring about."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.health import damping
from agent.health.board import REASONS_MAX, Board, largest
from agent.health.damping import CLEAN, Penalty, Policy
from agent.health.verdict import Result, Threshold, Verdict, heard
from config.schema.health import HealthSection

spans = st.floats(min_value=0.01, max_value=1000.0)
policies = st.builds(
    lambda half, reuse, more, longest: Policy(half, reuse + more, reuse, longest),
    st.floats(1.0, 3600.0),
    st.floats(0.1, 10.0),
    st.floats(0.1, 10.0),
    st.floats(1.0, 86400.0),
)
thresholds = st.builds(Threshold, st.integers(1, 6), st.integers(1, 6))
rounds = st.lists(st.tuples(st.booleans(), spans), max_size=60)


def told(results, threshold, policy):
    now, found = 0.0, Verdict()
    for passing, pause in results:
        now += pause
        found = heard(found, Result(passing), threshold, policy, now)
        yield found, passing, now


@given(rounds, thresholds, policies)
def test_a_verdict_turns_only_after_enough_rounds_that_agree(results, threshold, policy):
    before, row, last = None, 0, None
    for found, passing, _ in told(results, threshold, policy):
        row = row + 1 if passing == last else 1
        last = passing
        if before is not None and found.passing is not before:
            assert row >= (threshold.rise if passing else threshold.fall)
        assert found.passing is not None
        before = found.passing


@given(rounds, thresholds, policies)
def test_enough_rounds_that_agree_always_turn_it(results, threshold, policy):
    row, last = 0, None
    for found, passing, _ in told(results, threshold, policy):
        row = row + 1 if passing == last else 1
        last = passing
        if row >= (threshold.rise if passing else threshold.fall):
            assert found.passing is passing


@given(rounds, thresholds, policies)
def test_whatever_happened_it_is_believed_again_in_the_longest_time(results, threshold, policy):
    *_, (found, _, end) = [(Verdict(), True, 0.0), *told(results, threshold, policy)]
    # The ceiling is never below suppress, so falling from there to reuse is the least of it.
    fall = damping.reuse_at(Penalty(policy.suppress, 0.0, suppressed=True), policy)

    assert not damping.suppressed(found.penalty, policy, end + max(policy.longest, fall) + 0.01)


@given(st.lists(spans, max_size=40), policies)
def test_a_penalty_never_passes_its_ceiling_and_only_falls_between_failures(pauses, policy):
    now, found = 0.0, CLEAN
    for pause in pauses:
        later = now + pause
        assert damping.level(found, policy, later) <= damping.level(found, policy, now)
        now = later
        found = damping.failed(found, policy, now)
        assert 0.0 < found.level <= policy.ceiling


@given(st.lists(spans, min_size=1, max_size=40), policies)
def test_the_time_of_reuse_is_the_time_at_which_it_is_believed(pauses, policy):
    now, found = 0.0, CLEAN
    for pause in pauses:
        now += pause
        found = damping.failed(found, policy, now)
    at = damping.reuse_at(found, policy)
    if damping.suppressed(found, policy, now):
        assert at >= now
        assert damping.suppressed(found, policy, now + (at - now) * 0.999 - 1e-6) or at - now < 1e-3
        assert not damping.suppressed(found, policy, at + 1e-3)


names = st.sampled_from(["a", "b", "uplink", "a-very-long-name-of-24-l"])
checks = st.builds(
    lambda path, fall, interval, action: {
        "type": "file",
        "path": path,
        "fall": fall,
        "interval": interval,
        "action": action,
    },
    st.sampled_from(["/one", "/two"]),
    st.integers(1, 3),
    st.sampled_from(["1s", "2s"]),
    st.sampled_from(["ineligible", "warn"]),
)
sections = st.dictionaries(names, checks, max_size=4).map(
    lambda found: HealthSection.model_validate({"checks": found})
)


@given(sections, sections, st.lists(st.tuples(names, st.booleans()), max_size=30))
def test_a_reload_leaves_what_is_known_of_a_check_that_it_does_not_change(before, after, results):
    board = Board()
    board.configure(before)
    for number, (name, passing) in enumerate(results):
        board.hear(name, Result(passing), float(number))
    known = {each.name: each for each in board.fitness(100.0).checks}
    board.configure(after)

    for each in board.fitness(100.0).checks:
        if before.checks.get(each.name) == after.checks[each.name]:
            assert each == known[each.name]
        elif each.name not in known:
            assert each.state == "unknown"


@given(sections, st.lists(st.tuples(names, st.booleans()), max_size=40))
def test_reasons_are_few_and_room_was_kept_for_them(section, results):
    board = Board()
    board.configure(section)
    for number, (name, passing) in enumerate(results):
        board.hear(name, Result(passing), float(number))
    fitness = board.fitness(50.0)
    bad = [each for each in fitness.checks if each.counts and each.state in {"failing", "damped"}]

    assert len(fitness.reasons) == min(len(bad), REASONS_MAX)
    assert {each.partition(":")[2] for each in fitness.reasons} <= {each.name for each in bad}
    room = sum(map(len, largest(section)))
    assert sum(map(len, fitness.reasons)) <= room
