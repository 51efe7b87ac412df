"""The commands about keys as people and scripts type them."""

import json

import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from agent.cli.group import wayout
from agent.keys.file import decoded, fingerprint
from support.desk import FakeDesk
from support.served import served

KEY = "AAAAAAAAAAAAAAAAAAAAAA=="


@pytest.fixture
def desk():
    return FakeDesk()


@pytest.fixture
def daemon(tmp_path, desk):
    with capture_logs() as logs, served(tmp_path / "admin.sock", desk) as path:
        yield str(path)
    assert KEY not in str(logs)


def run(*arguments, typed=None):
    return CliRunner().invoke(wayout, [*arguments], input=typed)


@pytest.mark.parametrize("bits", [128, 192, 256])
def test_keygen_prints_a_new_key_of_the_length_that_was_asked_for(bits):
    keys = [run("keygen", "--bits", str(bits)).stdout for _ in range(2)]

    assert keys[0] != keys[1]
    assert len(decoded(keys[0])) * 8 == bits


def test_keygen_tells_scripts_the_fingerprint_too():
    told = json.loads(run("keygen", "--json").stdout)

    assert told["bits"] == 256
    assert fingerprint(decoded(told["key"])) == told["fingerprint"]


def test_the_list_names_keys_by_fingerprint_and_those_who_are_mute_or_foreign(daemon):
    result = run("keyring", "list", "--socket", daemon)

    assert "sha256:00112233" in result.stdout
    assert "no answer from n2" in result.stderr
    assert "s1 cannot be asked" in result.stderr
    told = json.loads(run("keyring", "list", "--json", "--socket", daemon).stdout)
    assert told["keys"][0]["used_by"] == ["n1"]


@pytest.mark.parametrize("operation", ["add", "use", "remove"])
def test_a_key_comes_from_standard_input_or_from_the_command_line(daemon, desk, operation):
    piped = run("keyring", operation, "-", "--socket", daemon, typed=KEY + "\n")
    typed = run("keyring", operation, KEY, "--node", "n2", "--socket", daemon)

    assert (piped.exit_code, typed.exit_code) == (0, 0)
    assert desk.keyed == [(operation, KEY, None, False), (operation, KEY, "n2", False)]
    assert KEY not in piped.output + typed.output


def test_whoever_did_not_take_a_key_is_named_and_the_exit_code_says_so(daemon, desk):
    desk.keyless = {"n2": "no answer"}
    result = run("keyring", "use", KEY, "--force", "--socket", daemon)

    assert result.exit_code == 1
    assert "1 members encrypt with sha256:00112233: n1" in result.stdout
    assert "wayout: error: n2: no answer" in result.stderr
    assert desk.keyed == [("use", KEY, None, True)]


def test_what_is_no_key_is_a_mistake_of_the_caller(daemon):
    assert run("keyring", "add", "-", "--socket", daemon, typed="").exit_code == 2
    refused = run("keyring", "add", "bad", "--socket", daemon)

    assert refused.exit_code == 2
    assert "'wayout keygen' makes one" in refused.stderr
