"""What comes out on the descriptor when the daemon and the libraries log."""

import json
import logging
import os
import re

import pytest
import structlog

from agent import logs

KEY16 = "c2VjcmV0LXNlY3JldC0xNg=="
KEY32 = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTMyISE="


class Output:
    """A pipe in place of stderr."""

    def __init__(self):
        self.reading, self.descriptor = os.pipe()
        os.set_blocking(self.reading, False)

    def text(self):
        found = b""
        while True:
            try:
                found += os.read(self.reading, 1 << 16)
            except BlockingIOError:
                return found.decode()

    def records(self):
        return [json.loads(line) for line in self.text().splitlines()]


@pytest.fixture
def output():
    """Logs as the daemon has them; everything is put back afterwards."""
    root = logging.getLogger()
    before = root.handlers[:], root.level, logging.getLogger("wayout").level
    root.handlers = []
    made = Output()
    yield made
    for handler in root.handlers[:]:
        root.removeHandler(handler)
        handler.close()
    root.handlers = before[0]
    root.setLevel(before[1])
    logging.getLogger("wayout").setLevel(before[2])
    logs.set_levels("notset")
    structlog.reset_defaults()
    os.close(made.reading)
    os.close(made.descriptor)


def test_a_record_is_one_line_of_json_with_node_time_and_level(output):
    logs.configure(node="n1", descriptor=output.descriptor)

    structlog.get_logger("wayout.gossip").info("gossip.health_changed", peer="n2", seconds=0.25)

    (record,) = output.records()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record.pop("timestamp"))
    assert record == {
        "event": "gossip.health_changed",
        "level": "info",
        "logger": "wayout.gossip",
        "node": "n1",
        "peer": "n2",
        "seconds": 0.25,
    }


def test_a_new_level_reaches_loggers_that_are_already_bound(output):
    logs.configure(descriptor=output.descriptor)
    bound = structlog.get_logger("wayout.egress").bind(ip="192.0.2.40")
    bound.debug("egress.asked")
    assert output.text() == ""

    logs.set_levels("debug")
    bound.debug("egress.asked")
    logs.set_levels("error")
    bound.warning("egress.step_failed")

    assert [record["event"] for record in output.records()] == ["egress.asked"]


def test_one_logger_may_be_louder_than_the_rest_and_falls_back_when_it_is_no_longer_named(output):
    logs.configure(descriptor=output.descriptor)
    logs.set_levels("warning", {"wayout.gossip": "debug"})
    structlog.get_logger("wayout.gossip").debug("gossip.dropped")
    structlog.get_logger("wayout.egress").info("egress.moved")
    assert [record["event"] for record in output.records()] == ["gossip.dropped"]

    logs.set_levels("warning")
    structlog.get_logger("wayout.gossip").debug("gossip.dropped")

    assert output.text() == ""


def test_libraries_come_out_in_the_same_shape_from_warning_up(output):
    logs.configure(node="n1", descriptor=output.descriptor)

    logging.getLogger("asyncio").info("polled")
    logging.getLogger("asyncio").warning("took %d ms", 250)

    (record,) = output.records()
    assert (record["event"], record["logger"], record["node"]) == ("took 250 ms", "asyncio", "n1")


def test_configuring_again_changes_the_shape_and_adds_no_second_line(output):
    logs.configure(descriptor=output.descriptor)
    logs.configure(shape="console", descriptor=output.descriptor)

    structlog.get_logger("wayout.daemon").info("daemon.ready", peer="n2")

    (line,) = output.text().splitlines()
    assert "daemon.ready" in line
    assert "peer=n2" in line
    assert "\x1b" not in line


@pytest.mark.parametrize("shape", ["json", "console"])
def test_a_traceback_has_no_locals_and_no_keys(output, shape):
    logs.configure(shape=shape, descriptor=output.descriptor)

    def fail():
        local_value = "visible-local"
        raise ValueError(f"bad key {KEY32} near {len(local_value)}")

    try:
        fail()
    except ValueError:
        structlog.get_logger("wayout.daemon").exception("daemon.failed")

    text = output.text()
    assert "ValueError" in text
    assert "fail()" in text
    assert "local_value =" not in text.replace('local_value = "visible-local"', "")
    assert KEY32 not in text
    assert "[redacted]" in text


@pytest.mark.parametrize(
    "fields",
    [
        {"token": "abc"},
        {"Password": "abc"},
        {"detail": {"keyring": ["abc"]}},
        {"keys": [KEY16]},
        {"reason": f"cannot read {KEY32}, skipped"},
        {"reason": "Authorization: Bearer eyJhbGciOi.abc.def"},
        {"reason": "-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----"},
        {"reason": ValueError(KEY16)},
    ],
)
def test_secrets_never_come_out(output, fields):
    logs.configure(descriptor=output.descriptor)

    structlog.get_logger("wayout.daemon").info("daemon.noted", **fields)

    text = output.text()
    assert "[redacted]" in text
    assert not any(secret in text for secret in ("abc", KEY16, KEY32, "eyJ"))


def test_digests_and_addresses_are_no_secrets(output):
    logs.configure(descriptor=output.descriptor)
    fields = {"digest": "aabbccdd00112233", "ip": "2001:db8::40", "mac": "02:00:00:00:00:01"}

    structlog.get_logger("wayout.daemon").info("daemon.noted", **fields)

    (record,) = output.records()
    assert fields.items() <= record.items()


def test_a_reader_that_stops_reading_holds_nothing_up_and_is_told_what_it_missed(output):
    logs.configure(descriptor=output.descriptor)
    log = structlog.get_logger("wayout.daemon")

    for number in range(1000):
        log.info("daemon.noted", number=number, padding="x" * 100)
    seen = output.records()
    log.info("daemon.noted", number=1000)
    last, remark = output.records()

    assert 0 < len(seen) < 1000
    assert last["number"] == 1000
    assert (remark["event"], remark["count"]) == ("logs.lines_dropped", 1000 - len(seen))


def test_a_long_line_arrives_whole(output):
    logs.configure(descriptor=output.descriptor)

    structlog.get_logger("wayout.daemon").info("daemon.noted", text="y" * 20_000)

    (record,) = output.records()
    assert record["text"] == "y" * 20_000


def test_a_reader_that_is_gone_is_no_error(output):
    logs.configure(descriptor=output.descriptor)
    os.close(output.reading)
    output.reading = os.open(os.devnull, os.O_RDONLY)

    structlog.get_logger("wayout.daemon").info("daemon.noted")
