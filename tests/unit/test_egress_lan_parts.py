"""The parts of asking and telling that need no socket."""

from ipaddress import ip_address, ip_network

from hypothesis import given
from hypothesis import strategies as st

from egress import packets, speech
from egress.inquiry import ANSWERS_MAX, Round
from egress.model import Binding, Interface, Question
from egress.repeats import BURST, RATE, Repeats

OWN, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"
IP4, IP6 = ip_address("10.77.0.60"), ip_address("2001:db8:77::60")
HERE = Interface(
    "eth0",
    2,
    OWN,
    carrier=True,
    networks=(ip_network("10.0.0.0/8"), ip_network("10.77.0.0/24"), ip_network("fe80::/64")),
    addresses=(ip_address("10.1.1.1"), ip_address("10.77.0.1"), ip_address("fe80::1")),
)


def binding(number, interface="eth0"):
    return Binding(ip_address(0x0A4D0000 + number), interface)


def test_a_probe_names_no_sender_and_so_changes_no_cache():
    for frame in speech.probe(IP4, OWN, HERE):
        assert packets.read(frame).probe


def test_solicitations_take_turns_between_two_forms():
    first, second = speech.probe(IP6, OWN, HERE)

    assert packets.read(first).sender == ip_address("fe80::1")
    assert packets.read(second).probe


def test_without_a_link_local_address_a_solicitation_has_no_sender():
    bare = Interface("eth0", 2, OWN, carrier=True)

    for where in (bare, None):
        assert all(packets.read(frame).probe for frame in speech.probe(IP6, OWN, where))


def test_a_control_is_asked_from_our_own_address_of_its_subnet():
    (frame, _) = speech.request(ip_address("10.77.0.254"), OWN, HERE)
    assert packets.read(frame).sender == ip_address("10.77.0.1")

    (frame, _) = speech.request(ip_address("10.3.0.254"), OWN, HERE)
    assert packets.read(frame).sender == ip_address("10.1.1.1")

    (frame, _) = speech.request(ip_address("192.0.2.1"), OWN, HERE)
    assert packets.read(frame).probe


def test_an_advertisement_without_the_override_flag_is_a_proxys():
    frame = packets.advertisement(OTHER, IP6)
    meek = bytearray(frame)
    meek[58] &= ~0x20

    assert not speech.by_proxy(frame)
    assert speech.by_proxy(bytes(meek))
    assert not speech.by_proxy(packets.arp_announcements(OTHER, IP4)[1])


def test_an_answer_to_us_is_told_from_one_to_everybody():
    request, _ = packets.arp_announcements(OTHER, IP4)
    reply = bytes.fromhex(OWN.replace(":", "")) + request[6:]

    assert speech.to_asker(reply, frozenset({OWN}))
    assert not speech.to_asker(reply, frozenset({OTHER}))
    assert not speech.to_asker(request, frozenset({OWN}))


PLACE = ("eth0", IP4)


def asked(*controls, own=frozenset({OWN})):
    return Round([Question(IP4, "eth0", controls)], own, 1.0)


def reply_of(asking):
    (reply,) = asking.replies(1.2)
    return reply


def test_a_round_collects_all_others_and_not_ourselves():
    asking = asked()
    for mac in (OWN, OTHER, OTHER):
        asking.claimed(PLACE, mac)
        asking.probed(PLACE, mac)
    asking.claimed(("eth1", IP4), "02:00:00:00:00:03")
    asking.claimed(("eth0", IP6), "02:00:00:00:00:04")

    reply = reply_of(asking)

    assert reply.macs == reply.rivals == {OTHER}
    assert (reply.control, reply.asked, reply.heard) == (None, 1.0, 1.2)


def test_a_control_counts_only_if_there_is_one():
    asking = asked(IP6)
    asking.answered(PLACE)
    assert reply_of(asking).control is False

    asking.answered(("eth0", IP6))
    assert reply_of(asking).control is True


def test_a_control_that_many_questions_share_is_asked_once():
    questions = [Question(binding(number).ip, "eth0", (IP6,)) for number in range(9)]
    asking = Round(questions, frozenset(), 0.0)

    assert asking.controls == (("eth0", IP6),)
    asking.answered(("eth0", IP6))
    assert all(reply.control for reply in asking.replies(0.1))


def test_carrier_must_have_been_there_all_the_while():
    asking = asked()
    assert reply_of(asking).carrier

    asking.dark("eth0")
    assert not reply_of(asking).carrier


def test_a_flood_of_answers_is_bounded():
    asking = asked()
    for number in range(1000):
        asking.claimed(PLACE, f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}")

    assert len(reply_of(asking).macs) == ANSWERS_MAX


def test_a_repeat_that_waits_is_not_queued_twice():
    repeats = Repeats()
    repeats.add([binding(1)])
    repeats.add([binding(1), binding(2)])

    assert repeats.take(0.0) == [binding(1), binding(2)]
    assert not repeats


def test_what_is_dropped_is_not_repeated():
    repeats = Repeats()
    repeats.add([binding(1), binding(2, "eth1")])
    repeats.drop([binding(1), binding(3)])

    assert repeats.take(0.0) == [binding(2, "eth1")]


@given(
    st.integers(1, 300),
    st.lists(st.floats(0.01, 1.0), min_size=1, max_size=30),
    st.sampled_from([1, 2]),
)
def test_no_link_gets_more_packets_than_its_rate(count, pauses, links):
    repeats = Repeats()
    for link in range(links):
        repeats.add(binding(number, f"eth{link}") for number in range(count))
    now, sent = 0.0, dict.fromkeys((f"eth{link}" for link in range(links)), 0)

    for pause in (0.0, *pauses):
        now += pause
        for each in repeats.take(now):
            sent[each.interface] += 2
        assert all(packets_ <= BURST + RATE * now + 1e-6 for packets_ in sent.values())

    assert all(each >= min(2 * count, BURST) for each in sent.values())
