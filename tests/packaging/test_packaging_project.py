"""What the project says of itself, in each of the places where it says it."""

import sys
import tomllib
from pathlib import Path

import pytest

from agent import release
from gossip.peer import PROTOCOL_VERSIONS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_version_is_the_same_everywhere():
    version = PROJECT["project"]["version"]

    assert version == release.VERSION
    assert f"wayout:{version}" in (ROOT / "Dockerfile").read_text()
    assert f"newTag: {version}" in (ROOT / "deploy/kubernetes/kustomization.yaml").read_text()


def test_the_protocol_is_the_one_that_gossip_speaks():
    low, high, spoken = PROTOCOL_VERSIONS

    assert f"memberlist {low}-{high}, speaks {spoken}" == release.PROTOCOL


def test_a_build_names_itself(monkeypatch):
    monkeypatch.setenv("WAYOUT_BUILD", "1a2b3c4")

    assert release.describe()["build"] == "1a2b3c4"


def test_the_command_is_installed_and_starts_with_the_mask():
    entry = PROJECT["project"]["scripts"]["wayout"]
    module = ROOT / (entry.partition(":")[0].replace(".", "/") + ".py")

    statements = [
        line
        for line in module.read_text().partition('"""\n')[2].splitlines()
        if line and not line.startswith("#")
    ]
    assert statements[:2] == [
        "import signal",
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})",
    ]


@pytest.mark.parametrize("name", ["agent", "agent.cli"])
def test_packages_on_the_way_to_the_entry_import_nothing(name):
    text = (ROOT / name.replace(".", "/") / "__init__.py").read_text()

    assert "import" not in text


def test_the_page_is_inside_a_package_that_is_built():
    assert (ROOT / "agent/page/index.html").is_file()
    assert "agent" in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert sys.version_info >= (3, 11)
