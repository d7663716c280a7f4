"""Expressions that are hardly meant so, and those that look like them."""

from gateway.where.language.likely_mistakes import likely_mistakes
from gateway.where.rule import compile_rule
from tests.support.table import table

MISTAKES = {
    'payload.state = "ON"': "\"ON\" is a name, and NULL where there is none of it: a text is 'ON'",
    'NOT (payload.state != "ON")': '"ON" is a name',
    "payload.state IN ('OFF', \"ON\")": '"ON" is a name',
    '"ON" = payload.state': '"ON" is a name',
    '"state" = "ON"': '"ON" is a name',
    "topic = 'a/+/b'": "no topic is 'a/+/b', a topic filter: use TOPIC_MATCHES('a/+/b')",
    "topic IN ('a', 'b/#')": "no topic is 'b/#'",
    "'#' != topic": "no topic is '#'",
    "payload.name LIKE '*x*'": "payload.name LIKE '*x*' knows no * and ?: % stands for any",
    "payload.name NOT LIKE 'x?'": "LIKE 'x?' knows no * and ?",
    "payload.t BETWEEN 10 AND 5": "payload.t BETWEEN 10 AND 5 is never TRUE",
    "payload.t > 10 AND payload.t < 5": "payload.t > 10 and payload.t < 5 are never TRUE together",
    "payload.t < 5 AND qos = 1 AND payload.t > 10": "are never TRUE together",
    "payload.t > 5 AND payload.t <= 5": "are never TRUE together",
    "payload.t = 1 AND payload.t = 2": "are never TRUE together",
    "payload.t = 1 AND payload.t > 1": "are never TRUE together",
    "payload.t <= 0 AND payload.t = 1": "are never TRUE together",
    "5 < payload.t AND -5 > payload.t": "are never TRUE together",
    "CHANGED(payload.t) AND (qos = 1 OR payload.t BETWEEN 1 AND -1)": "is never TRUE",
}


@table(("text", "expected"), MISTAKES.items(), ids=MISTAKES)
def test_a_likely_mistake_is_told_once(text: str, expected: str) -> None:
    (mistake,) = likely_mistakes(text, compile_rule(text).expression)
    assert expected in mistake


def test_what_looks_like_one_and_is_none() -> None:
    meant = [
        "payload.state = 'ON'",
        "\"my state\" = 'ON'",
        'payload."my state" = 5',
        '5 = "my state"',
        "payload.state = other",
        "topic = 'a/b+'",
        "payload.filter = 'a/+/b'",
        "TOPIC_MATCHES('a/+/b')",
        "topic LIKE 'a/%/b*'",
        "payload.name LIKE 'x*%'",
        "payload.name LIKE 'x'",
        "payload.t BETWEEN 5 AND 5",
        "payload.t BETWEEN payload.low AND 5",
        "payload.t >= 5 AND payload.t <= 5",
        "payload.t > 5 AND payload.t < 10 AND payload.t = 7",
        "payload.t > 5 AND payload.t > 10",
        "payload.t = 5 AND payload.t >= 5",
        "payload.t > 10 AND payload.u < 5",
        "payload.t > 10 OR payload.t < 5",
        "payload.t != 1 AND payload.t != 2",
        "payload.t = TRUE AND payload.t = 0",
    ]
    reported = {text: likely_mistakes(text, compile_rule(text).expression) for text in meant}
    assert not {text: mistakes for text, mistakes in reported.items() if mistakes}
