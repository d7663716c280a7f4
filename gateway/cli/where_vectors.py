"""`tidegate where vectors`: checks the language with a file of its vectors (appendix B).

Each is evaluated as a new expression, and as one that is evaluated often.
"""

import json
from pathlib import Path
from typing import Any

from gateway.cli.where_message import message_of
from gateway.errors import TidegateError
from gateway.where.compile import compile_where
from gateway.where.language.errors import WhereError
from gateway.where.language.lexer import TokenKind, tokenize
from gateway.where.rule import compile_rule


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
