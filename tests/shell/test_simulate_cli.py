"""`wayout simulate` as a script and a person call it."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from agent.cli.group import wayout


def call(*words):
    return CliRunner().invoke(wayout, ["simulate", *words])


def test_the_document_has_what_scripts_rely_on():
    done = call(
        "--nodes", "5", "--kill", "1", "--duration", "6s", "--seed", "7", "--loss", "1%", "--json"
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["seed"], told["nodes"], told["killed"], told["loss"]) == (7, 5, 1, 0.01)
    assert (
        set(told["detection_seconds"]) == {"p50", "p99", "max"} == set(told["known_by_all_seconds"])
    )
    assert told["false_deaths"] == 0 <= told["false_suspicions"]
    assert told["packets_per_second_per_node"] > 0 < told["bytes_per_second_per_node"]
    assert len(told["digest"]) == 32


@pytest.mark.parametrize(
    "words",
    [
        ("--nodes", "1"),
        ("--loss", "100%"),
        ("--loss", "much"),
        ("--stall", "3"),
        ("--nodes", "3", "--kill", "3"),
        ("--preset", "none"),
        ("--plot", "figure.doc"),
        ("--config", "/nowhere/wayout.yaml"),
    ],
)
def test_a_bad_value_is_one_error(words):
    done = call(*words)
    assert done.exit_code == 2
    assert done.stderr.count("wayout: error:") == 1


@pytest.mark.parametrize(("name", "head"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
@pytest.mark.slow
def test_a_plot_is_a_picture(tmp_path, name, head):
    pytest.importorskip("matplotlib", reason="needs the extra `plot`")
    target = tmp_path / name
    done = call("--nodes", "4", "--kill", "1", "--duration", "5s", "--plot", str(target))
    assert done.exit_code == 0, done.output
    assert target.read_bytes().startswith(head)
    assert "known by all" in done.stdout


WITHOUT_MATPLOTLIB = """
import sys
sys.modules["matplotlib"] = None
from agent.cli.group import wayout
wayout(["simulate", "--plot", "a.svg"])
"""


def test_a_plot_without_matplotlib_names_what_to_install():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_MATPLOTLIB],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "wayout: error:" in done.stderr
    assert "pip install wayout[plot]" in done.stderr


INTERRUPTED = """
import os, signal, threading
import gossip.simulator.link, gossip.simulator.scenario
from agent.cli.group import wayout
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
wayout(["simulate", "--nodes", "5", "--duration", "10h", "--json"])
"""


@pytest.mark.slow
def test_ctrl_c_tells_what_is_known_until_then():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 130, done.stderr
    assert 0 < json.loads(done.stdout)["duration_seconds"] < 36_000
    assert "interrupted after" in done.stderr


def test_settings_come_from_a_configuration_file(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("version: 1\ngossip: {probe_interval: 1s}\n")
    words = ("--nodes", "4", "--owners", "0", "--duration", "5s", "--json")
    own, usual = call(*words, "--config", str(path)), call(*words)
    assert own.exit_code == 0, own.output
    rates = [json.loads(each.stdout)["packets_per_second_per_node"] for each in (own, usual)]
    assert rates[0] < rates[1]
