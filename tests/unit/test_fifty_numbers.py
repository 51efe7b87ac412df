"""The thread of cluster operators has fifty concerns, and a test is named after each."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_each_of_the_fifty_has_a_test_of_its_number():
    text = "\n".join(path.read_text() for path in TESTS.rglob("test_*.py"))
    found = {int(number) for number in re.findall(r"test_t([0-9]+)", text)}

    assert set(range(1, 51)) - found == set()
