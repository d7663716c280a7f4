"""`tidegate where check`, `explain` and `vectors`, and the display of an expression's error."""

import json
import sys
from pathlib import Path
from typing import Any
from unicodedata import combining, east_asian_width

from gateway.cli.where.message import message_of, read_message
from gateway.errors import TidegateError
from gateway.where.compile import compile_where
from gateway.where.explain import Explanation, explain, tree
from gateway.where.language.errors import WhereError
from gateway.where.language.lexer import TokenKind, tokenize
from gateway.where.language.likely_mistakes import likely_mistakes
from gateway.where.language.spelling import spell_value
from gateway.where.rule import compile_rule

_BEFORE = 60
_AFTER = 30
"""Characters of the expression's line that are shown on either side of an error."""


def check_expression(text: str, *, rule: bool) -> int:
    """Report whether `text` is valid; return 0 or 1."""
    try:
        where = (compile_rule if rule else compile_where)(text)
    except WhereError as error:
        print_error(text, error)
        return 1
    if where.never_true:
        print("warning: filter can never be true", file=sys.stderr)
    for mistake in likely_mistakes(text, where.expression):
        print(f"warning: {mistake}", file=sys.stderr)
    print("ok")
    return 0


def print_error(text: str, error: WhereError) -> None:
    """Print the line of `text` with a caret below the position, and the error, on stderr."""
    start = text.rfind("\n", 0, error.position) + 1
    end = text.find("\n", start)
    line = text[start:] if end < 0 else text[start:end]
    column = error.position - start
    first = max(0, column - _BEFORE)
    shown = line[first : column + _AFTER]
    before = shown[: column - first]
    leading = "..." if first else ""
    trailing = "..." if column + _AFTER < len(line) else ""
    print(f"{leading}{_printable(shown)}{trailing}", file=sys.stderr)
    print(f"{' ' * (len(leading) + _width(before))}^", file=sys.stderr)
    print(f"{error.kind} error at position {error.position}: {error.message}", file=sys.stderr)


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _width(text: str) -> int:
    """Return the columns that a terminal uses for `text`."""
    return sum(
        0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text
    )


def explain_expression(text: str, file: Path) -> int:
    """Print the value of each part of `text` for the message in `file`.

    Return 0, or 1 on an error.
    """
    message = read_message(file)
    try:
        explanation = explain(text, message)
    except WhereError as error:
        print_error(text, error)
        return 1
    for line in lines(explanation):
        print(line)
    return 0


def lines(explanation: Explanation) -> list[str]:
    """Return a line for each part, the value first, and the verdict."""
    passes = "passes" if explanation.result else "does not pass"
    verdict = f"result: {spell_value(explanation.result)}, the message {passes}"
    if explanation.stateful:
        verdict += " as the first one on its topic"
    return [*tree(explanation), verdict]


def run_vectors(file: Path) -> int:
    """Print a line for each vector that fails and a last one with the sums; 1 if any fails.

    Raises TidegateError if `file` cannot be read or has an invalid line.
    """
    rows = _rows(file)
    failed = 0
    for name, row in rows:
        failure = _failure(row, f"{file}: {name}")
        if failure is not None:
            failed += 1
            print(f"{name}: {failure}")
    print(f"where: {len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


def _rows(file: Path) -> list[tuple[str, dict[str, Any]]]:
    try:
        lines = file.read_text("utf-8").split("\n")
    except OSError as error:
        raise TidegateError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TidegateError(f"{file}: not UTF-8 at byte {error.start}") from error
    rows = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            row = _row(line, f"{file}: line {number}")
            rows.append((str(row.get("id", f"line {number}")), row))
    return rows


def _row(line: str, place: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise TidegateError(f"{place}: not JSON: {error}") from error
    if not isinstance(row, dict) or not isinstance(row.get("expr"), str):
        raise TidegateError(f"{place}: a vector is an object with a text `expr`")
    if not isinstance(row.get("error", {}), dict):
        raise TidegateError(f"{place}: `error` is an object with `position` and `kind`")
    if sum(key in row for key in ("result", "results", "error")) != 1:
        raise TidegateError(f"{place}: a vector has one of `result`, `results` and `error`")
    return row


def _failure(row: dict[str, Any], place: str) -> str | None:
    """Return the expected and the actual result; None if they are the same."""
    if row.get("mode") not in (None, "uplink"):
        return f"unknown mode {row['mode']!r}"
    return _failure_of(row, place) or _failure_of(row, place, promoted=True)


def _failure_of(row: dict[str, Any], place: str, *, promoted: bool = False) -> str | None:
    """Evaluate with closures, or `promoted` with the functions that replace them later."""
    expected = _expected(row)
    try:
        got = _got(row, promoted=promoted)
    except WhereError as error:
        got = {"position": error.position, "kind": error.kind}
    except (KeyError, TypeError, ValueError) as error:
        raise TidegateError(f"{place}: {error}") from error
    if _text(got) != _text(expected):
        return f"expected {_text(expected)}, got {_text(got)}{' when promoted' * promoted}"
    return _failure_within_not(row, promoted=promoted) if "result" in row else None


def _expected(row: dict[str, Any]) -> object:
    if "error" in row:
        return {key: row["error"].get(key) for key in ("position", "kind")}
    return row["result"] if "result" in row else row["results"]


def _got(row: dict[str, Any], *, promoted: bool) -> object:
    compile_one = compile_rule if row.get("mode") == "uplink" else compile_where
    where = compile_one(row["expr"])
    if promoted:
        where.promote()
    if "error" in row:
        return "accepted"
    if "result" in row:
        return where.evaluate(message_of(row["message"]))
    return _results(row, promoted=promoted)


def _results(row: dict[str, Any], *, promoted: bool) -> list[bool | None]:
    rule = compile_rule(row["expr"])
    if promoted:
        rule.promote()
    results = []
    for message in map(message_of, row["messages"]):
        results.append(rule.evaluate(message))
        rule.record(message, results[-1])
    return results


def _failure_within_not(row: dict[str, Any], *, promoted: bool) -> str | None:
    """Evaluate NOT (expr), too, unless it exceeds a limit that `expr` itself just meets."""
    expression = row["expr"]
    first = tokenize(expression)[0]
    if first.kind is TokenKind.KEYWORD and first.value == "WHERE":
        expression = expression[first.position + len(first.text) :]
    expected = None if row["result"] is None else not row["result"]
    try:
        got = _got(row | {"expr": f"NOT ({expression})"}, promoted=promoted)
    except WhereError as error:
        return None if error.kind == "limit" else f"within NOT: {error}"
    if got is not expected:
        return f"within NOT: expected {_text(expected)}, got {_text(got)}"
    return None


def _text(outcome: object) -> str:
    return json.dumps(outcome, sort_keys=True)
