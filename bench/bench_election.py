"""What an election costs, and the longest slice of it.

python bench/bench_election.py [EGRESSES NODES]
"""

import gc
import sys
import time
from dataclasses import replace
from ipaddress import ip_address, ip_network

from egress.claims import Claims
from egress.election import Election, Rules
from egress.model import Candidate, Claim, Egress

NET = (ip_network("10.0.0.0/8"),)


class Course:
    """A cluster to which things happen; each is timed."""

    def __init__(self, egresses, nodes):
        self.egresses = tuple(
            Egress(f"egress-{number:05}", (ip_address(0x0A000000 + number),))
            for number in range(egresses)
        )
        names = [f"node-{number:03}" for number in range(nodes)]
        self.candidates = {
            name: Candidate(name, networks=NET, labels=(("host", name),)) for name in names
        }
        self.claims = Claims()
        self.election = Election()
        self.owners = {}
        self.now = 100.0

    def change(self, name, **fields):
        self.candidates = {
            **self.candidates,
            name: replace(self.candidates.get(name) or Candidate(name, networks=NET), **fields),
        }

    def run(self, label):
        gc.collect()
        start = last = time.process_time()
        longest = 0.0
        for _ in self.election.steps(
            self.egresses, self.candidates, self.claims, Rules(), self.now
        ):
            longest, last = max(longest, time.process_time() - last), time.process_time()
        whole = time.process_time() - start
        longest = max(longest, time.process_time() - last)
        moved = [
            each
            for each in self.egresses
            if self.election.result[each.name].owner != self.owners.get(each.name)
        ]
        print(f"{label:28s}{whole * 1e3:9.1f}{longest * 1e3:9.1f}{len(moved):8d}")
        return moved

    def claim(self, moved):
        for each in moved:
            owner = self.owners[each.name] = self.election.result[each.name].owner
            top = self.claims.top(each.ips[0])
            epoch = 1 if top is None else top.epoch + 1
            self.claims.fold(Claim(each.ips[0], epoch, owner, held=True), self.now)


def main(egresses, nodes):
    course = Course(egresses, nodes)
    print(f"{egresses} egresses, {nodes} nodes{'':2}CPU ms  slice ms   moved")
    course.claim(course.run("start"))
    course.run("all are claimed")
    course.run("nothing happened")
    course.now += 60
    course.change("node-001", unreachable=True)
    course.claim(course.run("a node is lost"))
    course.run("its addresses are claimed")
    course.change("node-001", unreachable=False, healthy_since=course.now)
    course.run("it comes back")
    course.now += 30
    course.claim(course.run("30 s later"))
    course.change("node-new", healthy_since=course.now)
    course.run("a node joins")
    del course.candidates["node-new"]
    course.run("it is forgotten")
    course.egresses = (*course.egresses, Egress("one-more", (ip_address("192.0.2.1"),)))
    course.run("a reload adds one")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3] or (10_000, 100)))
