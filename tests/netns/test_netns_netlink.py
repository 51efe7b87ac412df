"""Addresses of a real kernel: put there with a lease, watched, and lost as they should be."""

import asyncio
import contextlib
import errno
import shlex
import socket
import sys
import time
from ipaddress import ip_address

import pytest

from egress.model import Binding
from egress.netlink import Netlink
from egress.watch import SO_RCVBUFFORCE
from support.namespaces import Segment

pytestmark = [pytest.mark.netns]

LEASE = 2.0
V4 = Binding(ip_address("10.77.0.60"), "eth0")
V6 = Binding(ip_address("2001:db8:77::60"), "eth0")


@pytest.fixture
def segment():
    with Segment("a", "b") as segment:
        yield segment


@pytest.fixture
def host(segment):
    return segment["a"]


@pytest.fixture
async def kernel(host):
    with host.entered():
        netlink = Netlink()
    yield netlink
    netlink.close()


async def bound(kernel, binding):
    observed = await kernel.observe()
    return next((each for each in observed.bound if each.binding == binding), None)


def words(host, binding):
    """What iproute2 says about an address."""
    return set(host.run(f"ip addr show to {binding.ip}").split())


async def wakes(kernel, within):
    """Whether changed() returns in time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within):
            await kernel.changed()
            return True
    return False


async def quiet(kernel):
    """Let everything that has happened be heard and forgotten."""
    while await wakes(kernel, 0.1):
        pass


async def test_a_bound_address_wears_our_mark_and_a_lifetime(kernel, host):
    assert await kernel.bind([V4, V6], 30) == {}

    for binding in (V4, V6):
        there = await bound(kernel, binding)
        assert there.ours
        assert there.usable
        assert there.prefix == binding.ip.max_prefixlen
        assert 28 <= there.valid <= 30
    assert {"nodad", "deprecated", "noprefixroute"} <= words(host, V6)


async def test_what_was_bound_is_gone_when_its_holder_stops_renewing(kernel):
    await kernel.bind([V4, V6], LEASE)
    await asyncio.sleep(LEASE / 2)
    await kernel.renew([V4, V6], LEASE)
    renewed = time.monotonic()

    await asyncio.sleep(LEASE - 0.3)
    observed = await kernel.observe()
    assert observed.ours == {V4, V6}

    await asyncio.sleep(renewed + LEASE + 1.3 - time.monotonic())
    observed = await kernel.observe()
    assert observed.ours == frozenset()


async def test_binding_twice_and_unbinding_twice_are_no_errors(kernel):
    assert await kernel.bind([V4, V6], 30) == {}
    assert await kernel.bind([V4, V6], 60) == {}
    assert (await bound(kernel, V4)).valid > 50

    assert await kernel.unbind([V4, V6]) == {}
    assert await kernel.unbind([V4, V6]) == {}
    assert (await kernel.observe()).ours == frozenset()


async def test_what_another_hand_has_put_there_is_refused_and_left_alone(kernel, host):
    host.run(f"ip addr add {V4.ip}/32 dev eth0")
    host.run(f"ip addr add {V6.ip}/64 dev eth0 nodad")

    failed = await kernel.bind([V4, V6], 30)

    assert {binding: error.errno for binding, error in failed.items()} == {
        V4: errno.EEXIST,
        V6: errno.EEXIST,
    }
    assert "another program has put 10.77.0.60 on eth0" in failed[V4].message
    assert (await bound(kernel, V4)).valid is None


async def test_a_foreign_address_with_another_prefix_survives_our_unbinding(kernel, host):
    host.run(f"ip addr add {V4.ip}/24 dev eth0")
    await kernel.bind([V4], 30)

    await kernel.unbind([V4])

    there = await bound(kernel, V4)
    assert (there.prefix, there.ours) == (24, False)


async def test_a_foreign_replace_strips_mark_and_lifetime_and_a_renewal_puts_them_back(
    kernel, host
):
    await kernel.bind([V4, V6], 30)
    host.run(f"ip addr replace {V4.ip}/32 dev eth0")
    host.run(f"ip addr replace {V6.ip}/128 dev eth0")

    for binding in (V4, V6):
        there = await bound(kernel, binding)
        assert (there.ours, there.valid) == (False, None)

    await kernel.renew([V4, V6], 30)
    for binding in (V4, V6):
        there = await bound(kernel, binding)
        assert there.ours
        assert there.valid <= 30
    assert {"nodad", "deprecated", "noprefixroute"} <= words(host, V6)


async def test_an_address_that_lost_its_mark_is_bound_again(kernel, host):
    await kernel.bind([V4], 30)
    kernel.trust([V6])  # A predecessor has bound that one.
    host.run(f"ip addr replace {V4.ip}/32 dev eth0")
    host.run(f"ip addr add {V6.ip}/128 dev eth0 nodad")

    assert await kernel.bind([V4, V6], 30) == {}

    assert (await kernel.observe()).ours == {V4, V6}


async def test_an_address_that_was_released_is_trusted_no_more(kernel, host):
    await kernel.bind([V4], 30)
    await kernel.unbind([V4])
    host.run(f"ip addr add {V4.ip}/32 dev eth0")

    assert list(await kernel.bind([V4], 30)) == [V4]


async def test_a_release_in_the_middle_of_a_train_of_renewals_holds(kernel):
    many = [Binding(ip_address(0x0A4E0000 + number), "eth0") for number in range(600)]
    await kernel.bind(many, 30)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(kernel.renew(many, 30))
        await asyncio.sleep(0)
        await kernel.unbind(many[300:])

    assert (await kernel.observe()).ours == set(many[:300])


async def test_an_address_of_ours_that_failed_duplicate_detection_is_healed(kernel, segment):
    here, there = segment["a"], segment["b"]
    there.run(f"ip addr add {V6.ip}/128 dev eth0 nodad")
    here.run(f"ip addr add {V6.ip}/128 dev eth0")
    for _ in range(50):
        await asyncio.sleep(0.1)
        if "dadfailed" in words(here, V6):
            break
    await kernel.renew([V6], 30)
    assert (await bound(kernel, V6)).ours
    assert not (await bound(kernel, V6)).usable

    assert await kernel.bind([V6], 30) == {}

    assert (await bound(kernel, V6)).usable


async def test_an_ipv6_egress_address_never_becomes_the_source_of_the_host(kernel, host):
    host.run("ip -6 route add default via 2001:db8:77::2")
    for number in range(8):
        six = Binding(ip_address(f"2001:db8:77::f{number:x}"), "eth0")
        await kernel.bind([six], 30)
        await kernel.renew([six], 30)

        for target in ("2001:db8:ffff::1", "2001:db8:77::2", "2001:db8:77::f8"):
            assert f"src {host.ip6} " in host.run(f"ip -6 route get {target}")


async def test_missing_links_are_named_and_do_not_hinder_the_others(kernel):
    nowhere = Binding(ip_address("10.77.0.61"), "eth7")

    failed = await kernel.bind([nowhere, V4], 30)

    assert [error.errno for error in failed.values()] == [errno.ENODEV]
    assert "there is no interface eth7" in failed[nowhere].message
    assert (await kernel.observe()).ours == {V4}
    assert await kernel.unbind([nowhere]) == {}


async def test_ipv6_that_is_switched_off_is_explained(kernel, host):
    host.run("sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1")

    failed = await kernel.bind([V6], 30)

    assert "net.ipv6.conf.eth0.disable_ipv6=0" in failed[V6].message


async def test_a_train_of_hundreds_names_exactly_those_that_failed(kernel, host):
    many = [Binding(ip_address(0x0A4E0000 + number), "eth0") for number in range(300)]
    for taken in (many[0], many[100], many[299]):
        host.run(f"ip addr add {taken.ip}/32 dev eth0")

    failed = await kernel.bind(many, 30)

    assert list(failed) == [many[0], many[100], many[299]]
    assert len((await kernel.observe()).ours) == 297


async def test_the_networks_of_an_interface_leave_our_addresses_out(kernel, host):
    await kernel.bind([V4, V6], 30)

    (eth0,) = [each for each in (await kernel.observe()).interfaces if each.name == "eth0"]

    assert [str(each) for each in eth0.networks] == [
        "10.77.0.0/24",
        "2001:db8:77::/64",
        "fe80::/64",
    ]
    assert ip_address(host.ip4) in eth0.addresses
    assert V4.ip not in eth0.addresses
    assert (eth0.mac, eth0.kind, eth0.master) == (host.mac, "veth", None)


async def test_an_enslaved_interface_names_its_master(kernel, host):
    host.run("ip link add brx type bridge")
    host.run("ip link set eth0 master brx")

    by_name = {each.name: each for each in (await kernel.observe()).interfaces}

    assert by_name["eth0"].master == "brx"
    assert by_name["brx"].kind == "bridge"


async def test_an_unplugged_link_has_no_carrier_and_wakes_us(kernel, segment):
    await quiet(kernel)
    segment.unplug("a")

    assert await wakes(kernel, 1.0)
    (eth0,) = [each for each in (await kernel.observe()).interfaces if each.name == "eth0"]
    assert not eth0.carrier


async def test_a_foreign_deletion_wakes_us(kernel, host):
    await kernel.bind([V4, V6], 30)
    await quiet(kernel)

    host.run(f"ip addr del {V4.ip}/32 dev eth0")
    assert await wakes(kernel, 1.0)

    await quiet(kernel)
    host.run(f"ip addr del {V6.ip}/128 dev eth0")
    assert await wakes(kernel, 1.0)


async def test_a_foreign_replace_wakes_us(kernel, host):
    await kernel.bind([V4, V6], 30)
    for binding in (V4, V6):
        await quiet(kernel)
        host.run(f"ip addr replace {binding.ip}/{binding.ip.max_prefixlen} dev eth0")

        assert await wakes(kernel, 1.0)


async def test_what_we_do_ourselves_does_not_wake_us(kernel):
    await quiet(kernel)

    await kernel.bind([V4, V6], 30)
    await kernel.renew([V4, V6], 30)
    await kernel.unbind([V4])
    await kernel.unbind([V6, V6])
    await kernel.bind([V4, V6], 30)
    await kernel.renew([V4, V6], 30)

    assert not await wakes(kernel, 0.5)


async def test_a_foreign_deletion_after_our_own_still_wakes_us(kernel, host):
    await kernel.bind([V6], 30)
    await kernel.unbind([V6])
    await kernel.bind([V6], 30)
    await quiet(kernel)

    host.run(f"ip addr del {V6.ip}/128 dev eth0")

    assert await wakes(kernel, 1.0)


async def test_an_address_that_ran_out_wakes_us(kernel):
    for binding in (V4, V6):
        await kernel.bind([binding], 1)
        await quiet(kernel)

        assert await wakes(kernel, 2.5)


def drain(listener):
    for _ in range(10000):
        listener.recv(65536)


async def test_events_that_got_lost_count_as_a_change(kernel, host):
    kernel._watch._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4096)
    await quiet(kernel)

    # The loop is held meanwhile, so that nothing is read.
    host.feed("ip -batch -", "\n".join(f"addr add 10.78.0.{n}/32 dev eth0" for n in range(256)))
    with pytest.raises(OSError, match="No buffer space"):
        drain(kernel._watch._socket)
    host.feed("ip -batch -", "\n".join(f"addr del 10.78.0.{n}/32 dev eth0" for n in range(256)))
    assert await wakes(kernel, 1.0)

    await quiet(kernel)
    host.run(f"ip addr del {host.ip4}/24 dev eth0")
    assert await wakes(kernel, 1.0)


WITHOUT_RIGHTS = """
import asyncio
from ipaddress import ip_address
from egress.model import Binding
from egress.netlink import Netlink

async def main():
    netlink = Netlink()
    there = await netlink.observe()
    failed = await netlink.bind([Binding(ip_address("10.77.0.60"), "eth0")], 3)
    print(len(there.interfaces), *(error.message for error in failed.values()))
    netlink.close()

asyncio.run(main())
"""


async def test_without_the_capability_we_can_look_and_the_refusal_names_it(host):
    argv = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"]
    argv += [sys.executable, "-c", WITHOUT_RIGHTS]

    said = host.run(shlex.join(argv))

    assert said.startswith("2 ")
    assert "CAP_NET_ADMIN" in said
