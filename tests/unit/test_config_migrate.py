"""Old files: brought to the present format with their comments, or refused with a reason."""

import pytest

from config.documents import Text
from config.migrate import MIGRATIONS, migrate, version_of
from config.parse import Surroundings, parse
from config.problems import ConfigError
from config.schema.settings import VERSION
from config.schema.table import ANY, entry_of

OLD = """\
# our edge

gossip:
  join: [192.0.2.11]   # two would be better
egress:
  'isolation_action': hold  # ask first
  ips:
    # billing
    a: {address: 192.0.2.40}
    b:
      address: 192.0.2.41   # é
nodes:
  n1: {logging: {verbosity: debug}}
"""
NEW = """\
# our edge

version: 1
gossip:
  seeds: [192.0.2.11]   # two would be better
egress:
  'partition': keep  # ask first
  egresses:
    # billing
    a: {egress_ip: 192.0.2.40}
    b:
      egress_ip: 192.0.2.41   # é
nodes:
  n1: {logging: {level: debug}}
"""


def text(body):
    return Text("config.yaml", body.encode())


def test_names_change_and_nothing_else_does():
    done = migrate([text(OLD)])

    assert done.files[0].data.decode() == NEW
    assert done.since == 0
    parse(done.files, Surroundings(hostname="n1"))


def test_a_dropin_is_changed_with_its_main_file():
    dropin = Text("conf.d/a.yaml", b"logging: {verbosity: debug}\n")

    done = migrate([text("version: 0 # old\n"), dropin])

    assert [each.data for each in done.files] == [
        b"version: 1 # old\n",
        b"logging: {level: debug}\n",
    ]
    assert [each.split(":")[0] for each in done.remarks] == ["config.yaml", "conf.d/a.yaml"]


def test_the_present_format_stays_as_it_is():
    done = migrate([text(NEW)])

    assert (done.files[0].data.decode(), done.remarks) == (NEW, ())


@pytest.mark.parametrize(
    ("body", "new"),
    [
        ("{gossip: {join: [a]}}\n", "{version: 1, gossip: {seeds: [a]}}\n"),
        ("\ufeffgossip: {}\n", "version: 1\ngossip: {}\n"),
        ("---\ngossip: {}\n", "---\nversion: 1\ngossip: {}\n"),
        ("gossip:\r\n  join: []\r\n", "version: 1\ngossip:\r\n  seeds: []\r\n"),
    ],
)
def test_every_shape_of_a_document_gets_its_version(body, new):
    assert migrate([text(body)]).files[0].data.decode() == new


@pytest.mark.parametrize("said", ["2", "-1", "true", "'1'", "[1]"])
def test_a_version_that_nobody_knows_is_refused_with_its_place(said):
    with pytest.raises(ConfigError) as caught:
        version_of(text(f"version: {said}\n"))

    assert str(caught.value).startswith("config.yaml:1:10: version: ")


def test_old_and_new_name_together_are_refused():
    with pytest.raises(ConfigError, match="keep one of the two"):
        migrate([text("gossip: {join: [a], seeds: [b]}\n")])


def test_there_is_a_migration_from_every_version_and_it_leads_to_names_that_exist():
    assert sorted(MIGRATIONS) == list(range(VERSION))
    for each in MIGRATIONS[VERSION - 1]:
        assert entry_of(each.path) is None
        assert ANY in each.path or each.name == "egresses" or entry_of((each.path[0], each.name))
