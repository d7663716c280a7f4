"""`tidegate where explain`: the tree of an expression with the value of every part."""

from pathlib import Path

from gateway.cli.where_check import tell_error
from gateway.cli.where_message import read_message
from gateway.where.explain import Explanation, explain, tree
from gateway.where.language.errors import WhereError
from gateway.where.language.spelling import spell_value


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
