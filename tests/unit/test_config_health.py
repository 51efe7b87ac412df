"""The section `health`: what a check may say, and what a mistake is told."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from config.changes import diff
from config.digest import Digests
from config.leaves import built, leaves_of
from config.schema.health import Action, CheckType
from config.schema.settings import Settings


def settings(**checks: object) -> Settings:
    return Settings.model_validate(
        {"version": 1, "node": {"name": "n1"}, "health": {"checks": checks}}
    )


def complaint(**check: object) -> str:
    with pytest.raises(ValidationError) as caught:
        settings(uplink=check)
    return caught.value.errors()[0]["msg"]


def test_a_check_needs_little_more_than_its_type() -> None:
    check = settings(uplink={"type": "gateway"}).health.checks["uplink"]

    assert (check.type, check.action) == (CheckType.GATEWAY, Action.INELIGIBLE)
    assert (check.interval, check.timeout, check.rise, check.fall) == (2.0, 1.0, 2, 3)


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"type": "ping"}, "write one of carrier, gateway, tcp, http, exec, file"),
        ({"type": "tcp"}, "has type tcp and no target, write target"),
        ({"type": "tcp", "target": "db.example.org"}, "write HOST:PORT"),
        (
            {"type": "tcp", "target": "db:5432", "url": "http://db/"},
            "for which type tcp has no use, it takes target",
        ),
        ({"type": "http", "url": "ftp://db/"}, "begins with http:// or https://"),
        ({"type": "http", "url": "http://me:secret@db/"}, "without a password"),
        ({"type": "exec", "command": ["check.sh"]}, "begin command with /path/to/program"),
        ({"type": "exec"}, "has type exec and no command, write command"),
        ({"type": "file", "path": "/x", "absent": True, "contains": "y"}, "keep one of them"),
        ({"type": "file", "path": "/x", "interval": "10ms"}, "from 100ms to 1h"),
    ],
)
def test_a_mistake_says_what_to_write(check: dict[str, object], words: str) -> None:
    assert words in complaint(**check)


def test_reuse_must_be_below_suppress() -> None:
    damping = {"damping_suppress": 2, "damping_reuse": 2}

    with pytest.raises(ValidationError, match="write a smaller damping_reuse"):
        Settings.model_validate({"version": 1, "health": damping})


def test_what_was_read_can_be_read_again() -> None:
    before = settings(
        a={"type": "http", "url": "https://db.example.org/ok?x=1", "status": [204]},
        b={"type": "exec", "command": ["/bin/true", "-x"], "fall": 1},
        c={"type": "tcp", "target": "[2001:db8::1]:443"},
    )

    assert built(leaves_of(before)) == before


def test_the_order_of_a_command_is_a_change() -> None:
    one = settings(a={"type": "exec", "command": ["/bin/x", "a", "b"]})
    other = settings(a={"type": "exec", "command": ["/bin/x", "b", "a"]})

    assert [each.path[-1] for each in diff(leaves_of(one), leaves_of(other))] == ["command"]
    assert Digests(one, "").node != Digests(other, "").node


def test_checks_of_one_node_are_no_drift() -> None:
    one, other = settings(), settings(a={"type": "gateway"})

    assert Digests(one, "").cluster == Digests(other, "").cluster
    assert Digests(one, "").node != Digests(other, "").node
