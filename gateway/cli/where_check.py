"""`tidegate where check` and `explain`, and the display of an expression's error."""

import sys
from pathlib import Path
from unicodedata import combining, east_asian_width

from gateway.cli.where_message import read_message
from gateway.where.compile import compile_where
from gateway.where.explain import Explanation, explain, tree
from gateway.where.language.errors import WhereError
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
