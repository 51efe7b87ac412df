"""Field types: how a value is written, what it becomes, and what to say when it is wrong.

Every type is a `Form`. Text forms take text alone, so a number never becomes an address or a
duration by accident. `show` gives back what `parse` reads: `parse(show(value)) == value`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Generic, NoReturn, TypeVar

from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from config.problems import quoted, suggest

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

DURATION_MAX = 365 * 86400.0
TEXT_MAX = 255
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([a-z]+)")
_CLOCK = re.compile(r"([0-9]+):([0-9]{2})(?::([0-9]{2}))?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_LABEL_KEY = re.compile(r"([a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_YES = frozenset({"yes", "on", "y", "enabled", "true", "1"})
_NO = frozenset({"no", "off", "n", "disabled", "false", "0"})
_LABEL_MAX = 63
_NAME_MAX = 253


def refuse(wrong: str, write: str) -> NoReturn:
    """Raise the error that becomes a `Problem`: what is wrong, what to write instead."""
    raise PydanticCustomError("wayout", "{wrong}, {write}", {"wrong": wrong, "write": write})


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """How values of one type are read, shown and described (as JSON Schema)."""

    parse: Callable[[object], T]
    show: Callable[[T], object]
    schema: Mapping[str, object]

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> CoreSchema:
        shown = core_schema.plain_serializer_function_ser_schema(self.show, when_used="json")
        return core_schema.no_info_plain_validator_function(self.parse, serialization=shown)

    def __get_pydantic_json_schema__(self, _schema: object, _handler: object) -> dict[str, object]:
        return dict(self.schema)


def kind(value: object) -> str:
    """What a value is, in words for a message."""
    match value:
        case bool():
            return f"the switch {str(value).lower()}"
        case int() | float():
            return f"the number {value}"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "a map"
        case None:
            return "empty"
        case _:
            return f"the text {quoted(value)}"


def text_of(value: object, write: str) -> str:
    """`value` if it is text, else a refusal that says what to write."""
    if not isinstance(value, str):
        refuse(f"is {kind(value)}", write)
    return value


def same(value: T) -> T:
    """A value that is shown as it is."""
    return value


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word in _YES or word in _NO:
        refuse(f"is {kind(value)}", f"write {'true' if word in _YES else 'false'} without quotes")
    refuse(f"is {kind(value)}", "write true or false")


SWITCH = Form(_switch, same, {"type": "boolean"})


def _digits(value: object) -> int | None:
    if isinstance(value, str):
        plain = value.replace("_", "").replace(",", "").strip()
        return int(plain) if plain.isascii() and plain.isdigit() else None
    return None


def whole(low: int, high: int) -> Form[int]:
    """A whole number from `low` to `high`."""

    def parse(value: object) -> int:
        guess = _digits(value)
        if guess is not None:
            refuse(f"is {kind(value)}", f"write {guess} without quotes and separators")
        if isinstance(value, bool) or not isinstance(value, int):
            refuse(f"is {kind(value)}", f"write a whole number from {low} to {high}")
        if not low <= value <= high:
            refuse(f"is {value}", f"write a whole number from {low} to {high}")
        return value

    return Form(parse, same, {"type": "integer", "minimum": low, "maximum": high})


def number(low: float, high: float) -> Form[float]:
    """A number from `low` to `high`."""

    def parse(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            refuse(f"is {kind(value)}", f"write a number from {low:g} to {high:g}")
        if not low <= value <= high:
            refuse(f"is {value}", f"write a number from {low:g} to {high:g}")
        return float(value)

    return Form(parse, same, {"type": "number", "minimum": low, "maximum": high})


def seconds(text: str) -> float:
    """`1m30s` in seconds; refuses what has no unit, a strange unit or less than a millisecond."""
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        refuse(f"is {quoted(text)} without a unit", f"write {text}ms or {text}s")
    clock = _CLOCK.fullmatch(text)
    if clock:
        parts = zip(clock.groups(), "hms" if clock[3] else "ms", strict=False)
        write = "".join(f"{int(each)}{unit}" for each, unit in parts if each)
        refuse(f"is {quoted(text)}", f"write {write}")
    compact = text.replace(" ", "")
    found = _PART.findall(compact)
    if not found or "".join(amount + unit for amount, unit in found) != compact:
        refuse(f"is {quoted(text)}", "write a duration such as 500ms, 3s or 1m30s")
    for amount, unit in found:
        if unit not in _UNITS:
            refuse(f"has the unknown unit {quoted(unit)}", f"write {amount}{_unit(unit)}")
    if compact != text:
        refuse(f"has a space in {quoted(text)}", f"write {compact}")
    total = sum(Fraction(amount) * _UNITS[unit] for amount, unit in found)
    if total.denominator != 1:
        refuse(f"is {quoted(text)}", "write whole milliseconds")
    return int(total) / 1000


def _unit(word: str) -> str:
    if word.startswith(("ms", "mil")):
        return "ms"
    return word[0] if word[0] in _UNITS else "s"


def show_seconds(value: float) -> str:
    """`90.0` as `1m30s`."""
    rest = round(value * 1000)
    text = ""
    for unit in ("d", "h", "m", "s", "ms"):
        amount, rest = divmod(rest, _UNITS[unit])
        text += f"{amount}{unit}" if amount else ""
    return text or "0s"


def duration(low: str, high: str) -> Form[float]:
    """A time span with a unit, from `low` to `high`; seconds as a float."""
    least, most = seconds(low), seconds(high)

    def parse(value: object) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            refuse(f"is the number {value} without a unit", f"write {value}ms or {value}s")
        span = seconds(text_of(value, f"write a duration from {low} to {high}"))
        if not least <= span <= most:
            refuse(f"is {show_seconds(span)}", f"write a duration from {low} to {high}")
        return span

    pattern = "^([0-9]+(\\.[0-9]+)?(ms|s|m|h|d))+$"
    described = {"type": "string", "pattern": pattern, "x-wayout-range": f"{low} to {high}"}
    return Form(parse, show_seconds, described)


def _share(value: object) -> float | None:
    if value in ("off", False):
        return None
    if isinstance(value, int | float):
        percent = value * 100 if 0 < value < 1 else value
        refuse(f"is {kind(value)}", f"write {percent:g}% or off")
    text = text_of(value, "write a share such as 50%, or off")
    if not re.fullmatch(r"[0-9]{1,3}%", text) or int(text[:-1]) > 100:  # noqa: PLR2004
        refuse(f"is {quoted(text)}", "write a share from 0% to 100%, or off")
    return int(text[:-1]) / 100


def _show_share(value: float | None) -> str:
    return "off" if value is None else f"{round(value * 100)}%"


SHARE_OR_OFF = Form(_share, _show_share, {"type": "string", "pattern": "^([0-9]{1,3}%|off)$"})
"""A share of the whole as 0 to 1, or None for `off`."""


def choice(kinds: type[E]) -> Form[E]:
    """One word of an Enum, by its value."""
    words = {each.value: each for each in kinds}
    listed = ", ".join(words)

    def parse(value: object) -> E:
        if isinstance(value, bool) and {"on", "off"} <= words.keys():
            return words["on" if value else "off"]
        word = text_of(value, f"write one of {listed}")
        if word not in words:
            near = suggest(word, words)
            write = f"write {near}" if near else f"write one of {listed}"
            refuse(f"is {quoted(word)}", write)
        return words[word]

    return Form(parse, lambda each: each.value, {"type": "string", "enum": list(words)})


def _quote_number(value: object) -> str:
    return f'write it in quotes: "{str(value).lower() if isinstance(value, bool) else value}"'


def text(pattern: re.Pattern[str], words: str, longest: int = TEXT_MAX) -> Form[str]:
    """Text that matches `pattern`; `words` say what that is."""

    def parse(value: object) -> str:
        if isinstance(value, bool | int | float):
            refuse(f"is {kind(value)}", _quote_number(value))
        found = text_of(value, f"write {words}")
        if len(found) > longest:
            refuse(f"is {len(found)} characters long", f"write at most {longest}")
        if not pattern.fullmatch(found):
            near = found.lower().strip().replace("_", "-").replace(" ", "-")
            write = f", for example {near}" if near != found and pattern.fullmatch(near) else ""
            refuse(f"is {quoted(found)}", f"write {words}{write}")
        return found

    return Form(parse, same, {"type": "string", "maxLength": longest})


LABEL = text(_LABEL, "lower case letters, digits and '-'", _LABEL_MAX)
NODE_NAME = text(
    re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*"),
    "lower case letters, digits, '-' and '.'",
    _NAME_MAX,
)
LABEL_KEY = text(_LABEL_KEY, "a label key such as rack or example.org/rack", _NAME_MAX)
LABEL_VALUE = text(_LABEL_VALUE, "letters, digits, '-', '_' and '.'", _LABEL_MAX)
ANY_TEXT = text(re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]*"), "text without control characters")


def _path(value: object) -> str:
    found = text_of(value, "write an absolute path")
    if re.fullmatch(r"[A-Za-z0-9+/]{22,}={0,2}", found) and not found.startswith("/"):
        refuse("looks like a key", "put keys into a file and write its path")
    if not found.startswith("/") or "\0" in found:
        refuse("is not an absolute path", "begin it with '/'")
    return found


PATH = Form(_path, same, {"type": "string", "pattern": "^/"})
"""An absolute path. The message never repeats it: somebody may have pasted a secret."""


def _folder(value: object) -> str:
    found = text_of(value, "write the name of a folder")
    if not found or ".." in found.split("/") or "\0" in found:
        refuse(f"is {quoted(found)}", "write a folder beside the file, or an absolute path")
    return found


FOLDER = Form(_folder, same, {"type": "string"})
"""A folder, relative to the main file or absolute."""


def listed(value: object) -> object:
    """Strict tuples refuse lists; a single value gets a word of its own."""
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, str | int | float | bool):
        shown = value if isinstance(value, str) else str(value).lower()
        refuse(f"is {kind(value)}", f"write a list: [{shown}]")
    refuse(f"is {kind(value)}", "write a list: [a, b], or one '- item' in a line")


def optional(form: Form[T]) -> Form[T | None]:
    """`form`, or None for `null`, which means the default."""

    def parse(value: object) -> T | None:
        return None if value is None else form.parse(value)

    def show(value: T | None) -> object:
        return None if value is None else form.show(value)

    return Form(parse, show, {"anyOf": [dict(form.schema), {"type": "null"}]})
