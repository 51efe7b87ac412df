"""Agents of serf in the hosts of a mixed lab."""

import json

from support.mixed import PORT, eventually

PATIENCE = 30.0


def serf(lab, name, *words, seeds=()):
    """Start an agent in a host, and wait until it answers its own commands."""
    joins = [f"-join={lab.ip(seed)}:{PORT}" for seed in seeds]
    bind = f"-bind={lab.ip(name)}:{PORT}"
    agent = lab.guest(
        name, "serf", "agent", f"-node={name}", bind, "-rpc-addr=127.0.0.1:7373", *joins, *words
    )
    eventually(lambda: name in seen(lab, name), PATIENCE, f"the serf of {name} answers")
    return agent


def seen(lab, name):
    """`serf members` of a host: status by name; empty while there is no answer."""
    told = lab.network.run(name, ["serf", "members", "-format", "json"], check=False)
    try:
        return {each["name"]: each["status"] for each in json.loads(told)["members"]}
    except ValueError:
        return {}
