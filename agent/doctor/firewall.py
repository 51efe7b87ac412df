"""Rules of nftables that keep gossip or ARP from this host, as far as they can be told."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from agent.sysctls import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PATIENCE = 5.0
SIZE_MAX = 32 * 1024 * 1024
HOOKS = ("input", "output")
FAMILIES = {"inet", "ip", "ip6"}


def examine(port: int) -> Iterator[Finding]:
    """What the rules of this network namespace say about the gossip port and about ARP."""
    found = _ruleset()
    if isinstance(found, Finding):
        yield found
        return
    yield from judge(found, port)


def judge(ruleset: Iterable[Mapping[str, Any]], port: int) -> Iterator[Finding]:
    """The same about rules as `nft -j list ruleset` gives them."""
    chains = [each["chain"] for each in ruleset if "chain" in each]
    rules = [each["rule"] for each in ruleset if "rule" in each]
    bad = [*_blocking(rules, port), *_closed(chains, rules, port), *_without_arp(chains, rules)]
    if bad:
        yield from bad
        return
    what = f"no rule of nftables drops port {port} or ARP"
    yield Finding(Severity.OK, what, "gossip and the wire check come through")


def _blocking(rules: Iterable[Mapping[str, Any]], port: int) -> Iterator[Finding]:
    for rule in rules:
        if _names(rule, port) and _verdict(rule) in {"drop", "reject"}:
            yield Finding(
                Severity.ERROR,
                f"a rule in {_place(rule)} drops what goes to port {port}",
                "members do not hear this node and take it for dead",
                f"nft delete rule {rule['family']} {rule['table']} {rule['chain']} handle "
                f"{rule.get('handle', '?')}",
            )


def _closed(
    chains: Iterable[Mapping[str, Any]], rules: Iterable[Mapping[str, Any]], port: int
) -> Iterator[Finding]:
    """Chains that drop what no rule lets in, where no rule speaks of the port."""
    opened = any(_names(each, port) and _verdict(each) == "accept" for each in rules)
    for chain in chains:
        closed = chain.get("policy") == "drop" and chain.get("hook") in HOOKS
        if not closed or opened or chain["family"] not in FAMILIES:
            continue
        direction = "dport" if chain["hook"] == "input" else "sport"
        yield Finding(
            Severity.WARNING,
            f"the chain {_place(chain, 'name')} drops by default, and no rule names port {port}",
            "if no other rule lets members in, they do not hear this node",
            f"nft add rule {chain['family']} {chain['table']} {chain['name']} meta l4proto "
            f"{{ tcp, udp }} th {direction} {port} accept",
        )


def _without_arp(
    chains: Iterable[Mapping[str, Any]], rules: Iterable[Mapping[str, Any]]
) -> Iterator[Finding]:
    drops = {
        (each["table"], each["chain"])
        for each in rules
        if each["family"] == "arp" and _verdict(each) in {"drop", "reject"}
    }
    for chain in chains:
        if chain["family"] != "arp" or chain.get("hook") not in HOOKS:
            continue
        if chain.get("policy") == "drop" or (chain["table"], chain["name"]) in drops:
            yield Finding(
                Severity.WARNING,
                f"the chain {_place(chain, 'name')} drops ARP",
                "if it drops requests for egress IPs, or our questions, nobody finds this node, "
                "and it may take what others have",
                "let ARP through on the interfaces of egress IPs",
            )


def _names(rule: Mapping[str, Any], port: int) -> bool:
    for each in rule.get("expr", []):
        match = each.get("match", {}) if isinstance(each, dict) else {}
        left = match.get("left", {})
        field = left.get("payload", {}).get("field") if isinstance(left, dict) else None
        if field in {"dport", "sport"} and _includes(match.get("right"), port):
            return True
    return False


def _includes(right: object, port: int) -> bool:
    match right:
        case int():
            return right == port
        case {"set": list(items)}:
            return any(_includes(each, port) for each in items)
        case {"range": [int(low), int(high)]}:
            return low <= port <= high
        case _:
            return False


def _verdict(rule: Mapping[str, Any]) -> str | None:
    for each in rule.get("expr", []):
        for word in ("accept", "drop", "reject"):
            if isinstance(each, dict) and word in each:
                return word
    return None


def _place(what: Mapping[str, Any], name: str = "chain") -> str:
    return f"{what['family']} {what['table']} {what[name]}"


def _ruleset() -> list[Mapping[str, Any]] | Finding:
    program = shutil.which("nft")
    if program is None:
        return Finding(
            Severity.NOTE,
            "the program nft is not there",
            "rules of the firewall could not be looked at",
            "apt-get install nftables, or look at the firewall yourself",
        )
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [program, "-j", "list", "ruleset"],
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )
        told = json.loads(done.stdout[:SIZE_MAX])
        return list(told["nftables"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return Finding(
            Severity.NOTE,
            "nft does not tell its rules",
            "rules of the firewall could not be looked at",
            "run it as root",
        )
