import pytest
from hypothesis import given

from gateway.routing.where.compile import compile_where
from gateway.routing.where.message import Message
from tests.support.naive_matcher import matches
from tests.support.topics import TOPIC_FILTERS, TOPICS

MESSAGE = Message("t", b'{"i":5,"s":"5","b":true,"o":{}}', user_properties=(("n", "10"),))


@given(TOPIC_FILTERS, TOPICS)
def test_topic_matches(topic_filter: str, topic: str) -> None:
    where = compile_where(f"TOPIC_MATCHES('{topic_filter}')")
    assert where.evaluate(Message(topic)) is matches(topic_filter, topic)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("payload.i IN (1, 5)", True),
        ("payload.i IN (1, NULL)", None),
        ("payload.i IN (NULL, 5)", True),
        ("payload.i IN (payload.s, NULL)", True),
        ("payload.s IN ('5', 'x')", True),
        ("payload.s IN ('x')", False),
        ("payload.i IN ('x', '5')", True),
        ("payload.i IN ('x', '6')", None),
        ("payload.b IN ('TRUE')", True),
        ("payload.o IN ('x')", None),
        ("nope IN ('x')", None),
        ("payload.i BETWEEN 5 AND 5", True),
        ("payload.i BETWEEN NULL AND 4", False),
        ("payload.i BETWEEN NULL AND 5", None),
        ("payload.i BETWEEN 6 AND NULL", False),
        ("payload.i BETWEEN 5 AND NULL", None),
        ("n BETWEEN '9' AND 11", False),
        ("5 < n", True),
        ("'5' < n", False),
        ("TRUE = payload.b", True),
        ("n = payload.i", False),
        ("payload.i LIKE '_' AND payload.b LIKE 'tr%'", True),
        ("payload.o LIKE '%'", None),
    ],
)
def test_predicate(text: str, result: bool | None) -> None:
    assert compile_where(text).evaluate(MESSAGE) is result
