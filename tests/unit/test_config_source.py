"""Reading files as they were at one moment."""

import os
import socket

import pytest

from config.load import Source, load, surroundings
from config.problems import ConfigError
from config.source import ATTEMPTS, FILES_MAX, is_dropin, read


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def volume(root, generation, text, dropin=None):
    """What a kubelet does: a folder of its own, reached through links that are swapped."""
    folder = root / f"..{generation}"
    write(folder / "config.yaml", text)
    if dropin is not None:
        write(folder / "conf.d" / "10.yaml", dropin)
    (root / "..data_tmp").symlink_to(folder.name)
    (root / "..data_tmp").replace(root / "..data")
    for name in ("config.yaml", "conf.d"):
        if not (root / name).is_symlink():
            (root / name).symlink_to(f"..data/{name}")


def refusal(path):
    with pytest.raises(ConfigError) as caught:
        load(path, environ={})
    return str(caught.value)


def source(path):
    return Source(path, surroundings(environ={}))


def test_a_file_with_its_dropins_is_read_in_byte_order(tmp_path):
    main = write(tmp_path / "config.yaml", "version: 1\n")
    write(tmp_path / "conf.d" / "20.yaml", "logging: {level: debug}\n")
    write(tmp_path / "conf.d" / "10.yaml", "logging: {level: error}\n")

    assert load(main, environ={}).settings.logging.level.value == "debug"


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("10-a.yaml", True),
        (".10.yaml", False),
        ("10.yaml~", False),
        ("10.yaml.bak", False),
        ("10.yaml.rpmnew", False),
        ("10.yaml.dpkg-old", False),
        ("10.yml", False),
        ("README", False),
    ],
)
def test_leftovers_of_editors_and_packages_are_no_dropins(name, counts):
    assert is_dropin(name) is counts


def test_the_folder_of_dropins_can_be_named_in_the_file_or_outside(tmp_path):
    main = write(tmp_path / "config.yaml", "version: 1\nconfig: {dropin_dir: more}\n")
    write(tmp_path / "more" / "1.yaml", "logging: {level: debug}\n")
    other = write(tmp_path / "other" / "1.yaml", "logging: {level: error}\n").parent

    assert load(main, environ={}).settings.logging.level.value == "debug"
    elsewhere = {"WAYOUT__CONFIG__DROPIN_DIR": str(other)}
    assert load(main, environ=elsewhere).settings.logging.level.value == "error"


def test_a_missing_file_an_empty_one_and_a_folder_are_three_things(tmp_path):
    assert "does not exist" in refusal(tmp_path / "none.yaml")
    assert "does not exist" in refusal(tmp_path / "no" / "where.yaml")
    assert "is a folder" in refusal(tmp_path)
    assert "is empty" in refusal(write(tmp_path / "empty.yaml", ""))
    assert "is empty" in refusal(write(tmp_path / "words.yaml", "# only words\n"))


def test_a_link_that_leads_to_itself_is_told(tmp_path):
    (tmp_path / "a.yaml").symlink_to("a.yaml")

    assert "a link that leads to itself" in refusal(tmp_path / "a.yaml")


def test_a_pipe_and_a_socket_do_not_hold_the_reader(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket.yaml"))

        assert "is no plain file" in refusal(tmp_path / "pipe.yaml")
        assert "is no plain file" in refusal(tmp_path / "socket.yaml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_is_not_ours_is_told(tmp_path):
    path = write(tmp_path / "config.yaml", "version: 1\n")
    path.chmod(0)

    assert "permission denied" in refusal(path)


def test_too_many_dropins_are_refused(tmp_path):
    main = write(tmp_path / "config.yaml", "version: 1\n")
    for number in range(FILES_MAX + 1):
        write(tmp_path / "conf.d" / f"{number}.yaml", "")

    assert f"keep at most {FILES_MAX}" in refusal(main)


def test_a_volume_is_read_through_its_links_and_again_after_a_swap(tmp_path):
    volume(tmp_path, "2026_01", "version: 1\n", "logging: {level: debug}\n")
    reader = source(tmp_path / "config.yaml")
    first = reader.attempt()

    volume(tmp_path, "2026_02", "version: 1\n", "logging: {level: error}\n")
    second = reader.attempt()

    assert first.outcome.settings.logging.level.value == "debug"
    assert second.outcome.settings.logging.level.value == "error"
    assert first.content != second.content


def test_dropins_may_be_a_volume_of_their_own(tmp_path):
    volume(tmp_path, "1", "version: 1\n")
    (tmp_path / "conf.d").unlink()
    inner = write(tmp_path / "conf.d" / "..1" / "10.yaml", "logging: {level: debug}\n").parent
    (tmp_path / "conf.d" / "..data").symlink_to(inner.name)
    (tmp_path / "conf.d" / "10.yaml").symlink_to("..data/10.yaml")

    assert load(tmp_path / "config.yaml", environ={}).settings.logging.level.value == "debug"


def test_a_swap_in_the_middle_of_a_read_is_seen_and_read_again(tmp_path):
    volume(tmp_path, "1", "version: 1\nnode: {zone: old}\n", "node: {weight: 1.0}\n")
    swaps = iter(["2"])
    seen = []

    def dropins(main):
        seen.append(main)
        for generation in swaps:
            volume(tmp_path, generation, "version: 1\nnode: {zone: new}\n", "node: {weight: 2.0}\n")
        return "conf.d"

    snapshot = read(tmp_path / "config.yaml", dropins)

    assert len(seen) == 2
    assert [b"new" in each.data or b"2.0" in each.data for each in snapshot.files] == [True, True]


def test_a_file_that_never_rests_is_refused(tmp_path):
    path = write(tmp_path / "config.yaml", "version: 1\n")
    edits = []

    def dropins(_main):
        edits.append(None)
        path.write_text("version: 1\n" + "#" * len(edits))
        return ""

    with pytest.raises(ConfigError, match="keeps changing"):
        read(path, dropins)
    assert len(edits) == ATTEMPTS


def test_content_is_the_same_until_a_byte_differs(tmp_path):
    path = write(tmp_path / "config.yaml", "version: 1\n")
    reader = source(path)
    before = reader.content()
    os.utime(path, (1, 1))

    assert reader.content() == before == load(path, environ={}).digests.content
    path.write_text("version: 1 \n")
    assert reader.content() != before


def test_content_of_what_cannot_be_read_is_empty(tmp_path):
    assert source(tmp_path / "none.yaml").content() == ""


def test_an_attempt_that_is_refused_remembers_what_it_read(tmp_path):
    reader = source(write(tmp_path / "config.yaml", "egress: [\n"))
    attempt = reader.attempt()

    assert isinstance(attempt.outcome, ConfigError)
    assert attempt.content == reader.content() != ""
