"""A desk that behaves: it drains, reloads and refuses as a daemon would, without a cluster."""

import asyncio

from agent.desk import EXIT_USAGE, DeskError

AT = "2026-01-02T03:04:05.678Z"


def member(name, state="alive", *, local=False, reasons=()):
    return {
        "name": name,
        "address": f"192.0.2.{10 + ord(name[-1]) % 100}",
        "port": 7955,
        "state": state,
        "incarnation": 1,
        "local": local,
        "rtt_seconds": None if local else 0.0012,
        "eligible": not reasons,
        "reasons": list(reasons),
        "labels": {"role": "edge"},
        "config_digest": "aabbccdd00112233",
        "version": "0.1.0",
        "since": AT,
    }


def egress(name, ip, owner, *, local=False, state="assigned", reason=None):
    return {
        "name": name,
        "ip": ip,
        "family": 6 if ip and ":" in ip else 4,
        "pool": None,
        "owner": owner,
        "standby": "n3",
        "state": state,
        "reason": reason,
        "epoch": 4,
        "since": AT,
        "local": local,
        "interface": "eth0" if local else None,
    }


def move(ip, origin, *, cause="node_dead", to="n1"):
    times = {"detect": 0.41, "elect": 0.0, "check": 0.15, "bind": 0.004, "announce": 0.001}
    return {
        "at": AT,
        "ip": ip,
        "name": "billing",
        "from": origin,
        "to": to,
        "cause": cause,
        "phases": {f"{name}_seconds": seconds for name, seconds in times.items()},
        "total_seconds": 0.565,
    }


def pictured(name):
    return {
        "kind": "member",
        "name": name,
        "present": True,
        "left": False,
        "unreachable": False,
        "restarting": False,
        "reasons": [],
        "weight": 1.0,
        "capacity": None,
        "labels": {},
        "well_seconds": 100.0,
        "networks": [],
        "addresses": [],
    }


def carried(name, ip, owner):
    egress = {
        "kind": "egress",
        "name": name,
        "ips": [ip],
        "labels": {},
        "expressions": [],
        "priority": 0,
        "failback": "delayed",
        "pin": None,
        "interface": None,
        "failover": True,
    }
    claim = {"kind": "claim", "ip": ip, "epoch": 3, "owner": owner, "held": True, "to": None}
    return [egress, {**claim, "seconds": 50.0}]


class FakeDesk:
    def __init__(self):
        self.draining = False
        self.drained = asyncio.Event()
        self.drain_seconds = None
        self.restart_seconds = None
        self.generation = 1
        self.reloads = []
        self.unready = []
        self.handover = 0.0
        self.keyed = []
        self.keyless = {}
        self.patience = 20
        self.pictured = [
            *map(pictured, ("n1", "n2")),
            *carried("billing", "192.0.2.40", "n1"),
            *carried("other", "192.0.2.99", "n2"),
        ]
        self.moves = [move("192.0.2.40", None, cause="start"), move("192.0.2.41", "n2")]
        self.rows = [
            egress("billing", "192.0.2.40", "n1", local=True),
            egress("billing", "2001:db8::40", "n1", local=True),
            egress("partner", "192.0.2.41", None, state="conflict", reason="02:00:00:00:00:99"),
        ]

    def status(self):
        owned = 0 if self.draining else 2
        return {
            "node": {
                "name": "n1",
                "address": "192.0.2.11",
                "cluster": "wayout",
                "version": "0.1.0",
                "pid": 4711,
                "state": "draining" if self.draining else "ready",
                "uptime_seconds": 93784.5,
                "eligible": not self.draining,
                "ineligible_reasons": ["draining"] if self.draining else [],
                "health_score": 0,
            },
            "members": {"alive": 2, "suspect": 1, "dead": 0, "left": 0},
            "egress": {
                "total": 3,
                "owned": owned,
                "assigned": 2,
                "unassigned": 0,
                "conflicts": 1,
            },
            "config": self.config_status(),
        }

    def members(self):
        return [
            member("n1", local=True),
            member("n2", "suspect"),
            member("n3", reasons=["no_carrier"]),
        ]

    def egress_list(self):
        return list(self.rows)

    def egress_explain(self, name):
        if name not in {row["name"] for row in self.rows}:
            raise LookupError(name)
        return {
            "name": name,
            "owner": "n1",
            "rule": "sticky",
            "candidates": [
                {"name": "n1", "eligible": True, "score": 0.9, "reasons": []},
                {"name": "n3", "eligible": False, "score": 0.1, "reasons": ["no_carrier"]},
            ],
        }

    def history(self, limit):
        return self.moves[-limit:] if limit else []

    def remarks(self):
        last = next((each for each in reversed(self.moves) if each["from"]), None)
        return {"last_failover": last, "drain_seconds": self.drain_seconds}

    async def history_after(self, count, limit):
        if count is None:
            return {"count": len(self.moves), "moves": []}
        while len(self.moves) <= count and self.patience > 0:
            self.patience -= 1
            await asyncio.sleep(0.05)
        return {"count": len(self.moves), "moves": self.moves[count:][-limit:]}

    async def picture(self):
        rules = {"kind": "rules", "node": "n1", "seed": ""}
        return [{**rules, "load_factor": 1.1, "failback_delay": 30.0}, *self.pictured]

    def more_egresses(self, count):
        for number in range(count):
            self.pictured += carried(f"more-{number}", f"198.51.100.{number}", "n1")

    def ready(self):
        return not self.unready, list(self.unready)

    async def drain(self, *, wait, seconds):
        self.draining = True
        self.drained.set()
        self.drain_seconds = seconds
        if wait:
            await asyncio.sleep(self.handover)
        carried = [] if wait else ["192.0.2.40", "2001:db8::40"]
        return {"draining": True, "carried": carried, "seconds": seconds}

    async def undrain(self):
        self.draining = False
        return {"draining": False}

    async def restart_prepare(self, seconds):
        self.restart_seconds = seconds
        return {"seconds": seconds, "kept_seconds": 30.0}

    async def reload(self, *, trigger, wait, dry_run, allow_removal, timeout):  # noqa: ASYNC109
        self.reloads.append((trigger, wait, dry_run, allow_removal, timeout))
        self.generation += not dry_run
        return {"result": "applied", "errors": [], "changes": []}

    def config_show(self, *, which, origin, changed_only):
        if which == "configured" and origin:
            raise DeskError("the file cannot be read", EXIT_USAGE)
        node = {"name": "n1"} if changed_only else {"name": "n1", "cluster": "wayout"}
        return {"version": 1, "node": node}

    def config_status(self):
        return {
            "generation": self.generation,
            "digest": "aabbccdd00112233",
            "stale": False,
            "pending_restart": [],
            "last_reload": {"at": AT, "trigger": "signal", "result": "applied", "errors": []},
        }

    def config_drift(self):
        rows = [("aabbccdd00112233", ["n1", "n2"]), ("ffbbccdd00112233", ["n3"])]
        groups = [
            {
                "digest": digest,
                "majority": len(names) > 1,
                "local": len(names) > 1,
                "count": len(names),
                "members": [
                    {
                        "name": name,
                        "local": name == "n1",
                        "state": "ok",
                        "agreement": "agrees" if len(names) > 1 else "differs",
                        "generation": 7,
                        "digest": digest,
                        "node_digest": digest,
                        "version": "0.1.0",
                        "since": AT,
                        "age_seconds": 300.0,
                    }
                    for name in names
                ],
            }
            for digest, names in rows
        ]
        return {
            "drift": True,
            "converging": False,
            "all_ok": False,
            "grace_seconds": 120.0,
            "groups": groups,
        }

    async def config_peer(self, name):
        if name != "n2":
            raise DeskError(f"there is no wayout member {name!r}", EXIT_USAGE)
        return {
            "name": name,
            "version": "0.1.0",
            "digest": "aabbccdd00112233",
            "node_digest": "aabbccdd00112233",
            "generation": 3,
            "settings": {"version": 1, "node": {"name": "n2"}, "gossip": {"fanout": 5}},
        }

    async def keyring_list(self):
        key = {"fingerprint": "sha256:00112233", "used_by": ["n1"]}
        accepting = {"accepted_by": ["n1"], "missing_on": []}
        return {
            "encryption": "required",
            "file": "/etc/wayout/keys/gossip.keys",
            "keys": [key | accepting],
            "members": [
                {"name": "n1", "answered": True, "uses": key["fingerprint"], "accepts": []},
                {"name": "n2", "answered": False, "uses": None, "accepts": []},
            ],
            "foreign": ["s1"],
        }

    async def keyring_change(self, *, operation, key, node, force):
        if key == "bad":
            raise DeskError("this is no base64 key: 'wayout keygen' makes one", EXIT_USAGE)
        self.keyed.append((operation, key, node, force))
        return {
            "operation": operation,
            "fingerprint": "sha256:00112233",
            "done": ["n1"],
            "failed": self.keyless,
            "foreign": [],
        }
