"""The value of every part of an expression for a message."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gateway.mqtt.message import Message
from gateway.where.compile import TreeCompiler
from gateway.where.evaluation.stateful import Slots
from gateway.where.language.conversions import Value, to_boolean
from gateway.where.language.expression import Expression, Stateful
from gateway.where.language.folding import without_identity
from gateway.where.language.parser import parse
from gateway.where.language.spelling import spell, spell_value


@dataclass(frozen=True, slots=True)
class Part:
    """A node of the tree with its value; `depth` is 0 for the whole expression."""

    expression: Expression
    depth: int
    value: Value


@dataclass(frozen=True, slots=True)
class Explanation:
    """The parts in order, the result, and whether any has a memory."""

    parts: list[Part]
    result: bool | None
    stateful: bool


def explain(
    text: str,
    message: Message,
    earlier: Iterable[tuple[Message, bool]] = (),
    *,
    identity: bool = True,
) -> Explanation:
    """Evaluate each part separately, even unneeded ones; raise WhereError.

    Functions with memory are allowed and remember the `earlier` messages: messages of the same
    topic in order, each with whether it was forwarded. Without `identity`, `$clientid` and
    `$username` are NULL.
    """
    slots = Slots()
    compiler = TreeCompiler({Stateful: slots.build})
    tree = parse(text, stateful=True)
    nodes = list(_walk(tree if identity else without_identity(tree), 0))
    readers = [compiler.value(node) for node, _ in nodes]
    slots.row = (None,) * len(slots)
    for one, forwarded in earlier:
        slots.row = slots.after(one, passed=forwarded)
    parts = [
        Part(node, depth, read(message)) for (node, depth), read in zip(nodes, readers, strict=True)
    ]
    return Explanation(parts, to_boolean(parts[0].value), stateful=bool(slots))


def _walk(expression: Expression, depth: int) -> Iterator[tuple[Expression, int]]:
    yield expression, depth
    for operand in expression.operands:
        yield from _walk(operand, depth + 1)


SHOWN = 100
"""Characters that are shown of a part or of a value."""


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
