"""Strict YAML: what is read, what is refused, and where."""

import pytest

from config.problems import ConfigError
from config.tree import Fields, Mark, at, key_mark, settled
from config.yaml import SIZE_MAX, parse


def read(text):
    return settled(parse("f.yaml", text.encode()))


def refused(data):
    with pytest.raises(ConfigError) as caught:
        parse("f.yaml", data if isinstance(data, bytes) else data.encode())
    return [str(each) for each in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("true", True),
        ("False", False),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("1:30", "1:30"),
        ("12_000", "12_000"),
        ("2001-01-01", "2001-01-01"),
        ("0b11", "0b11"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-3", -3),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("'7'", "7"),
        ('"true"', "true"),
        ("52:54:00:12:34:56", "52:54:00:12:34:56"),
        ("2001:db8::1", "2001:db8::1"),
        ("[]", []),
        ("{}", {}),
    ],
)
def test_a_scalar_means_what_the_core_schema_says(text, value):
    found = read(f"key: {text}\n")["key"]

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["null", "~", ""])
def test_null_is_a_reset_and_leaves_no_value(text):
    assert read(f"a: 1\nkey: {text}\n") == {"a": 1}


def test_every_key_and_value_knows_its_place():
    tree = parse("f.yaml", b"a:\n  b: [1, 22]\n  'c': x\n")

    assert key_mark(tree, ("a", "b")) == Mark("f.yaml", 2, 3)
    assert at(tree, ("a", "b", 1)).mark == Mark("f.yaml", 2, 10)
    assert at(tree, ("a", "c")).mark == Mark("f.yaml", 3, 8)


def test_nothing_but_comments_is_no_document():
    assert parse("f.yaml", b"# only words\n\n") is None


def test_a_byte_order_mark_and_windows_line_ends_are_read():
    tree = parse("f.yaml", "\ufeffa: 1\r\nb: 2\r\n".encode())

    assert isinstance(tree, Fields)
    assert settled(tree) == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "3:1", "first in line 1"),
        ("a: &x 1\n", "1:4", "anchors such as '&x'"),
        ("a: *x\n", "1:4", "aliases such as '*x'"),
        ("a: !!str 1\n", "1:4", "tags such as"),
        ("a: 1\n---\nb: 2\n", "2:1", "a second document"),
        ("%YAML 1.1\n---\na: 1\n", "1:1", "directives"),
        ("? [a]\n: 1\n", "1:3", "cannot be a key"),
        ("1: a\n", "1:1", 'the key 1 is not text, write "1"'),
        ("true: a\n", "1:1", "is not text"),
        ("<<: {a: 1}\n", "1:1", "merge keys"),
        ("egress: [\n", "1:9", "'[' is not closed, write the ']'"),
        ("a: {b: 1\nc: 2\n", "1:4", "'{' is not closed"),
        ("a: ]\n", "1:4", "closes nothing"),
        ("a: {b: 1}}\n", "1:10", "closes nothing"),
        ("a:\n\tb: 1\n", "2:1", "a tab indents this line, use spaces"),
        ("a:\n  b: 1\n  \tc: 1\n", "3:3", "a tab indents this line, use spaces"),
        ("a: 'x\n", "1:4", "this quote is not closed"),
        ("a: b: c\n", "1:5", "a second ':'"),
        ("a: 1\n b: 2\n", "2:2", "indented below a value"),
        ("a:1\nb: 2\n", "1:1", "no space after ':', write 'a: 1'"),
        ("a: @x\n", "1:4", "'@' is a reserved character, write the text in quotes: '@x'"),
        ("a: - b\n", "1:4", "begin the list in a new line"),
        ("- a\nb: 1\n", "2:1", "no item of the list above"),
        ("a: [::1]\n", "1:5", 'write it in quotes: "::1"'),
        ('a: "\\q"\n', "1:5", "an unknown escape"),
        ("a: 1\nb: \x07\n", "2:4", "control character U+0007"),
    ],
)
def test_a_mistake_is_told_in_our_words_at_its_place(text, place, words):
    (first, *_) = refused(text)

    assert first.startswith(f"f.yaml:{place}: ")
    assert words in first
    assert "token" not in first


def test_bytes_that_are_no_text_are_refused_with_the_place():
    (only,) = refused(b"a: 1\nb: \xff\xfe\n")

    assert only == "f.yaml:2:4: is not text in UTF-8, save it as UTF-8 YAML"


def test_all_structural_mistakes_are_told_at_once():
    assert len(refused("a: &x 1\nb: !t 2\na: 3\n2: 4\n")) == 4


def test_a_file_beyond_the_limit_is_refused():
    assert "keep it below" in refused(b"#" * (SIZE_MAX + 1))[0]


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_depth_is_limited_long_before_it_hurts(opening):
    assert "nested" in refused(opening * 50_000)[0] or "deep" in refused(opening * 50_000)[0]


def test_an_alias_bomb_expands_to_nothing():
    rows = ["a0: &a0 [x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]

    assert "not supported" in refused("\n".join(rows))[0]
