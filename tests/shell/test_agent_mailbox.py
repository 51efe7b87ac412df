"""The mailbox conflates and loses nothing that matters."""

import asyncio
from ipaddress import ip_address

from agent.inputs import ClaimsHeard, DrainWished, KernelChanged, RivalsHeard
from agent.mailbox import Mailbox
from egress.model import Claim

IP = ip_address("192.0.2.40")


async def test_the_newest_of_a_kind_wins():
    mailbox = Mailbox()
    mailbox.put(DrainWished(draining=True))
    mailbox.put(DrainWished(draining=False))

    assert await mailbox.take(None) == (DrainWished(draining=False),)


async def test_claims_of_different_owners_add_up_and_repeats_do_not():
    mailbox = Mailbox()
    for epoch in (1, 2):
        mailbox.put(ClaimsHeard((Claim(IP, epoch, "a", held=True),)))
    mailbox.put(ClaimsHeard((Claim(IP, 1, "b", held=True),)))

    (heard,) = await mailbox.take(None)

    assert {(claim.owner, claim.epoch) for claim in heard.claims} == {("a", 2), ("b", 1)}


async def test_rivals_of_different_addresses_add_up():
    other = ip_address("192.0.2.41")
    mailbox = Mailbox()
    mailbox.put(RivalsHeard({IP: "02:00:00:00:00:01"}))
    mailbox.put(RivalsHeard({other: "02:00:00:00:00:02"}))

    assert await mailbox.take(None) == (
        RivalsHeard({IP: "02:00:00:00:00:01", other: "02:00:00:00:00:02"}),
    )


async def test_a_take_ends_at_its_deadline_with_nothing():
    mailbox = Mailbox()

    assert await mailbox.take(asyncio.get_running_loop().time() + 0.01) == ()


async def test_what_was_put_before_is_taken_even_when_the_deadline_has_passed():
    mailbox = Mailbox()
    mailbox.put(KernelChanged())

    assert await mailbox.take(None) == (KernelChanged(),)
    assert await mailbox.take(asyncio.get_running_loop().time() - 1.0) == ()
