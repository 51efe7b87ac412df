"""Laws of configuration: merging, comparing, showing, and reading whatever comes."""

import json
from random import Random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from config.changes import apply, diff
from config.digest import Digests
from config.documents import Text
from config.leaves import built, leaves_of
from config.parse import Surroundings, parse
from config.problems import ConfigError
from config.render import document, text
from config.tree import Fields, Leaf, Mark, merge, settled
from config.types import seconds, show_seconds
from config.yaml import parse as parse_yaml
from support.settings import parsed

MARK = Mark("test")
# Whole files are slow to draw; the profile still decides how thorough a run is.
few = settings(max_examples=settings.default.max_examples // 4)
scalars = st.one_of(st.none(), st.integers(0, 3), st.sampled_from(["x", "y"]))
keys = st.sampled_from("abc")


def as_tree(value):
    if isinstance(value, dict):
        values = {key: as_tree(each) for key, each in value.items()}
        return Fields(values, dict.fromkeys(values, MARK), MARK)
    return Leaf(value, MARK)


trees = st.dictionaries(
    keys, st.recursive(scalars, lambda inner: st.dictionaries(keys, inner, max_size=3)), max_size=3
).map(as_tree)


@given(trees, trees, trees)
def test_merging_may_be_grouped_in_any_way(low, middle, high):
    left = merge(merge(low, middle), high)
    right = merge(low, merge(middle, high))

    assert settled(left) == settled(right)


@given(trees)
def test_merging_with_nothing_changes_nothing(tree):
    empty = as_tree({})

    assert settled(merge(empty, tree)) == settled(tree) == settled(merge(tree, empty))


@given(trees, trees)
def test_the_higher_layer_wins_wherever_it_says_something(low, high):
    merged = settled(merge(low, high))

    def agrees(whole, part):
        if not isinstance(part, Fields):
            return part.value is None or whole == part.value
        return isinstance(whole, dict) and all(
            key not in whole if _reset(each) else agrees(whole[key], each)
            for key, each in part.values.items()
        )

    assert agrees(merged, high)


def _reset(node):
    return isinstance(node, Leaf) and node.value is None


names = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)
spans = st.integers(1, 30).map(lambda n: f"{n * 10}ms")


@st.composite
def files(draw):
    """A valid file as plain values."""
    probe = draw(st.integers(20, 150))
    gossip = {
        "probe_interval": f"{probe * 10}ms",
        "probe_timeout": f"{draw(st.integers(2, probe - 1)) * 10}ms",
        "gossip_interval": "50ms",
        "fanout": draw(st.integers(1, 8)),
        "seeds": [f"10.0.0.{n}" for n in draw(st.lists(st.integers(1, 9), max_size=3))],
    }
    addresses = draw(
        st.lists(st.integers(1, 250), min_size=0, max_size=3, unique=True).map(
            lambda found: [f"192.0.2.{n}" for n in found]
        )
    )
    labels = st.dictionaries(names, names, max_size=2)
    egresses = {
        f"e{n}": {
            "egress_ip": ip,
            "priority": draw(st.integers(0, 9)),
            "node_selector": {"match_labels": draw(labels)},
            "failover": draw(st.sampled_from(["auto", "none"])),
        }
        for n, ip in enumerate(addresses)
    }
    return {
        "version": 1,
        "node": {"name": "n1", "labels": draw(labels), "weight": draw(st.floats(0, 100))},
        "gossip": {
            key: value for key, value in gossip.items() if draw(st.booleans()) or "p" in key
        },
        "egress": {"egresses": egresses, "removal_guard": draw(st.sampled_from(["off", "50%"]))},
    }


def loaded(values):
    return parsed(json.dumps(values))


@few
@given(files())
def test_what_is_shown_gives_the_same_settings_again(values):
    first = loaded(values)

    assert leaves_of(parsed(text(first.settings)).settings) == first.leaves
    assert leaves_of(loaded(document(first.settings)).settings) == first.leaves


@few
@given(files(), files())
def test_the_difference_applied_is_the_target(old, new):
    before, after = loaded(old), loaded(new)
    reached = apply(before.leaves, diff(before.leaves, after.leaves))

    assert diff(reached, after.leaves) == ()
    assert Digests(built(reached), "") == Digests(after.settings, "")


@few
@given(files())
def test_nothing_differs_from_itself(values):
    leaves = loaded(values).leaves

    assert diff(leaves, leaves) == ()


def reformatted(value, rng, depth=0):
    """The same values with other spacing, quoting and order."""
    pad = "  " * depth
    if isinstance(value, dict) and value and rng.random() < 0.7:
        rows = list(value.items())
        rng.shuffle(rows)
        return "".join(
            f"\n{pad}# {rng.random()}\n{pad}{key}:{reformatted(each, rng, depth + 1)}"
            for key, each in rows
        )
    return f" {json.dumps(value)}" if rng.random() < 0.5 else f"   {json.dumps(value)}  # x"


@few
@given(files(), st.integers())
def test_digests_do_not_see_formatting(values, seed):
    rows = "\n".join(f"{k}:{reformatted(v, Random(seed), 1)}" for k, v in reversed(values.items()))
    other = parsed(rows + "\n")

    assert other.digests.cluster == loaded(values).digests.cluster
    assert other.digests.node == loaded(values).digests.node


@few
@given(files(), files())
def test_digests_see_every_difference_that_counts(one, other):
    first, second = loaded(one), loaded(other)
    changes = diff(first.leaves, second.leaves)
    shared = [each for each in changes if each.option.scope.value == "cluster"]

    assert (first.digests.node == second.digests.node) == (not changes)
    assert (first.digests.cluster == second.digests.cluster) == (not shared)


@given(st.integers(0, 10**9))
def test_a_duration_survives_being_shown(milliseconds):
    assert seconds(show_seconds(milliseconds / 1000)) == milliseconds / 1000


def complaints_about(read, *arguments):
    """The problems that `read` has with something; nothing but ConfigError may come of it."""
    try:
        read(*arguments)
    except ConfigError as error:
        return error.problems
    return ()


@given(st.binary(max_size=400))
def test_any_bytes_give_a_tree_or_a_complaint(data):
    for each in complaints_about(parse_yaml, "f", data):
        assert each.mark.line >= 1


fragments = st.sampled_from(
    ["a: 1", "b:", "- x", "[", "]", "{", "}", "'", '"', "\t", "  ", "\n", ": ", ", ", "#", "&a",
     "*a", "!t", "|", ">", "---", "...", "%Y", "? ", "@", "`", "::1", "version: 1",
     "gossip:", "null"]
)  # fmt: skip


@given(st.lists(fragments, max_size=25).map("".join))
def test_any_text_gives_settings_or_complaints_with_a_place(body):
    files = [Text("f", body.encode())]

    for each in complaints_about(parse, files, Surroundings(hostname="n1")):
        assert each.mark.source == "f"
        assert each.message


plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 10**6), st.floats(allow_nan=False),
              st.sampled_from(["auto", "off", "3s", "192.0.2.1", "10.0.0.0/8", "x", "", "50%"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=4,
)  # fmt: skip


@st.composite
def strange(draw):
    """A file in which any known key, or one of any name, may have any value."""
    from config.schema.table import OPTIONS

    whole = {"version": 1}
    for path in draw(st.lists(st.sampled_from(sorted(OPTIONS)), max_size=4)):
        holder = whole
        for step in path[:-1]:
            holder = holder.setdefault(step.replace("*", "e"), {})
            assume(isinstance(holder, dict))
        holder[path[-1]] = draw(plain)
    for key in draw(st.lists(st.sampled_from(["groups", "nodes", "egress", "zzz"]), max_size=1)):
        whole[key] = draw(plain)
    return whole


@given(strange())
def test_any_values_give_settings_or_complaints_and_never_a_crash(values):
    files, around = [Text("f", json.dumps(values).encode())], Surroundings(hostname="n1")

    if complaints_about(parse, files, around):
        return
    found = parse(files, around)
    assert leaves_of(built(found.leaves)) == found.leaves
