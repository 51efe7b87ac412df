"""What the schema promises of every option."""

import pytest

from config.defaults import DEFAULTS, default_of
from config.leaves import built, leaves_of
from config.schema.option import Modifiability, Scope
from config.schema.presets import PRESETS
from config.schema.settings import VERSION, Settings
from config.schema.table import ANY, OPTIONS, children, entry_of
from support.settings import parsed

LIVE = (Modifiability.DYNAMIC, Modifiability.REBIND)


@pytest.mark.parametrize("path", OPTIONS)
def test_an_option_says_what_it_is_for(path):
    option = OPTIONS[path].option

    assert option.description.endswith(".")
    assert option.since


@pytest.mark.parametrize("path", OPTIONS)
def test_an_option_that_is_not_live_says_why(path):
    option = OPTIONS[path].option

    assert bool(option.restart_reason) == (option.modifiability is not Modifiability.DYNAMIC)


@pytest.mark.parametrize("path", [each for each in OPTIONS if OPTIONS[each].form])
def test_a_default_is_shown_as_it_would_be_written(path):
    entry = OPTIONS[path]
    default = default_of(entry)

    if not entry.required and default not in ("", None):
        assert entry.form.show(entry.form.parse(default)) == default


def test_three_quarters_of_the_options_need_no_restart():
    live = [each for each in OPTIONS.values() if each.option.modifiability in LIVE]

    assert len(live) / len(OPTIONS) >= 0.75


def test_what_stands_below_a_free_name_is_the_same_on_all_nodes_or_of_each_node():
    # The digests and the layers rely on it.
    scopes = {}
    for path, each in OPTIONS.items():
        if ANY in path:
            scopes.setdefault(path[:2], set()).add(each.option.scope)

    assert scopes == {("egress", "egresses"): {Scope.CLUSTER}, ("health", "checks"): {Scope.GROUP}}


def test_whatever_only_one_cluster_agrees_on_cannot_change_while_it_runs():
    frozen = {p for p, e in OPTIONS.items() if e.option.modifiability is Modifiability.IMMUTABLE}

    assert frozen == {
        ("node", "cluster"),
        ("gossip", "delegate_version"),
        ("gossip", "label"),
        ("egress", "hash_seed"),
    }


def test_a_key_below_an_option_belongs_to_it():
    assert entry_of(("node", "labels", "rack")).path == ("node", "labels")
    assert entry_of(("egress", "egresses", "a", "pin")).path[-1] == "pin"
    assert entry_of(("egress", "egresses", "a")) is None
    assert entry_of(("nothing",)) is None


def test_the_names_below_a_path_are_known():
    assert "egresses" in children(("egress",))
    assert children(("egress", "egresses")) == (ANY,)
    assert "pin" in children(("egress", "egresses", "billing"))
    assert children(("node", "labels")) == ()


def test_defaults_are_valid_and_survive_their_own_leaves():
    settings = Settings(version=VERSION)
    named = {**DEFAULTS, ("node", "name"): "n1"}

    assert built(named).gossip == settings.gossip
    assert leaves_of(built(named)) == named


def test_settings_cannot_be_changed():
    settings = parsed(
        "version: 1\nnode: {labels: {a: b}}\negress: {egresses: {a: {egress_ip: 192.0.2.1}}}\n"
    ).settings

    with pytest.raises(ValueError, match="frozen"):
        settings.node.weight = 3.0
    with pytest.raises(TypeError):
        settings.node.labels["a"] = "c"
    with pytest.raises(TypeError):
        settings.egress.egresses["b"] = None
    with pytest.raises(TypeError):
        Settings(version=VERSION).egress.egresses["b"] = None


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_alone_is_a_valid_configuration(preset):
    settings = parsed(f"version: 1\ngossip: {{preset: {preset.value}}}\n").settings

    assert settings.gossip.preset is preset


def test_the_minimal_configuration_of_the_manual_is_enough():
    settings = parsed(
        """\
        version: 1
        gossip:
          seeds: [192.0.2.11, 192.0.2.12, 192.0.2.13]
        egress:
          egresses:
            billing: {egress_ip: 192.0.2.40, applied_to: {ip_blocks: [10.9.0.0/24]}}
            partner: {egress_ip: 192.0.2.41}        # address only: no SNAT
        """
    ).settings

    assert [str(seed) for seed in settings.gossip.seeds] == [
        "192.0.2.11", "192.0.2.12", "192.0.2.13",
    ]  # fmt: skip
    assert [str(ip) for ip in settings.egress.egresses["billing"].ips] == ["192.0.2.40"]
    assert settings.node.name == "n1"
    assert settings.gossip.bind_port == 7955


def test_a_dual_stack_egress_has_its_ipv4_address_first():
    settings = parsed(
        "version: 1\negress: {egresses: {a: {egress_ips: ['2001:db8::1', 192.0.2.1]}}}\n"
    ).settings

    assert [ip.version for ip in settings.egress.egresses["a"].ips] == [4, 6]
