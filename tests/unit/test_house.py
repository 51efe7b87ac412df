"""What no linter knows about this house."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("agent", "config", "egress", "gossip")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
LONGEST_MODULE = 400
LONGEST_FUNCTION = 40


def named(path):
    return str(path.relative_to(ROOT))


TREES = {path: ast.parse(path.read_text()) for path in MODULES}


def test_every_module_is_short():
    lengths = {named(path): len(path.read_text().splitlines()) for path in MODULES}

    assert {name: length for name, length in lengths.items() if length > LONGEST_MODULE} == {}


def test_every_module_says_what_it_is():
    assert [named(path) for path, tree in TREES.items() if not ast.get_docstring(tree)] == []


def test_no_function_is_long():
    long = [
        f"{named(path)} {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno + 1 > LONGEST_FUNCTION
    ]

    assert long == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_nothing_to_lose_in_its_init(package):
    body = ast.parse((ROOT / package / "__init__.py").read_text()).body

    assert len(body) == 1
    assert (ROOT / package / "py.typed").exists()


def test_bare_metal_loads_neither_kubernetes_nor_what_it_does_not_use():
    # rich is not in the list: structlog loads it wherever it is installed.
    heavy = ["kubernetes", "aiohttp", "cryptography", "click", "numpy"]
    code = f"import sys, agent.daemon; print([n for n in {heavy} if n in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert found.stdout.strip() == "[]"


def test_nobody_else_claims_our_package_names():
    from importlib.metadata import packages_distributions

    owners = packages_distributions()

    assert {package: owners.get(package, ["wayout"]) for package in PACKAGES} == {
        package: ["wayout"] for package in PACKAGES
    }


def test_the_repository_speaks_of_wayout_alone():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    words = ["/wo" + "rk/", "/tmp/bash" + "_jobs"]
    found = [
        name
        for name in listed.stdout.split("\0")
        if name and (ROOT / name).is_file()
        for text in [(ROOT / name).read_bytes()]
        if any(word.encode() in text for word in words)
    ]

    assert found == []
