"""What reading a configuration costs; least of several runs, since the machine is shared."""

import time

import pytest
import yaml

from config.leaves import nested
from config.schema.settings import Settings
from support.settings import parsed


def least(action, times):
    taken = []
    for _ in range(times):
        began = time.process_time()
        action()
        taken.append(time.process_time() - began)
    return min(taken)


def test_the_values_of_a_file_are_checked_in_less_than_a_millisecond():
    values = nested(parsed("version: 1\ngossip: {seeds: [192.0.2.1, 192.0.2.2]}\n").leaves)

    # Every option written out, for some ten polls.
    assert least(lambda: [Settings.model_validate(values) for _ in range(10)], 20) < 0.01


@pytest.mark.slow
def test_a_file_of_five_thousand_lines_costs_a_few_times_what_its_yaml_does():
    text = "version: 1\negress:\n  egresses:\n" + "".join(
        f"    e{n}:\n      egress_ip: 10.1.{n // 250}.{n % 250 + 1}\n      priority: 3\n"
        f"      applied_to:\n        ip_blocks: [10.9.{n // 250}.{n % 250}/32]\n"
        for n in range(1000)
    )
    syntax = least(lambda: list(yaml.parse(text, Loader=yaml.CSafeLoader)), 3)

    assert text.count("\n") > 5000
    assert least(lambda: parsed(text), 3) < 12 * syntax
