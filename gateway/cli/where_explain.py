"""`tidegate where explain`: the tree of an expression with the value of every part."""

from pathlib import Path

from gateway.cli.where_check import tell_error
from gateway.cli.where_message import read_message
from gateway.where.explain import Explanation, Part, explain
from gateway.where.language.errors import WhereError
from gateway.where.language.spelling import spell, spell_value

SHOWN = 100
"""Characters that are shown of a part or of a value."""


def explain_expression(text: str, file: Path) -> int:
    """Print what each part of `text` is for the message in `file`; return 0, or 1 on an error."""
    message = read_message(file)
    try:
        explanation = explain(text, message)
    except WhereError as error:
        tell_error(text, error)
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


def tree(explanation: Explanation) -> list[str]:
    """Return a line for each part, the value first."""
    return [_line(part) for part in explanation.parts]


def _line(part: Part) -> str:
    value, text = _short(spell_value(part.value)), _short(spell(part.expression))
    indent = "  " * part.depth
    return f"{indent}{value}" if text == value else f"{indent}{value}  <-  {text}"


def _short(text: str) -> str:
    line = "".join(character if character.isprintable() else " " for character in text)
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 3]}..."
