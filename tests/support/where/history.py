"""The functions that remember, worked out of the whole history: slow, and an oracle.

Every call is replaced by its value according to the words of where-language 13, and what is
left is an expression for the walker.
"""

from dataclasses import replace

from gateway.mqtt.message import Message
from gateway.where.language.conversions import Value, to_boolean, to_number
from gateway.where.language.expression import Expression, Literal, Stateful, SystemField
from gateway.where.language.functions import OPERATIONS, absolute
from gateway.where.language.parser import parse
from tests.support.where.walker import compared, value_of


def results_of_a_rule(text: str, messages: list[Message]) -> list[bool | None]:
    """Give the result of a rule for each message that reaches it."""
    tree = parse(text, stateful=True)
    results: list[bool | None] = []
    for position, message in enumerate(messages):
        earlier = [
            (messages[place], results[place] is True)
            for place in range(position)
            if messages[place].topic == message.topic
        ]
        plain = _without_memory(tree, message, earlier)
        results.append(to_boolean(value_of(plain, message)))
    return results


History = list[tuple[Message, bool]]


def _without_memory(node: Expression, message: Message, earlier: History) -> Expression:
    if isinstance(node, Stateful):
        return Literal(_VALUES[node.function](node.operands, message, earlier))
    operands = tuple(_without_memory(operand, message, earlier) for operand in node.operands)
    return replace(node, operands=operands)


Arguments = tuple[Expression, ...]


def _prev(arguments: Arguments, message: Message, earlier: History) -> Value:
    values = [value_of(arguments[0], one) for one, _ in earlier]
    return next((value for value in reversed(values) if value is not None), None)


def _sent(arguments: Arguments, message: Message, earlier: History) -> Value:
    forwarded = [one for one, passed in earlier if passed]
    return value_of(arguments[0], forwarded[-1]) if forwarded else None


def _changed(arguments: Arguments, message: Message, earlier: History) -> Value:
    value = value_of(arguments[0], message)
    if value is None:
        return False
    previous = _prev(arguments, message, earlier)
    return previous is None or compared("=", value, previous) is not True


def _deadband(arguments: Arguments, message: Message, earlier: History) -> Value:
    value, width = (to_number(value_of(argument, message)) for argument in arguments)
    if value is None or width is None:
        return False
    sent = to_number(_sent(arguments, message, earlier))
    if sent is None:
        return True
    difference = OPERATIONS["-"](value, sent)
    distance = None if difference is None else absolute(difference)
    return compared(">=", distance, width)


def _every(arguments: Arguments, message: Message, earlier: History) -> Value:
    now, seconds = message.received_at, to_number(value_of(arguments[0], message))
    if now is None or seconds is None:
        return None
    sent = _sent((SystemField("received_at"),), message, earlier)
    if sent is None:
        return True
    elapsed = OPERATIONS["-"](now, to_number(sent) or 0)
    return compared(">=", elapsed, OPERATIONS["*"](seconds, 1000))


_VALUES = {
    "PREV": _prev,
    "SENT": _sent,
    "CHANGED": _changed,
    "DEADBAND": _deadband,
    "EVERY": _every,
}
