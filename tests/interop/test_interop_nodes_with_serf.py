"""Bare gossip nodes and agents of serf in one cluster, each on its own host.

The agents are Debian's: serf 0.9.4 on memberlist 0.2.2. They compress what they say, send
coordinates with every ack and have 512 slots of events in their push/pulls.
"""

import base64
import contextlib
import json
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from support.lonenode import Lone, eventually
from support.namespaces import Segment

pytestmark = [
    pytest.mark.interop,
    pytest.mark.netns,
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("serf") is None, reason="needs serf (Debian: apt-get install serf)"
    ),
]
SERF = (2, 5, 5)
"""Delegate versions without which an agent refuses the push/pull."""
KEY = base64.b64encode(bytes(range(32))).decode()
OTHER_KEY = base64.b64encode(bytes(32)).decode()
LIVING_TOGETHER = 60
COMPLAINTS = r"\[ERR\]|\[WARN\]|Suspect|Refuting|failed|conflict"


class Agent:
    """An agent of serf on a host, its log, and its own command line."""

    def __init__(self, host, name, log, *options):
        self.name = name
        self._host = host
        self._log = log
        command = f"serf agent -node={name} -bind={host.ip4} -rpc-addr=127.0.0.1:7373"
        with log.open("w") as out:
            self._process = host.start(
                *command.split(), *options, stdout=out, stderr=subprocess.STDOUT
            )

    def ask(self, command):
        return self._host.run(f"serf {command}", check=False)

    def members(self):
        """Status by name, as this agent sees it; nothing until it answers.

        In JSON: as text it would print our metadata, which it takes for a role, as it is.
        """
        try:
            found = json.loads(self.ask("members -format=json"))["members"]
        except ValueError:
            return {}
        return {each["name"]: each["status"] for each in found}

    def health(self):
        """Status of the others."""
        return {name: status for name, status in self.members().items() if name != self.name}

    def said(self, pattern):
        """Lines of its log that match."""
        return [line for line in self._log.read_text().splitlines() if re.search(pattern, line)]

    def send(self, number):
        self._process.send_signal(number)

    def end(self, number=signal.SIGKILL):
        if self._process.poll() is None:
            self._process.send_signal(number)
        self._process.wait(timeout=20)


class Party:
    """Hosts of one segment, and everything that was started there until it ends."""

    def __init__(self, segment, folder, running):
        self._segment = segment
        self._folder = folder
        self._running = running

    def __getitem__(self, name):
        return self._segment[name]

    def node(self, name, *seeds, **kwargs):
        addresses = [self[seed].ip4 for seed in seeds]
        node = Lone(self[name], name, *addresses, **{"versions": SERF} | kwargs)
        self._running.callback(node.end, signal.SIGKILL)
        eventually(lambda: node.events("runs"))
        return node

    def agent(self, name, *options, join=()):
        joins = [f"-join={self[other].ip4}" for other in join]
        agent = Agent(self[name], name, Path(self._folder, name), *options, *joins)
        self._running.callback(agent.end)
        eventually(agent.members)
        return agent


@contextlib.contextmanager
def hosts(*names):
    with (
        tempfile.TemporaryDirectory() as folder,
        Segment(*names, prefix="ws") as segment,
        contextlib.ExitStack() as running,
    ):
        yield Party(segment, folder, running)


def acquainted(*members):
    """Whether everybody holds everybody alive, and nobody else."""
    names = {member.name for member in members}
    return all(
        member.health() == dict.fromkeys(names - {member.name}, "alive") for member in members
    )


def stays(condition, seconds):
    """Whether it holds at every look for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not condition():
            return False
        time.sleep(1)
    return True


def test_ours_and_agents_live_together_and_nobody_doubts_anybody():
    with hosts("n1", "n2", "s1", "s2", "s3", "n3") as party:
        ours = [party.node("n1"), party.node("n2", "n1")]
        joined = [*ours, party.agent("s1", join=["n1"])]
        agents = [party.agent("s2"), party.agent("s3", join=["s2"])]
        joining = [*agents, party.node("n3", "s2")]
        eventually(lambda: acquainted(*joined) and acquainted(*joining))

        assert stays(lambda: acquainted(*joined) and acquainted(*joining), LIVING_TOGETHER)
        for agent in (joined[2], *agents):
            assert agent.said(COMPLAINTS) == []
        for node in (*ours, joining[2]):
            for kind in ("Dropped", "SyncFailed", "Refuted", "DatagramsBlocked"):
                assert node.events(kind) == []
            assert node.events("Synced")
            assert node.end() == 0
            assert node.errors == []


@pytest.mark.parametrize(
    ("options", "key"),
    [(["-disable-compression"], ""), ([f"-encrypt={KEY}"], KEY)],
    ids=["uncompressed", "encrypted"],
)
def test_agents_that_do_not_compress_or_that_encrypt_are_understood(options, key):
    with hosts("s1", "n1", "n2") as party:
        agent = party.agent("s1", *options)
        nodes = [party.node("n1", "s1", key=key), party.node("n2", "n1", key=key)]
        eventually(lambda: acquainted(agent, *nodes))

        assert stays(lambda: acquainted(agent, *nodes), 5)
        assert agent.said(COMPLAINTS) == []
        assert [node.events("Dropped") for node in nodes] == [[], []]


def test_without_the_key_nobody_comes_in():
    with hosts("s1", "n1", "n2") as party:
        agent = party.agent("s1", f"-encrypt={KEY}")
        nodes = [party.node("n1", "s1"), party.node("n2", "n1", "s1", key=OTHER_KEY)]
        eventually(lambda: all(node.events("SyncFailed") for node in nodes))

        assert stays(lambda: not agent.health() and not any(n.health() for n in nodes), 3)


def test_a_death_and_a_goodbye_are_told_apart_both_ways():
    with hosts("s1", "s2", "s3", "n1", "n2", "n3") as party:
        agents = [party.agent("s1"), *(party.agent(name, join=["s1"]) for name in ("s2", "s3"))]
        nodes = [party.node(name, "s1") for name in ("n1", "n2", "n3")]
        eventually(lambda: acquainted(*agents, *nodes))
        agents[1].ask("leave")
        agents[2].end(signal.SIGKILL)
        nodes[1].end(signal.SIGTERM)
        nodes[2].end(signal.SIGKILL)

        eventually(
            lambda: (
                nodes[0].health()
                == {"s1": "alive", "s2": "left", "s3": "dead", "n2": "left", "n3": "dead"}
            ),
            60,
        )
        # To serf a goodbye without its own word for it is a failure.
        ours = {"n1": "alive", "n2": "failed", "n3": "failed"}
        eventually(lambda: ours.items() <= agents[0].health().items(), 60, agents[0].health)


@pytest.mark.parametrize("stopped", ["agent", "node"])
def test_whoever_was_stopped_for_a_while_refutes_its_death(stopped):
    with hosts("s1", "s2", "n1", "n2") as party:
        agents = [party.agent("s1"), party.agent("s2", join=["s1"])]
        nodes = [party.node(name, "s1") for name in ("n1", "n2")]
        eventually(lambda: acquainted(*agents, *nodes))
        victim = {"agent": agents[1], "node": nodes[1]}[stopped]
        victim.send(signal.SIGSTOP)
        eventually(lambda: nodes[0].health()[victim.name] == "suspect")
        victim.send(signal.SIGCONT)

        eventually(lambda: acquainted(*agents, *nodes), 60)
        told = [e["health"] for e in nodes[0].events("health") if e["name"] == victim.name]
        assert "dead" not in told


def test_without_datagrams_streams_keep_members_alive():
    with hosts("s1", "n1", "n2") as party:
        agent = party.agent("s1")
        nodes = [party.node(name, "s1") for name in ("n1", "n2")]
        eventually(lambda: acquainted(agent, *nodes))
        drop = "chain {0} {{ type filter hook {0} priority 0; udp dport 7946 drop; }}"
        chains = "\n".join(drop.format(hook) for hook in ("input", "output"))
        party["s1"].feed("nft -f -", f"table inet t {{\n{chains}\n}}\n")

        eventually(lambda: any(n.events("DatagramsBlocked") for n in nodes), 30)
        assert stays(lambda: nodes[0].health()["s1"] in {"alive", "suspect"}, 15)
        assert nodes[0].health()["n2"] == "alive"


def test_messages_of_serf_reach_the_application_as_foreign_ones():
    with hosts("s1", "s2", "n1") as party:
        agents = [party.agent("s1"), party.agent("s2", join=["s1"])]
        node = party.node("n1", "s1")
        eventually(lambda: acquainted(*agents, node))
        agents[0].ask(f"event deploy {'x' * 200}")
        eventually(lambda: any("deploy" in e["payload"] for e in node.events("ForeignMessage")))
        agents[0].ask("tags -set role=gateway")
        eventually(lambda: node.events("MetaChanged"))

        assert "gateway" in node.events("MetaChanged")[-1]["member"]
        assert node.events("Dropped") == []
