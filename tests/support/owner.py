"""The daemon of one host in a world of virtual time: a simple controller around real decisions.

Membership is a stand-in that tells what a real one would, at the times that DESIGN promises:
silence after 0.3-0.4 s, a verdict after 0.4-0.6 s, death after 3-6 s, a fence by 0.5 s.
"""

import itertools
from dataclasses import replace
from random import Random

from egress.claims import Claims
from egress.decision import View
from egress.election import Election, Rules, elect
from egress.model import Bind, Candidate, Failure, Outcome, Unbind
from egress.moves import Moves
from egress.partition import Sight, fenced, not_before
from egress.placement import Placement
from egress.plan import plan

ETH = "eth0"
RENEW, LATE = 0.75, 2.5
"""Seconds between renewals, and after which nothing may be renewed: lease 3 s less 0.5 s."""
LOOK_AFTER = 0.5
"""Seconds by which a renewal is late before what is there is looked at."""
TICK = 0.05
GATHER = 0.2
JOIN_TIMEOUT = 5.0
RESTART_TIMEOUT = 30.0
SILENT_START = 1.0
"""Seconds in which a new process may not have heard from anybody yet."""
REJOIN = (0.05, 1.0)
SYNC = (4.0, 6.0)


class Owner:
    """State of one process; `host` is what remains when it dies."""

    def __init__(self, host, egresses):
        self.host = host
        self.world = host.world
        self.rng = Random(self.world.rng.random())
        self.egresses = egresses
        self.moves = Moves(host.name, self.world.timing, Random(self.rng.random()))
        self.claims = Claims()
        self.election = Election()
        self.leases = {}
        self.reasons = ("starting",)
        self.draining = self.leaving = self.left = self.restarting = False
        self.started = self.ticked = self.world.now
        self.ready_at = float("inf")
        self.heard, self.metas, self.since, self.state = {}, {}, {}, {}
        self.silent_after = self.rng.uniform(0.3, 0.4)
        self.verdict_after = self.rng.uniform(0.4, 0.6)
        self.dead_after = self.rng.uniform(3.0, 6.0)
        self.fence_after = self.rng.uniform(0.3, 0.45)
        self.view = self.signature = self.decision = None
        self.version = 0
        self.busy = self.again = False
        self.alarms = itertools.count()
        self.alarm = -1

    def start(self):
        self.host.later(0, self.run)
        self.host.later(self.rng.uniform(0, TICK), self.tick)
        self.host.later(self.rng.uniform(0, RENEW), self.keep)
        self.host.later(self.rng.uniform(0.1, 0.5), self.join)
        self.host.later(self.rng.uniform(*SYNC), self.sync)

    # -- membership ----------------------------------------------------------------------

    def peers(self):
        return [h for h in self.world.hosts if h is not self.host and h.net == self.host.net]

    def join(self):
        running = [peer for peer in self.peers() if peer.running]
        if running:
            for peer in running:  # all are seeds
                self.world.exchange(self.host, peer)
        elif self.world.now - self.started < JOIN_TIMEOUT:
            self.host.later(0.5, self.join)
            return
        self.ready_at = self.world.now + GATHER
        self.host.later(GATHER, self.run)

    def sync(self):
        running = [peer for peer in self.peers() if peer.running]
        if running:
            self.world.exchange(self.host, self.rng.choice(running))
        self.host.later(self.rng.uniform(*SYNC), self.sync)

    def everything(self):
        metas = [("meta", name, *meta) for name, meta in self.metas.items()]
        tops = [self.claims.top(ip) for ip in self.world.ips]
        return [*metas, self.meta(), ("claims", tuple(top for top in tops if top is not None))]

    def meta(self):
        version = (self.started, self.version)
        return ("meta", self.host.name, version, self.reasons, self.left)

    def describe(self):
        """Tell the others when what this node says of itself has changed."""
        damped = self.decision is not None and bool(self.decision.damped)
        starting = self.world.now < self.ready_at
        flags = {
            "starting": starting,
            "draining": self.draining,
            "damped": damped,
            "restarting": self.restarting,
        }
        reasons = tuple(name for name, holds in flags.items() if holds)
        if reasons != self.reasons:
            self.reasons = reasons
            self.version += 1
            self.world.tell(self.host, self.meta())

    def receive(self, message):
        match message:
            case ("meta", name, version, reasons, left):
                known = self.metas.get(name)
                if name != self.host.name and (known is None or version > known[0]):
                    self.metas[name] = (version, reasons, left)
            case ("claims", claims):
                lost = [each for each in claims if not self.claims.fold(each)]
                self.moves.challenged([each for each in lost if each.held], self.world.now)
        self.run()

    def tick(self):
        now = self.world.now
        if now - self.ticked > 4 * TICK:
            self.heard = dict.fromkeys(self.heard, now)  # silence counts only while we run
        self.ticked = now
        for peer in self.peers():
            if peer.running and peer.name in self.metas:
                self.hear(peer, now)
        self.state = {name: self.judge(name, now) for name in self.metas}
        self.describe()
        if self.leaving and not self.leases and not self.busy:
            self.say_goodbye()
            return
        self.run()
        self.host.later(TICK, self.tick)

    def hear(self, peer, now):
        news = self.metas[peer.name][2] and not peer.owner.left
        if news or self.state.get(peer.name) in {"unreachable", "dead"}:
            self.host.later(self.rng.uniform(*REJOIN), lambda: self.rejoin(peer))
        if peer.name not in self.since or self.state.get(peer.name) == "dead":
            self.since[peer.name] = now
        self.heard[peer.name] = now

    def rejoin(self, peer):
        if peer.running:
            self.world.exchange(self.host, peer)

    def say_goodbye(self):
        self.left = True
        self.version += 1
        self.world.tell(self.host, self.meta())
        self.host.later(0.1, lambda: self.world.end_daemon(self.host))

    def judge(self, name, now):
        silence = now - self.heard.setdefault(name, now)
        if "restarting" in self.metas[name][1]:
            return "alive" if silence < RESTART_TIMEOUT else "dead"
        if self.metas[name][2]:
            return "left"
        if silence > self.dead_after:
            return "dead"
        if silence > self.verdict_after:
            return "unreachable"
        return "silent" if silence > self.silent_after else "alive"

    def fenced(self, now):
        """Expected are all that were ever seen, in earlier lives too, and have not left since."""
        if now - self.ticked > 4 * TICK:
            return self.view is not None and self.view.fenced  # nothing is known before a tick
        left = {name for name, meta in self.metas.items() if meta[2]}
        self.host.disk |= self.metas.keys()
        others = sorted(self.host.disk - left)
        seen = sum(
            now - self.heard.get(name, self.started + SILENT_START) <= self.fence_after
            for name in others
        )
        gateway = self.host.wire in self.world.gateways if self.world.gateway else None
        lowest = self.host.name == min([*others, self.host.name])
        sight = Sight(seen + 1, len(others) + 1, gateway, lowest)
        return fenced(self.world.policy, sight)

    # -- the controller ------------------------------------------------------------------

    def look(self):
        """The view of this moment; the same object if nothing changed."""
        now, observed = self.world.now, self.host.observe()
        signature = (
            self.egresses,
            tuple(sorted(self.state.items())),
            tuple(sorted((name, meta[1:]) for name, meta in self.metas.items())),
            (now >= self.ready_at, self.fenced(now), self.draining, self.reasons),
            tuple(sorted(each.binding.key for each in observed.bound)),
            self.claims.version,
            self.decision is not None and self.decision.mute,
        )
        if signature != self.signature or now >= self.election.again:
            self.signature = signature
            self.view = self.new_view(observed, now)
        return self.view

    def new_view(self, observed, now):
        candidates = self.candidates()
        silent = frozenset(n for n, s in self.state.items() if s == "silent")
        missing = silent | {n for n, each in candidates.items() if each.restarting}
        lost = {n: self.heard[n] for n, s in self.state.items() if s in {"unreachable", "silent"}}
        return View(
            egresses=self.egresses,
            assignments=self.election.update(self.egresses, candidates, self.claims, Rules(), now),
            claims=self.claims,
            candidates=candidates,
            places={ip: Placement(ETH) for each in self.egresses for ip in each.ips},
            observed=observed,
            controls={ETH: self.controls()},
            ready=now >= self.ready_at,
            fenced=self.fenced(now),
            draining=self.draining,
            silent=silent,
            ahead=self.without(missing, candidates, now) if missing else {},
            takeover_not_before=not_before(lost),
        )

    def restart(self):
        """SIGUSR2: addresses live on for 30 s, the others are told, and the process goes."""
        self.restarting = True
        self.describe()
        for binding in self.leases:
            self.host.bound[binding.ip] = (binding, self.world.now + RESTART_TIMEOUT)
        self.host.later(0.1, lambda: self.world.end_daemon(self.host))

    def without(self, missing, candidates, now):
        lost = {
            name: replace(candidates[name], unreachable=True, restarting=False) for name in missing
        }
        return elect(self.egresses, {**candidates, **lost}, self.claims, Rules(), now)

    def candidates(self):
        found = {name: self.candidate(name) for name in self.metas}
        me = self.host
        found[me.name] = Candidate(
            me.name,
            reasons=tuple(each for each in self.reasons if each != "restarting"),
            healthy_since=self.started,
            macs=frozenset({me.mac}),
            labels=me.labels,
        )
        return found

    def candidate(self, name):
        state, host = self.state.get(name, "alive"), self.world.by_name[name]
        restarting = "restarting" in self.metas[name][1]
        mute = self.decision is not None and name in self.decision.mute
        return Candidate(
            name,
            present=state not in {"dead", "left"},
            left=state == "left",
            unreachable=state == "unreachable" or (restarting and mute),
            reasons=tuple(each for each in self.metas[name][1] if each != "restarting"),
            restarting=restarting and not mute,
            healthy_since=self.since.get(name, self.world.now),
            macs=frozenset({host.mac}),
            labels=host.labels,
        )

    def controls(self):
        alive = [name for name, state in sorted(self.state.items()) if state == "alive"]
        gateway = (self.world.gateway_address,) if self.world.gateway else ()
        return (*gateway, *(self.world.by_name[name].address for name in alive))

    def run(self):
        """One round, unless one is under way; then another follows it."""
        if self.busy:
            self.again = True
            return
        self.lapse()
        view = self.look()
        decision = self.decision = self.moves.consider(view, self.world.now)
        self.publish(decision.publish)
        for question in decision.asks:
            self.world.ask(self.host, question)
        self.follow(decision.desired)
        steps = plan(decision.desired, view.observed)
        if steps:
            self.busy = True
            self.host.later(self.rng.uniform(0.0005, 0.003), lambda: self.unbind(steps, decision))
        self.set_alarm(decision.deadline)

    def set_alarm(self, deadline):
        self.alarm = number = next(self.alarms)
        delay = max(0.0, deadline - self.world.now)
        self.host.later(delay, lambda: self.run() if number == self.alarm else None)

    def follow(self, desired):
        """Renew what an earlier life left, and nothing that is not wanted any more."""
        for binding in sorted(desired - self.leases.keys()):
            if self.host.has(binding.ip):
                self.host.put(binding)
                self.leases[binding] = self.world.now
        for binding in sorted(self.leases.keys() - desired):
            del self.leases[binding]

    def unbind(self, steps, decision):
        for step in steps:
            if isinstance(step, Unbind):
                self.host.take_away(step.binding)
        self.host.later(self.rng.uniform(0.0005, 0.005), lambda: self.bind(steps, decision))

    def bind(self, steps, decision):
        now = self.world.now
        late = {each for each, by in decision.bind_by.items() if now > by}
        for step in steps:
            if isinstance(step, Bind) and step.binding not in late:
                self.host.put(step.binding)
                self.leases[step.binding] = now
        outcome = Outcome(
            done=tuple(step for step in steps if step.binding not in late),
            failed=tuple(Failure(step, 0, "too late") for step in steps if step.binding in late),
        )
        self.host.later(self.rng.uniform(0.0001, 0.001), lambda: self.finish(outcome))

    def finish(self, outcome):
        self.busy = self.again = False
        self.publish(self.moves.applied(outcome, self.world.now, self.world.now))
        self.run()

    def publish(self, claims):
        for claim in claims:
            self.claims.fold(claim)
        if claims:
            self.world.tell(self.host, ("claims", tuple(claims)))

    # -- the keeper ----------------------------------------------------------------------

    def lapse(self):
        now = self.world.now
        late = [
            each
            for each, last in self.leases.items()
            if now - last >= LATE
            or (now - last > RENEW + LOOK_AFTER and not self.host.has(each.ip))
        ]
        for binding in late:
            del self.leases[binding]
            self.host.take_away(binding)
        if late:
            self.moves.lapsed(late, self.world.now)

    def keep(self):
        self.lapse()
        for binding in self.leases:
            self.host.put(binding)
            self.leases[binding] = self.world.now
        self.host.later(RENEW, self.keep)
