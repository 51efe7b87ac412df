"""Kernel settings: effective values are read right, and each verdict names its cure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent.sysctls import LinkReading, NeighbourReading, Readings, Severity, judge, read

if TYPE_CHECKING:
    from pathlib import Path

ARP = """entries  allocs   destroys hash_grows lookups  hits     res_failed table_fulls
{entries} 00000010 00000000 00000000 00000000 00000000 00000000 {first}
{entries} 00000010 00000000 00000000 00000000 00000000 00000000 {second}
"""


def kernel(root: Path, files: dict[str, object]) -> Path:
    for name, value in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}".strip() + "\n")
    return root


def verdict(values: dict[str, int], about: str, *, links: int = 1) -> tuple[Severity, str]:
    readings = Readings(tuple(LinkReading(f"eth{n}", values) for n in range(links)))
    found = next(each for each in judge(readings) if about in each.what)
    return found.severity, found.fix


@pytest.mark.parametrize(
    ("key", "shared", "own", "effective"),
    [
        ("arp_ignore", 8, 0, 8),
        ("arp_announce", 0, 2, 2),
        ("rp_filter", 1, 2, 2),
        ("promote_secondaries", 1, 0, 1),
        ("proxy_arp", 0, 1, 1),
        ("ignore_routes_with_linkdown", 1, 0, 0),
    ],
)
def test_the_effective_value_is_read(
    tmp_path: Path, key: str, shared: int, own: int, effective: int
) -> None:
    conf = "sys/net/ipv4/conf"
    root = kernel(tmp_path, {f"{conf}/all/{key}": shared, f"{conf}/eth0/{key}": own})

    (link,) = read(["eth0"], root).links

    assert link.values == {key: effective}


def test_an_interface_that_is_gone_has_no_values(tmp_path: Path) -> None:
    readings = read(["eth7"], tmp_path)

    assert readings.links == (LinkReading("eth7", {}),)
    assert judge(readings) == ()


def test_the_neighbour_table_is_summed_over_the_processors(tmp_path: Path) -> None:
    text = ARP.format(entries="00000400", first="00000003", second="0000000a")
    files = {"net/stat/arp_cache": text, "sys/net/ipv4/neigh/default/gc_thresh3": 1024}

    (table,) = read([], kernel(tmp_path, files)).neighbours

    assert table == NeighbourReading(family=4, limit=1024, entries=1024, fulls=13)


def test_this_kernel_can_be_read() -> None:
    (link,) = read(["lo"]).links

    assert {"arp_ignore", "rp_filter", "promote_secondaries"} <= set(link.values)


@pytest.mark.parametrize(
    ("value", "severity"),
    [(0, "ok"), (1, "ok"), (2, "warning"), (8, "error")],
)
def test_arp_ignore_is_judged_by_who_gets_an_answer(value: int, severity: str) -> None:
    assert verdict({"arp_ignore": value}, "arp_ignore")[0] is Severity(severity)


def test_the_cure_of_a_larger_value_lowers_all_too() -> None:
    _, fix = verdict({"arp_ignore": 8}, "arp_ignore")

    assert (
        fix
        == "sysctl -w net.ipv4.conf.all.arp_ignore=1 && sysctl -w net.ipv4.conf.eth0.arp_ignore=1"
    )


def test_a_strict_reverse_path_bites_where_there_are_two_ways() -> None:
    assert verdict({"rp_filter": 1}, "rp_filter")[0] is Severity.NOTE
    assert verdict({"rp_filter": 1}, "rp_filter", links=2)[0] is Severity.WARNING
    assert verdict({"rp_filter": 2}, "rp_filter", links=2)[0] is Severity.OK


def test_a_proxy_on_an_egress_interface_is_warned_of() -> None:
    severity, fix = verdict({"proxy_arp": 1}, "proxy_arp")

    assert severity is Severity.WARNING
    assert "proxy_arp=0" in fix


def test_the_name_of_a_vlan_is_no_path_of_its_own() -> None:
    (found,) = judge(Readings((LinkReading("eth0.100", {"rp_filter": 1}),)))

    assert found.fix == "sysctl -w net/ipv4/conf/eth0.100/rp_filter=2"


def test_a_table_that_was_full_is_warned_of_with_the_limits_to_set() -> None:
    table = NeighbourReading(family=4, limit=1024, entries=10, fulls=3)
    (found,) = judge(Readings(neighbours=(table,)))

    assert found.severity is Severity.WARNING
    assert "net.ipv4.neigh.default.gc_thresh3=8192" in found.fix


def test_a_table_that_is_nearly_full_is_warned_of() -> None:
    crowded = NeighbourReading(family=6, limit=1000, entries=800, fulls=0)
    roomy = NeighbourReading(family=6, limit=1000, entries=799, fulls=0)

    assert [each.severity for each in judge(Readings(neighbours=(crowded, roomy)))] == [
        Severity.WARNING,
        Severity.OK,
    ]
