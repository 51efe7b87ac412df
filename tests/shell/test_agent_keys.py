"""Keys: the file, the ring that runs, and its rotation on real sockets."""

import asyncio
import stat
from random import Random

import pytest
from structlog.testing import capture_logs

from agent.keys import file, words
from agent.keys.desk import KeyDesk
from agent.keys.ring import KeysError
from agent.keys.words import Operation
from agent.seeds import Seeds
from agent.subscribers import Gossip
from config.load import load
from config.report import Result
from config.transaction import Reloader
from gossip.events import Dropped, HealthChanged
from gossip.peer import Health
from gossip.wire.seal import Keyring
from support.holders import CONFIG, Holders

OLD, NEW, OTHER = bytes(32), bytes([1]) * 32, bytes([2]) * 16
ADD, USE, REMOVE = Operation.ADD, Operation.USE, Operation.REMOVE


async def everywhere(holder, operation, key, *, only=None, force=False):
    return await holder.rotation.change(operation, key, only=only, force=force)


def troubles(holders):
    """What any member ever held against another."""
    return [
        (each.name, event.member.name, event.member.health)
        for each in holders.all
        for event in each.told(HealthChanged)
        if event.member.health is not Health.ALIVE
    ]


async def test_a_rotation_changes_every_ring_and_every_file_and_loses_nobody(tmp_path):
    with capture_logs() as logs:
        async with Holders(tmp_path, 3, [OLD]) as holders:
            for operation, key in ((ADD, NEW), (USE, NEW), (REMOVE, OLD)):
                outcomes = await everywhere(holders[1], operation, key)
                assert outcomes == {"m1": "", "m2": "", "m3": ""}
                await asyncio.sleep(0.1)

            assert [each.ring() for each in holders.all] == [(NEW,)] * 3
            assert [each.filed() for each in holders.all] == [(NEW,)] * 3
            assert troubles(holders) == []
            assert all(each.machine.member(n).health == 0 for each in holders.all for n in outcomes)
    for key in (OLD, NEW):
        assert file.encoded(key) not in str(logs)
        assert key.hex() not in str(logs)
    assert {each["event"] for each in logs} >= {"gossip.keyring_changed"}


async def test_everybody_tells_what_it_accepts_by_fingerprint(tmp_path):
    async with Holders(tmp_path, 2, [OLD]) as holders:
        await everywhere(holders[0], ADD, NEW, only="m2")
        told = await KeyDesk(holders[0].rotation, lambda: holders[0].settings).listed()

    old, new = map(file.fingerprint, (OLD, NEW))
    assert told["keys"] == [
        {
            "fingerprint": old,
            "used_by": ["m1", "m2"],
            "accepted_by": ["m1", "m2"],
            "missing_on": [],
        },
        {"fingerprint": new, "used_by": [], "accepted_by": ["m2"], "missing_on": ["m1"]},
    ]
    assert told["members"][1] == {
        "name": "m2",
        "answered": True,
        "uses": old,
        "accepts": [old, new],
    }
    assert told["encryption"] == "required"


async def test_what_would_shut_a_member_out_is_refused_and_changes_nothing(tmp_path):
    async with Holders(tmp_path, 2, [OLD]) as holders:
        await everywhere(holders[0], ADD, NEW, only="m1")
        with pytest.raises(KeysError, match="m2 would not understand this key"):
            await everywhere(holders[0], USE, NEW)
        with pytest.raises(KeysError, match="m1, m2 still encrypts with it"):
            await everywhere(holders[0], REMOVE, OLD)

        assert [each.ring() for each in holders.all] == [(OLD, NEW), (OLD,)]


async def test_a_mute_member_is_named_and_stops_what_could_shut_it_out(tmp_path):
    async with Holders(tmp_path, 3, [OLD]) as holders:
        await holders[2].stop()
        outcomes, refusal = await asyncio.gather(
            everywhere(holders[0], ADD, NEW),
            everywhere(holders[1], USE, OLD),
            return_exceptions=True,
        )

        # It is alive for a while yet, as far as anybody knows.
        assert outcomes["m1"] == outcomes["m2"] == ""
        assert outcomes["m3"].startswith("no answer")
        assert "m3 did not answer, nothing was changed" in str(refusal)


async def test_where_anything_may_come_unsealed_nobody_asks_and_nobody_answers(tmp_path):
    async with Holders(tmp_path, 2, [OLD], mode="permissive") as holders:
        with pytest.raises(KeysError, match="only where everything is encrypted"):
            await everywhere(holders[0], ADD, NEW)
        ask = words.to_plain(words.Ask(bytes(words.IDENT)))
        for holder in holders.all:
            holder.node.perform(holder.machine.send("m2", words.KIND, ask, holder.now()))
        await holders[1].until(lambda: holders[1].refused)

        assert holders[1].refused == ["keys_unsealed"]
        assert holders[1].ring() == (OLD,)


async def test_without_a_keyring_the_answer_says_how_to_get_one(tmp_path):
    async with Holders(tmp_path, 1, [OLD]) as holders:
        envelope = holders[0].machine.envelope
        holders[0].machine.envelope = type(envelope)()
        with pytest.raises(KeysError, match=r"not encrypted: write gossip\.keyring_file"):
            await holders[0].rotation.survey()


async def test_a_recorded_change_that_is_sent_again_does_nothing(tmp_path):
    async with Holders(tmp_path, 2, [OLD]) as holders:
        sent = []
        post = holders[0].node._post

        def recording(datagram):
            sent.append(datagram)
            post(datagram)

        holders[0].node._post = recording
        await everywhere(holders[0], ADD, NEW)
        recorded = [each for each in sent if each.to == holders[1].address]
        await everywhere(holders[0], REMOVE, NEW)
        assert holders[1].ring() == (OLD,)

        for each in recorded:
            holders[1].node.perform(
                holders[1].machine.receive(each.data, holders[0].address, holders[1].now())
            )
        await asyncio.sleep(0.1)

        assert holders[1].ring() == holders[1].filed() == (OLD,)
        # Even one whose answer is forgotten has no challenge left that would be good.
        holders[1].rotation._answering._done.clear()
        for each in recorded:
            holders[1].node.perform(
                holders[1].machine.receive(each.data, holders[0].address, holders[1].now())
            )
        await asyncio.sleep(0.1)
        assert holders[1].ring() == holders[1].filed() == (OLD,)
        assert "keys_replayed" in holders[1].refused


async def test_what_makes_no_sense_is_counted(tmp_path):
    async with Holders(tmp_path, 2, [OLD]) as holders:
        for value in (None, ["do", b"short"], ["do", bytes(16), bytes(16), "burn", bytes(32)]):
            one = holders[0]
            one.node.perform(one.machine.send("m2", words.KIND, value, one.now()))
        await holders[1].until(lambda: len(holders[1].refused) == 3)

        assert set(holders[1].refused) == {"bad_keys"}


async def test_a_key_is_written_before_it_is_used(tmp_path):
    async with Holders(tmp_path, 1, [OLD]) as holders:
        holders[0].path.unlink()
        outcomes = await everywhere(holders[0], ADD, NEW)

        assert "cannot be written, No such file or directory" in outcomes["m1"]
        assert holders[0].ring() == (OLD,)


async def test_an_edit_that_is_not_in_force_yet_is_not_overwritten(tmp_path):
    async with Holders(tmp_path, 1, [OLD]) as holders:
        edited = f"{file.encoded(OTHER)}\n{file.encoded(OLD)}\n"
        holders[0].path.write_text(edited)
        outcomes = await everywhere(holders[0], ADD, NEW)

        assert "was edited and is not in force: 'wayout config reload' first" in outcomes["m1"]
        assert holders[0].path.read_text() == edited


async def test_a_key_in_the_ring_may_be_named_by_its_fingerprint_and_a_new_one_may_not(tmp_path):
    async with Holders(tmp_path, 2, [OLD, NEW]) as holders:
        desk = KeyDesk(holders[0].rotation, lambda: holders[0].settings)
        told = await desk.change("use", file.fingerprint(NEW), only=None, force=False)
        assert (told["done"], told["failed"]) == (["m1", "m2"], {})
        assert holders[1].ring()[0] == NEW

        for operation, key, why in [
            ("add", file.fingerprint(NEW), "a fingerprint is no key"),
            ("use", "sha256:ffffffff", "has no key sha256:ffffffff"),
            ("use", "c2VjcmV0", "6 bytes and not 16, 24 or 32"),
            ("add", "no base64", "no base64 key"),
            ("burn", file.encoded(NEW), "add, use or remove"),
        ]:
            with pytest.raises(Exception, match=why) as refusal:
                await desk.change(operation, key, only=None, force=False)
            assert "c2VjcmV0" not in str(refusal.value)
        with pytest.raises(Exception, match="no wayout member 'm9'"):
            await desk.change("add", file.encoded(NEW), only="m9", force=False)


def test_a_keyring_file_is_replaced_whole_with_its_remarks_links_and_mode(tmp_path):
    target = tmp_path / "real.keys"
    link = tmp_path / "gossip.keys"
    target.write_text(f"# of the edge cluster\n\n{file.encoded(OLD)}\n")
    target.chmod(0o640)
    link.symlink_to(target.name)
    file.write(link, Keyring((OLD,)), Keyring((NEW, OLD)))

    assert link.is_symlink()
    assert file.read(link).keys == (NEW, OLD)
    assert target.read_text().startswith("# of the edge cluster\n")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == ["gossip.keys", "real.keys"]


def test_a_file_that_everybody_may_read_is_refused_and_no_error_shows_a_key(tmp_path):
    path = tmp_path / "gossip.keys"
    path.write_text(f"{file.encoded(OLD)}\nnot-base64-{file.encoded(NEW)}\n")
    path.chmod(0o644)
    with pytest.raises(ValueError, match="chmod 0600"):
        file.read(path)
    path.chmod(0o600)
    with pytest.raises(ValueError, match=":2: this is no base64 key") as refusal:
        file.read(path)

    assert file.encoded(NEW) not in str(refusal.value)


async def test_a_reload_takes_a_changed_keyring_over_and_loses_nobody(tmp_path):
    async with Holders(tmp_path, 2, [OLD]) as holders:
        desks = [reloading(holder, tmp_path) for holder in holders.all]
        assert (await desks[0].reload("test")).result is Result.UNCHANGED
        for keys in ([OLD, NEW], [NEW, OLD], [NEW]):
            for holder, reloader in zip(holders.all, desks, strict=True):
                holder.path.write_text("".join(f"{file.encoded(key)}\n" for key in keys))
                assert await reloader.look() != reloader.attempted
                report = await reloader.reload("test")
                assert report.result is Result.APPLIED
                (change,) = report.to_document()["changes"]
                assert (change["path"], change["kind"]) == ("gossip.keyring_file", "content")
                assert file.encoded(NEW) not in str(report.to_document())
                assert await reloader.look() == reloader.attempted
                assert not reloader.file_differs
            await asyncio.sleep(0.1)

        assert [each.ring() for each in holders.all] == [(NEW,)] * 2
        assert troubles(holders) == []
        assert [each.told(Dropped) for each in holders.all] == [[], []]


async def test_a_keyring_that_is_no_good_refuses_the_reload_and_the_old_keys_stay(tmp_path):
    async with Holders(tmp_path, 1, [OLD]) as holders:
        reloader = reloading(holders[0], tmp_path)
        holders[0].path.write_text("rubbish\n")
        report = await reloader.reload("test")

        assert report.result is Result.REJECTED
        assert "m1.keys:1: this is no base64 key" in str(report.problems)
        assert holders[0].ring() == (OLD,)
        assert reloader.file_differs
        # A poll does not try the same content again and again.
        assert await reloader.look() == reloader.attempted


def reloading(holder, folder):
    """A reloader on a file with the settings of this holder, as the daemon connects it."""
    path = folder / f"{holder.name}.yaml"
    path.write_text(CONFIG.format(name=holder.name, path=holder.path, mode="required"))
    reloader = Reloader(path, load(path, environ={}), environ={})
    reloader.subscribe(Gossip(holder.node, Seeds((), 1, [], Random(1)), holder.now))
    reloader.attach(holder.keys.outside)
    return reloader
