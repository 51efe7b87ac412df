"""Plan, then apply, then rest: whatever others did to the host in between."""

import asyncio
import errno
from ipaddress import ip_address

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from egress.actuator import apply
from egress.model import Bind, Binding
from egress.plan import plan
from support.fakes_egress import FakeKernel, FakeLan, Segment, link

LEASE = 3.0
IPS = [ip_address(text) for text in ("192.0.2.1", "192.0.2.2", "2001:db8::1")]
LINKS = ["eth0", "eth1"]
binding = st.builds(Binding, ip=st.sampled_from(IPS), interface=st.sampled_from(LINKS))


class Reconcile(RuleBasedStateMachine):
    """A host on which a reconciler, a keeper and other programs are at work."""

    def __init__(self):
        super().__init__()
        self.now = 100.0
        self.kernel = FakeKernel(*map(link, LINKS), clock=lambda: self.now)
        self.lan = FakeLan(Segment(), self.kernel)
        self.desired = frozenset()
        self.known = frozenset()
        self.foreign = set()
        self.crooked = set()
        self.runner = asyncio.Runner()

    def teardown(self):
        self.runner.close()

    @initialize(marks=st.booleans())
    def which_linux(self, marks):
        self.kernel.marks = marks

    @rule(desired=st.frozensets(binding, max_size=4))
    def operator_wants(self, desired):
        self.desired = desired

    @rule(which=binding)
    def somebody_deletes(self, which):
        self.kernel.delete(which)
        self.foreign.discard(which)

    @rule(which=binding)
    def somebody_replaces_and_strips_the_mark(self, which):
        if which.interface in self.kernel.links:
            self.kernel.seize(which)
            self.foreign |= {which} - self.known

    @rule(which=binding, prefix=st.sampled_from([24, 28]), ours=st.booleans())
    def somebody_adds_it_with_another_prefix(self, which, prefix, ours):
        if which.interface in self.kernel.links:
            self.kernel.seize(which, prefix, ours=ours)
            self.crooked.add((which, prefix))

    @rule(which=binding)
    def duplicate_detection_fails(self, which):
        if which in self.kernel.whole - self.foreign:
            self.kernel.spoil(which)

    @rule(name=st.sampled_from(LINKS))
    def a_link_comes_or_goes(self, name):
        if name in self.kernel.links:
            self.kernel.unplug(name)
            self.foreign = {each for each in self.foreign if each.interface != name}
            self.crooked = {each for each in self.crooked if each[0].interface != name}
        else:
            self.kernel.links[name] = link(name)

    @rule(seconds=st.sampled_from([0.7, 5.0]))
    def time_passes_without_renewal(self, seconds):
        self.now += seconds

    @rule(which=binding)
    def the_kernel_refuses(self, which):
        self.kernel.refuses = {which: errno.EPERM} if not self.kernel.refuses else {}

    @invariant()
    def one_round_arrives_and_the_next_one_rests(self):
        outcome = self.runner.run(self.round())
        ours = {each for each in self.kernel.whole if each not in self.foreign}
        possible = {each for each in self.desired if each.interface in self.kernel.links}

        if not outcome.failed:
            assert self.steps() == ()
            assert ours == possible
            assert all(self.held(each).usable for each in ours)
        assert {(each, each.ip.max_prefixlen) for each in self.foreign} <= set(
            self.kernel.addresses
        )
        assert self.crooked <= set(self.kernel.addresses)

    def held(self, which):
        return self.kernel.addresses[which, which.ip.max_prefixlen]

    def steps(self):
        observed = self.runner.run(self.kernel.observe())
        return plan(self.desired, observed, self.known)

    async def round(self):
        steps = plan(self.desired, await self.kernel.observe(), self.known)
        outcome = await apply(steps, self.kernel, self.lan, lease=LEASE, patience=5.0)
        self.known |= {step.binding for step in outcome.done if isinstance(step, Bind)}
        return outcome


class TestReconcile(Reconcile.TestCase):
    settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
