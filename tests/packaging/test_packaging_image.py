"""The container image, as far as it can be judged without building it."""

import fnmatch
import json
import re
import shlex
from pathlib import Path

import pytest

from support.commands import wayout

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def stages():
    """For each stage, its instructions as (word, rest)."""
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    found, current = [], []
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if word == "FROM":
            current = []
            found.append(current)
        current.append((word, rest.strip()))
    return found


def values(stage, word):
    return [rest for found, rest in stage if found == word]


def test_what_builds_is_not_what_runs(stages):
    build, final = stages

    assert values(build, "FROM")[0].endswith(" AS build")
    assert values(final, "COPY") == ["--from=build /opt/wayout /opt/wayout"]
    assert not values(final, "RUN")


def test_both_stages_are_the_same_small_python(stages):
    (argument,) = values_before_stages()
    assert re.fullmatch(r"PYTHON=3\.1[1-9]-slim-\w+", argument)
    assert all(values(stage, "FROM")[0].startswith("python:${PYTHON}") for stage in stages)


def values_before_stages():
    head = (ROOT / "Dockerfile").read_text().partition("\nFROM ")[0]
    return [line.partition(" ")[2] for line in head.splitlines() if line.startswith("ARG ")]


def test_the_entry_is_the_daemon_and_commands_work_too(stages):
    final = stages[-1]
    (entry,), (default,) = values(final, "ENTRYPOINT"), values(final, "CMD")

    assert json.loads(entry) == ["wayout"]
    assert wayout(*json.loads(default), "--help").returncode == 0


def test_a_stop_is_a_sigterm(stages):
    assert values(stages[-1], "STOPSIGNAL") == ["SIGTERM"]


def test_everything_that_is_copied_is_there_and_not_ignored(stages):
    ignored = (ROOT / ".dockerignore").read_text().split()
    let_in = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    for line in values(stages[0], "COPY"):
        *sources, _ = shlex.split(line)
        for source in sources:
            assert (ROOT / source).exists()
            assert source in let_in


def test_the_context_has_no_history_no_tests_and_no_caches():
    lines = (ROOT / ".dockerignore").read_text().split()

    assert lines[0] == "*"
    for path in (".git", ".venv", "tests", "Makefile"):
        assert f"!{path}" not in lines
    assert any(fnmatch.fnmatch("**/__pycache__", line) for line in lines)
