"""The faults that can be measured: their names, and what each is about."""

import pytest
from click.testing import CliRunner

from agent.cli.group import wayout
from agent.lab import strikes
from agent.lab.processes import LabError
from agent.lab.strikes import KINDS, Scope

NEEDED = {
    "host-death",
    "sigkill",
    "sigstop",
    "sigterm",
    "drain",
    "reload-storm",
    "rejoin",
    "partition",
    "rolling-restart",
}


def test_every_fault_of_the_promise_can_be_measured():
    assert set(KINDS) >= NEEDED


@pytest.mark.parametrize(("name", "seconds"), [("sigstop-1", 1.0), ("sigstop-1.5", 1.5)])
def test_a_hang_has_its_length_in_its_name(name, seconds):
    assert strikes.find(name).seconds == seconds
    assert strikes.find("sigstop").seconds is None


@pytest.mark.parametrize("name", ["", "sigstop-", "sigstop-x", "sigstop-1000000", "meteor"])
def test_an_unknown_fault_is_refused_with_those_that_there_are(name):
    with pytest.raises(LabError, match="host-death"):
        strikes.find(name)


def test_what_must_move_nothing_is_about_all_addresses_and_waits_for_none():
    for name in ("rolling-restart", "rolling-upgrade", "reload-storm"):
        assert (KINDS[name].scope, KINDS[name].patience) == (Scope.ALL, 0.0)


def test_help_lists_the_faults_and_a_slip_names_them():
    listed = CliRunner().invoke(wayout, ["lab", "measure", "--fault", "help"])
    slipped = CliRunner().invoke(wayout, ["lab", "measure", "--fault", "meteor"])

    assert listed.exit_code == 0
    assert {line.split()[0] for line in listed.stdout.splitlines()} == {*KINDS, "sigstop-N"}
    assert slipped.exit_code == 2
    assert "there is no fault 'meteor'" in slipped.stderr
