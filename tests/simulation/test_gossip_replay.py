"""A run is the same in every process, in whatever order sets of strings come there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent

RUN = """
from hashlib import blake2b
from support.cluster import Cluster

cluster = Cluster(seed=7, loss=0.1)
names = cluster.gather(8)
for name in names[:3]:
    cluster.do(name, lambda machine, now: machine.carry(carrying=True, now=now))
cluster.run(3)
cluster.part(*names[:2])
cluster.crash(names[5])
cluster.run(20)
cluster.heal()
cluster.run(10)
print(blake2b(repr(cluster.history()).encode()).hexdigest())
"""


def history(seed):
    environment = os.environ | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(TESTS)}
    run = subprocess.run(
        [sys.executable, "-c", RUN],
        env=environment,
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return run.stdout


@pytest.mark.slow
def test_a_history_does_not_depend_on_the_hash_seed():
    assert history(1) == history(2) != ""
