"""A bench for the decisions of one node: the world is set by hand, the kernel does as told."""

from dataclasses import replace
from ipaddress import ip_address
from random import Random

from egress.claims import Claims
from egress.decision import Timing, View
from egress.model import (
    Assignment,
    Bind,
    Binding,
    Bound,
    Candidate,
    Claim,
    Egress,
    Interface,
    Observed,
    Outcome,
    Reply,
    Unbind,
)
from egress.moves import Moves
from egress.placement import Placement
from egress.plan import plan

IP = ip_address("10.77.0.201")
IP6 = ip_address("2001:db8:77::201")
GATEWAY = ip_address("10.77.0.1")
MACS = {"a": "02:00:00:00:00:0a", "b": "02:00:00:00:00:0b", "c": "02:00:00:00:00:0c"}
STRANGER = "02:00:00:00:00:99"
LINK = Interface("eth0", 2, MACS["a"], carrier=True)
HERE = Binding(IP, "eth0")
BEAT = 0.1
MET = 20.0  # by then everybody has known everybody for long enough


class Bench:
    """Node a of a, b and c, with one egress; `now` only moves forward."""

    def __init__(self, *, ips=(IP,), owner="a", standby="b", timing=None):
        self.now = 0.0
        self.egress = Egress("e", tuple(ips))
        self.claims = Claims()
        self.kernel = {}
        self.candidates = {n: Candidate(n, macs=frozenset({mac})) for n, mac in MACS.items()}
        self.moves = Moves("a", timing or Timing(), Random(1))
        self.view = View(
            egresses=(self.egress,),
            assignments={"e": Assignment(owner, standby, "score")},
            claims=self.claims,
            candidates=self.candidates,
            places={ip: Placement("eth0") for ip in ips},
            observed=Observed((LINK,)),
            controls={"eth0": (GATEWAY,)},
        )
        self.decision = None
        self.open = []
        self.published = []
        self.announced = []
        self.finished = []

    # -- the world -----------------------------------------------------------------------

    def see(self, now=None, **parts):
        """Look at the world after `parts` of it changed; until then time passes as it does."""
        if now is not None and self.decision is not None:
            self.run_to(now)
        self.now = self.now if now is None else now
        observed = replace(self.view.observed, bound=tuple(self.kernel.values()))
        self.view = replace(self.view, **{"observed": observed, **parts})
        return self.wake()

    def wake(self, now=None):
        """Be called although nothing changed."""
        self.now = self.now if now is None else now
        self.decision = self.moves.consider(self.view, self.now)
        self.open += [(question, self.now) for question in self.decision.asks]
        self.publish(self.decision.publish)
        self.announced += [(self.now, each.first) for each in self.decision.announcements]
        self.finished += self.decision.moves
        return self.decision

    def stall(self, seconds):
        """Time passes, and we do not run."""
        self.now += seconds

    def elect(self, owner, standby=None, rule="score", now=None):
        return self.see(now, assignments={"e": Assignment(owner, standby, rule)})

    def member(self, name, now=None, **parts):
        self.candidates = {**self.candidates, name: replace(self.candidates[name], **parts)}
        return self.see(now, candidates=self.candidates)

    def claim(self, owner, epoch, *, held=True, to=None, ip=IP):
        self.claims.fold(Claim(ip, epoch, owner, held, to=to))

    def publish(self, claims):
        for claim in claims:
            self.claims.fold(claim)
        self.published += claims

    # -- what the world answers ----------------------------------------------------------

    def act(self):
        """Carry out the decision; whatever the kernel said is told and looked at."""
        steps = plan(self.decision.desired, self.view.observed)
        for step in steps:
            match step:
                case Bind(binding):
                    self.kernel[binding] = Bound(binding, ours=True, valid=3.0, prefix=32)
                case Unbind(binding):
                    self.kernel.pop(binding, None)
        if steps:
            self.publish(self.moves.applied(Outcome(done=steps), self.now, 1000.0 + self.now))
        return self.see()

    def answer(self, *macs, control=True, carrier=True, rivals=(), took=0.15):
        """Every question that is open gets this reply, after `took` seconds."""
        asks, self.open = self.open, []
        assert asks, "nothing was asked"
        self.now = max(asked for _, asked in asks) + took
        replies = [
            Reply(q, frozenset(macs), control, carrier, asked, asked + took, frozenset(rivals))
            for q, asked in asks
        ]
        self.moves.heard(replies, self.now)
        return self.wake()

    def run_to(self, until):
        """Follow the deadlines, with nobody answering anything, until then."""
        while self.decision.deadline <= until:
            self.beat(self.decision.deadline)
            self.wake(max(self.now, self.decision.deadline))
        self.beat(until)
        return self.wake(until)

    def beat(self, until):
        """Heartbeats wake whoever carries, whatever the deadline."""
        while self.now + BEAT < until:
            self.now += BEAT
            self.moves.look(self.now)

    def asked_by(self, until):
        """Follow the deadlines until something is asked; when that is."""
        while not self.open:
            assert self.decision.deadline <= until, "nothing is asked"
            self.beat(self.decision.deadline)
            self.wake(max(self.now, self.decision.deadline))
        return self.now

    # -- where it stands -----------------------------------------------------------------

    def hold(self):
        """Bind and be done with it: announced, asked about, settled."""
        self.see(MET)
        self.answer()
        self.act()
        self.answer()
        return self.run_to(self.now + 11)

    @property
    def asked(self):
        """Addresses about which a question is open."""
        return [question.ip for question, _ in self.open]

    @property
    def wanted(self):
        return HERE in self.decision.desired

    @property
    def phase(self):
        return self.decision.phases[IP]

    @property
    def condition(self):
        return self.decision.conditions.get(IP)
