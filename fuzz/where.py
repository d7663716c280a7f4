"""Any expression and any payload: an error within the text, or the same result of every tier."""

import sys

import atheris

with atheris.instrument_imports(include=["gateway"]):
    from gateway.mqtt.message import Message
    from gateway.where.compile import COMPILER, Where, compile_where
    from gateway.where.generated import generate
    from gateway.where.language.errors import WhereError
    from gateway.where.rule import compile_rule

from tests.support.where.walker import walk

SEPARATOR = b"\0"  # which no MQTT text contains


def one_input(data: bytes) -> None:
    """Evaluate the expression before the first zero byte for the message behind it."""
    begin, _, payload = data.partition(SEPARATOR)
    text = begin.decode(errors="replace")
    message = Message("a/b", payload, 1, client_id="c", user_properties=(("k", "5"),))
    rule_accepts = evaluate_rule(text, message)
    where = accepted(text)
    if isinstance(where, WhereError):
        assert 0 <= where.position <= len(text)
        return
    assert rule_accepts
    result = where.evaluate(message)
    assert walk(text, message) is result
    generated = generate(where.expression, COMPILER)
    assert generated is None or generated(message) is result
    assert not (where.never_true and result)


def accepted(text: str) -> Where | WhereError:
    """Return the compiled filter, or why it is none."""
    try:
        return compile_where(text)
    except WhereError as error:
        return error


def evaluate_rule(text: str, message: Message) -> bool:
    """Return whether a rule may have the expression, which meets the message twice."""
    try:
        rule = compile_rule(text)
    except WhereError:
        return False
    for _ in range(2):
        rule.record(message, rule.evaluate(message))
    rule.promote()
    rule.evaluate(message)
    return True


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
