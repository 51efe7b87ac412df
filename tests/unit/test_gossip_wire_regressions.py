"""Bytes that broke a decoder once, and the recordings, go through every decoder in time."""

import time

import pytest

from support.decoders import DECODERS, LIMIT, REGRESSIONS, seeds

FOUND = sorted(path for path in REGRESSIONS.glob("*/*") if path.is_file())
TRIES = 3
"""The machine may be busy; an input that is slow is slow every time."""


def seconds(decode, data):
    began = time.process_time()
    decode(data)
    return time.process_time() - began


def fastest(decode, data):
    return min(seconds(decode, data) for _ in range(TRIES))


def test_what_broke_a_decoder_once_is_refused_or_read_in_time():
    for path in FOUND:
        assert fastest(DECODERS[path.parent.name], path.read_bytes()) < LIMIT, path


@pytest.mark.parametrize("name", DECODERS)
def test_every_decoder_takes_every_recording_in_time(name):
    for data in seeds(name):
        took = seconds(DECODERS[name], data)

        assert took < LIMIT or fastest(DECODERS[name], data) < LIMIT
