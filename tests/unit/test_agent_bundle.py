"""No key gets into a support archive, however it is spelled."""

import base64
import io
import os
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.bundle import STRUCK, Redactor, archive, name_of

KEY = base64.b64encode(bytes(range(32))).decode()


def unpacked(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {each.name: tar.extractfile(each).read().decode() for each in tar.getmembers()}


@pytest.mark.parametrize("size", [16, 24, 32])
def test_a_known_key_is_struck_out_in_every_spelling(tmp_path, size):
    raw = os.urandom(size)
    key = base64.b64encode(raw).decode()
    file = tmp_path / "keys"
    file.write_text(f"# the first encrypts\n{key}\n\n")
    redact = Redactor.of([file, tmp_path / "none"])
    text = f'"{key}" key={raw.hex()} x{key.rstrip("=")}y {base64.urlsafe_b64encode(raw).decode()}'

    shown = redact(text)

    assert key not in shown
    assert key.rstrip("=") not in shown
    assert raw.hex() not in shown
    assert base64.urlsafe_b64encode(raw).decode() not in shown
    assert "# the first encrypts" in redact("# the first encrypts")


@given(
    st.sampled_from([16, 24, 32]).flatmap(lambda size: st.binary(min_size=size, max_size=size)),
    st.sampled_from(['{"key": "%s"}', "keyring: %s", "%s", "a %s b", "[%s]"]),
)
def test_a_key_that_nobody_told_us_is_struck_out_too(raw, around):
    key = base64.b64encode(raw).decode()

    if not set(key) <= set("0123456789abcdef"):
        assert key not in Redactor()(around % key)


@pytest.mark.parametrize(
    "text",
    [
        "2026-12-01T15:35:56.920Z 10.77.0.201 n2 -> n1",
        "digest 883cb32cdc13e452, 0123456789abcdef0123456789abcdef",
        "2001:db8:77::205 lladdr 02:00:00:00:00:0b",
        "sysctl -w net.ipv4.conf.eth0.arp_announce=2",
    ],
)
def test_what_helps_stays(text):
    assert Redactor()(text) == text


def test_an_archive_has_every_part_in_one_folder():
    parts = {"status.json": {"node": {"name": "n1"}, "key": KEY}, "log.txt": f"said {KEY}\n"}

    found = unpacked(archive(parts, Redactor(), "wayout-bundle-n1-x", 1.7e9))

    assert set(found) == {"wayout-bundle-n1-x/status.json", "wayout-bundle-n1-x/log.txt"}
    assert found["wayout-bundle-n1-x/log.txt"] == f"said {STRUCK}\n"
    assert KEY not in "".join(found.values())


@pytest.mark.parametrize(
    ("node", "name"),
    [
        ("n1.example", "wayout-bundle-n1.example-T.tar.gz"),
        ("../etc", "wayout-bundle-.._etc-T.tar.gz"),
        ("", "wayout-bundle-unknown-T.tar.gz"),
    ],
)
def test_the_name_of_the_archive_is_one_file_name(node, name):
    assert name_of(node, "T") == name
