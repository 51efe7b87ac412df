"""What `auto` and formulas come to, with their inputs."""

from agent import derived
from support.settings import parsed

CONFIG = "{{version: 1, node: {{name: n1}}, gossip: {{{gossip}}}}}"


def values(gossip, sizes):
    rows = derived.rows(parsed(CONFIG.format(gossip=gossip)).settings, "192.0.2.1", sizes)
    return {row["name"]: (row["value"], row["from"]) for row in rows}


def test_auto_addresses_are_shown_with_what_they_came_from():
    found = values("advertise_address: 203.0.113.9", derived.Sizes(3, 3))

    assert found["gossip.bind_address"] == ("192.0.2.1", {"option": "auto", "node": "auto"})
    assert found["gossip.advertise_address"][0] == "203.0.113.9"
    assert values("", derived.Sizes(1, 1))["gossip.advertise_address"] == (
        "192.0.2.1",
        {"option": "auto", "bind": "192.0.2.1"},
    )


def test_timing_is_shown_with_the_sizes_that_it_goes_by():
    found = values("", derived.Sizes(40, 100))

    assert found["suspicion seconds, many accusers"] == (
        4.0,
        {"suspicion_mult": 4, "probe_interval": 0.5, "members_of_late": 100},
    )
    assert found["suspicion seconds, one accuser"][0] == 24.0
    assert found["accusers that shorten it"][0] == 2
    assert found["times a rumour is sent"][0] == 8
    assert found["push/pull seconds"][0] == 60.0
