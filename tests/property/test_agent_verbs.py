"""Whatever is asked at the admin socket, the answer is a document or a refusal."""

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st

from agent.desk import DeskError, encode
from agent.verbs import VERBS, Arguments, find
from support.desk import FakeDesk

names = sorted({name for verb in VERBS.values() for name in verb.takes} | {"nonsense"})
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.sampled_from(["billing", "192.0.2.40", "partner", "running", "configured"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)


def completed(coroutine):
    """What a coroutine returns, or the refusal that it raises; on a loop of its own."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(coroutine)
    except DeskError as refusal:
        return refusal
    finally:
        loop.close()


@given(
    st.sampled_from([*VERBS, "reboot", "", 7, None]),
    st.dictionaries(st.sampled_from(names), values, max_size=3),
)
def test_every_request_is_answered_or_refused(name, given_arguments):
    desk = FakeDesk()

    async def ask():
        verb = find(name, given_arguments)
        return await encode(await verb.answer(desk, Arguments(given_arguments)))

    outcome = completed(ask())

    if isinstance(outcome, DeskError):
        assert (outcome.code, bool(outcome.message)) == (2, True)
    else:
        json.loads(outcome)


@given(st.lists(st.dictionaries(st.text(max_size=3), st.integers(), max_size=2), max_size=700))
def test_a_list_written_in_slices_is_the_list(rows):
    assert json.loads(completed(encode(rows))) == rows
