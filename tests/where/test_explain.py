import pytest
from hypothesis import given

from gateway.mqtt.message import Message
from gateway.where.explain import explain
from gateway.where.language.errors import WhereError
from gateway.where.language.spelling import spell
from gateway.where.rule import compile_rule
from tests.support.where.strategies import messages, rule_expressions


@pytest.mark.uncovered
@given(rule_expressions(), messages())
def test_the_result_is_that_of_a_rule_at_its_first_message(text: str, message: Message) -> None:
    explanation = explain(text, message)
    where = compile_rule(text)
    assert explanation.result is where.evaluate(message)
    assert not where.slots or explanation.stateful  # folding may leave no call


def test_every_part_has_its_value_also_where_nobody_asks() -> None:
    message = Message("t", b'{"temp": 31.5, "list": [1]}', user_properties=(("site", "B"),))
    explanation = explain("FALSE AND payload.temp > 30 OR $user.site = 'A' OR list", message)
    assert [(part.depth, spell(part.expression), part.value) for part in explanation.parts] == [
        (0, "FALSE AND payload.temp > 30 OR $user.site = 'A' OR list", None),
        (1, "FALSE AND payload.temp > 30", False),
        (2, "FALSE", False),
        (2, "payload.temp > 30", True),
        (3, "payload.temp", 31.5),
        (3, "30", 30),
        (1, "$user.site = 'A'", False),
        (2, "$user.site", "B"),
        (2, "'A'", "A"),
        (1, "list", [1]),
    ]
    assert (explanation.result, explanation.stateful) == (None, False)


def test_a_function_that_remembers_sees_what_came_before() -> None:
    message = Message("t", b'{"a":1}')
    for earlier, changed in (([], True), ([(message, True)], False)):
        explanation = explain("CHANGED(payload.a)", message, earlier=earlier)
        assert (explanation.result, explanation.stateful) == (changed, True)


def test_an_error() -> None:
    with pytest.raises(WhereError):
        explain("a =", Message("t"))
