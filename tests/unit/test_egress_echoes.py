"""Telling our own echoes from what others did."""

from egress.echoes import EXPECTED_MAX, MEMORY, Echoes
from egress.model import PROTOCOL
from egress.rtnetlink import IFA_F_DADFAILED, Address

US, OTHER = 4711, 815
V4, V6 = bytes([10, 0, 0, 60]), bytes([0xFD] + [0] * 14 + [1])


def event(packed, *, gone=False, mark=PROTOCOL, pid=0, flags=0):
    return Address(3, packed, packed, 8 * len(packed), flags, mark, 3.0, gone, pid)


def test_an_ipv4_event_is_ours_when_our_socket_asked_for_it():
    echoes = Echoes(US, marks=True)

    assert echoes.recognises(event(V4, pid=US), 0.0)
    assert echoes.recognises(event(V4, pid=US, gone=True), 0.0)
    assert not echoes.recognises(event(V4, pid=OTHER, gone=True), 0.0)


def test_an_ipv4_address_that_ran_out_is_news():
    assert not Echoes(US, marks=True).recognises(event(V4, gone=True), 0.0)


def test_a_new_ipv6_address_with_our_mark_is_an_echo_and_without_it_is_news():
    echoes = Echoes(US, marks=True)

    assert echoes.recognises(event(V6), 0.0)
    assert not echoes.recognises(event(V6, mark=0), 0.0)


def test_our_address_that_fails_duplicate_detection_is_news():
    assert not Echoes(US, marks=True).recognises(event(V6, flags=IFA_F_DADFAILED), 0.0)


def test_a_deletion_of_ipv6_is_ours_once_for_each_that_was_sent():
    echoes = Echoes(US, marks=True)
    echoes.expect([(V6, 3)], gone=True, now=0.0)

    assert echoes.recognises(event(V6, gone=True), 0.1)
    assert not echoes.recognises(event(V6, gone=True), 0.2)


def test_a_deletion_that_the_kernel_refused_is_not_waited_for():
    echoes = Echoes(US, marks=True)
    echoes.expect([(V6, 3)], gone=True, now=0.0)
    echoes.retract((V6, 3), gone=True)

    assert not echoes.recognises(event(V6, gone=True), 0.1)


def test_an_echo_that_does_not_come_is_forgotten():
    echoes = Echoes(US, marks=True)
    echoes.expect([(V6, 3)], gone=True, now=0.0)

    assert not echoes.recognises(event(V6, gone=True), MEMORY + 0.1)


def test_without_marks_a_renewal_is_known_by_what_was_sent():
    echoes = Echoes(US, marks=False)
    echoes.expect([(V6, 3)], gone=False, now=0.0)

    assert echoes.recognises(event(V6, mark=0), 0.1)
    assert not echoes.recognises(event(V6, mark=0), 0.2)


def test_only_so_many_echoes_are_waited_for():
    echoes = Echoes(US, marks=True)
    keys = [(number.to_bytes(16, "big"), 3) for number in range(EXPECTED_MAX + 2)]
    echoes.expect(keys, gone=True, now=0.0)

    assert not echoes.recognises(event(keys[0][0], gone=True), 0.1)
    assert echoes.recognises(event(keys[-1][0], gone=True), 0.1)
