"""What a YAML parser's complaint means to the person who wrote the file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from config.problems import Problem, quoted
from config.tree import Mark

if TYPE_CHECKING:
    import yaml

_TAB = re.compile(r"^ *\t[ \t]*\S", re.MULTILINE)
_FLOW = {"flow sequence": ("[", "]"), "flow mapping": ("{", "}")}
_SPECIAL = "@`%"
_ADDRESS = re.compile(r"::[0-9a-fA-F.:]*")


def explain_syntax(name: str, text: str, error: yaml.MarkedYAMLError) -> Problem:
    """A problem in our own words, at the place where the mistake is rather than noticed."""
    rows = text.split("\n")
    row = error.problem_mark.line if error.problem_mark else 0
    column = error.problem_mark.column if error.problem_mark else 0
    said = f"{error.context or ''} {error.problem or ''}"
    if "exceeded maximum nesting" in said:
        return _at(name, row, column, "is nested far too deep", "close some brackets")
    tab = _tab(rows, row)
    if tab is not None:
        return _at(name, *tab, "a tab indents this line", "use spaces")
    for explain in (_brackets, _quote, _colon, _character, _dash):
        problem = explain(name, rows, error, said)
        if problem is not None:
            return problem
    hint = "check indentation, brackets and quotes in this line and the one before"
    return _at(name, row, column, "is not valid YAML here", hint)


def _at(name: str, row: int, column: int, message: str, hint: str) -> Problem:
    return Problem(Mark(name, row + 1, column + 1), "", message, hint)


def _tab(rows: list[str], row: int) -> tuple[int, int] | None:
    # libyaml notices a tab in this line, or only by what the next one then seems to mean.
    for number in (row, row - 1):
        if 0 <= number < len(rows) and _TAB.match(rows[number]):
            return number, rows[number].index("\t")
    return None


def _brackets(name: str, rows: list[str], error: yaml.MarkedYAMLError, said: str) -> Problem | None:
    mark = error.problem_mark
    near = rows[mark.line][mark.column :] if mark and mark.line < len(rows) else ""
    if mark and near[:1] in ("]", "}") and "flow" not in (error.context or ""):
        return _at(name, mark.line, mark.column, f"'{near[0]}' closes nothing", "remove it")
    if mark and _ADDRESS.match(near):
        address = _ADDRESS.match(near)
        assert address is not None
        hint = f'write it in quotes: "{address[0]}"'
        message = "an address that begins with a colon is not text to YAML"
        return _at(name, mark.line, mark.column, message, hint)
    for words, (opening, closing) in _FLOW.items():
        if words in (error.context or "") and error.context_mark:
            where = error.context_mark
            message = f"'{opening}' is not closed, or a comma is missing after it"
            return _at(name, where.line, where.column, message, f"write the '{closing}'")
    if "while parsing a flow node" in said:
        return _unclosed(name, rows, error)
    return None


def _unclosed(name: str, rows: list[str], error: yaml.MarkedYAMLError) -> Problem | None:
    """A file that ends inside brackets: point to the last one that is open."""
    mark = error.problem_mark
    assert mark is not None
    open_ones: list[tuple[str, int, int]] = []
    for row, line in enumerate(rows[: mark.line + 1]):
        end = mark.column if row == mark.line else len(line)
        for column, letter in enumerate(line[:end]):
            if letter in "[{":
                open_ones.append((letter, row, column))
            elif letter in "]}" and open_ones:
                open_ones.pop()
    if not open_ones:
        return None
    opening, row, column = open_ones[-1]
    closing = {"[": "]", "{": "}"}[opening]
    return _at(name, row, column, f"'{opening}' is not closed", f"write the '{closing}'")


def _quote(name: str, _rows: list[str], error: yaml.MarkedYAMLError, said: str) -> Problem | None:
    where = error.context_mark or error.problem_mark
    if where is None or "quoted scalar" not in said:
        return None
    if "escape" in said:
        mark = error.problem_mark or where
        hint = "write '\\\\', or use single quotes"
        return _at(name, mark.line, mark.column, "an unknown escape follows the backslash", hint)
    return _at(name, where.line, where.column, "this quote is not closed", "close it")


def _colon(name: str, rows: list[str], error: yaml.MarkedYAMLError, said: str) -> Problem | None:
    mark = error.problem_mark
    if mark is None or "mapping values are not allowed" not in said:
        return None
    line = rows[mark.line] if mark.line < len(rows) else ""
    before = rows[mark.line - 1].strip() if mark.line else ""
    if re.fullmatch(r"[A-Za-z_]+:\S+", before):
        key, _, value = before.partition(":")
        hint = f"write '{key}: {value}'"
        return _at(name, mark.line - 1, _indent(rows[mark.line - 1]), "no space after ':'", hint)
    if ":" in line[: mark.column]:
        hint = "write one 'key: value' in a line, and text with ': ' in quotes"
        return _at(name, mark.line, mark.column, "a second ':' in one line", hint)
    hint = "indent it like the line above, or end that line with ':'"
    message = "this line is indented below a value"
    return _at(name, mark.line, _indent(line), message, hint)


def _character(
    name: str, rows: list[str], error: yaml.MarkedYAMLError, said: str
) -> Problem | None:
    mark = error.problem_mark
    if mark is None or "cannot start any token" not in said or mark.line >= len(rows):
        return None
    letter = rows[mark.line][mark.column : mark.column + 1]
    if letter == "\t":
        return _at(name, mark.line, mark.column, "a tab is used as space", "use spaces")
    text = rows[mark.line][mark.column :].split("#")[0].strip()
    kind = "a reserved character" if letter in _SPECIAL else "a character that begins nothing"
    hint = f"write the text in quotes: {quoted(text)}"
    return _at(name, mark.line, mark.column, f"'{letter}' is {kind}", hint)


def _dash(name: str, _rows: list[str], error: yaml.MarkedYAMLError, said: str) -> Problem | None:
    mark = error.problem_mark
    if mark is None:
        return None
    if "block sequence entries are not allowed" in said:
        hint = "begin the list in a new line, or write [a, b]"
        return _at(name, mark.line, mark.column, "'- ' in the middle of a line", hint)
    if "did not find expected '-' indicator" in said:
        hint = "begin it with '- ', or indent it otherwise"
        return _at(name, mark.line, mark.column, "this line is no item of the list above", hint)
    if "did not find expected key" in said:
        hint = "indent it like its neighbours"
        return _at(name, mark.line, mark.column, "this line does not fit the map above", hint)
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
