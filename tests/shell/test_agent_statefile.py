"""The state file across restarts, broken disks and broken files."""

import asyncio
import json
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from agent.statefile import SIZE_LIMIT, State, StateFile, _from_text, _to_text
from egress.model import Binding

FULL = State(
    bound=frozenset(
        {
            Binding(ip_address("192.0.2.40"), "eth0"),
            Binding(ip_address("2001:db8::40"), "eth0"),
            Binding(ip_address("192.0.2.40"), "eth1"),
        }
    ),
    members=frozenset({"n1", "n2", "n3"}),
    draining=True,
    drain_until=1_700_000_000.5,
)

states = st.builds(
    State,
    bound=st.frozensets(
        st.builds(Binding, st.ip_addresses(), st.sampled_from(["eth0", "bond0.120"])), max_size=5
    ),
    members=st.frozensets(st.text(min_size=1, max_size=20), max_size=5),
    draining=st.booleans(),
    drain_until=st.none() | st.floats(min_value=0, max_value=1e11),
)


@given(states)
def test_what_is_written_is_what_is_read(state):
    assert _from_text(_to_text(state, "b1"), "b1") == state


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["version", "bound", "members", "drain"]), inner, max_size=4
            )
        ),
    ).map(lambda value: json.dumps(value).encode())
)
def test_any_other_bytes_are_a_state_or_a_value_error_and_nothing_worse(raw):
    try:
        state = _from_text(raw, "b1")
    except ValueError:
        state = State()

    assert isinstance(state, State)


async def test_a_successor_finds_what_was_saved(tmp_path):
    assert await StateFile(tmp_path / "made").save(FULL)

    assert await StateFile(tmp_path / "made").load() == FULL
    assert [each.name for each in (tmp_path / "made").iterdir()] == ["state.json"]


async def test_after_a_boot_no_address_is_ours_but_a_drain_still_is(tmp_path):
    await StateFile(tmp_path, boot="b1").save(FULL)

    found = await StateFile(tmp_path, boot="b2").load()

    assert found.bound == frozenset()
    assert (found.members, found.draining) == (FULL.members, True)


async def test_nothing_there_is_an_empty_state(tmp_path):
    with capture_logs() as logged:
        assert await StateFile(tmp_path).load() == State()

    assert logged == []


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"null",
        b'{"version": 2}',
        b'{"version": 1, "bound": [["192.0.2.400", "eth0"]], "members": [], "drain": {}}',
        b'{"version": 1, "bound": [["192.0.2.40", ""]], "members": [], "drain": {}}',
        b'{"version": 1, "bound": [], "members": [7], "drain": {}}',
        b'{"version": 1, "bound": [], "members": [], "drain": {"until": "soon"}}',
        b"[" * 100_000,
        b" " * (SIZE_LIMIT + 1),
    ],
)
async def test_a_broken_file_is_set_aside_with_a_warning(tmp_path, raw):
    (tmp_path / "state.json").write_bytes(raw)
    file = StateFile(tmp_path)

    with capture_logs() as logged:
        assert await file.load() == State()

    assert [(each["event"], each["log_level"]) for each in logged] == [("state.broken", "warning")]
    assert (tmp_path / "state.json.broken").read_bytes() == raw
    assert await file.save(FULL)
    assert await StateFile(tmp_path).load() == FULL


async def test_an_unchanged_state_is_not_written_again(tmp_path):
    file = StateFile(tmp_path)
    await file.save(FULL)
    before = (tmp_path / "state.json").stat().st_ino

    await file.save(FULL)
    assert (tmp_path / "state.json").stat().st_ino == before

    await file.save(State())
    assert await StateFile(tmp_path).load() == State()


async def test_of_many_states_at_once_the_newest_is_on_disk(tmp_path):
    file = StateFile(tmp_path)

    async with asyncio.TaskGroup() as tasks:
        for number in range(50):
            tasks.create_task(file.save(State(members=frozenset({f"n{number}"}))))

    assert (await StateFile(tmp_path).load()).members == {"n49"}


async def test_a_folder_that_cannot_be_written_is_told_once_and_so_is_its_end(tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    file = StateFile(blocked)

    with capture_logs() as logged:
        assert not await file.save(FULL)
        assert not await file.save(State())
        blocked.unlink()
        assert await file.save(FULL)

    assert [each["event"] for each in logged] == ["state.unwritable", "state.written_again"]
    assert await StateFile(blocked).load() == FULL
