"""What Spark decides beside the evaluator: every vector of the language, and random expressions."""

import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from gateway.mqtt.message import Message
from gateway.where.language.errors import WhereError
from gateway.where.rule import compile_rule
from pipeline.backtest.spark_sql import decision
from tests.support.where.vectors import message_of, where_vectors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.uncovered]

SEED = 20261123
MEANS = {1: True, 0: False, -1: None}
AT_ONCE = 60
"""Expressions that are columns of one query."""
SCHEMA = (
    "topic string, payload binary, qos tinyint, retain boolean, clientid string, username string, "
    "content_type string, response_topic string, message_expiry bigint, payload_format tinyint, "
    "event_ms bigint"
)

FIELDS = (
    *(
        "payload.a",
        "payload.b",
        "payload.value",
        "payload.a.b",
        "payload.c1",
        "payload",
        "username",
    ),
    *("$qos", "$retain", "$topic", "topic[1]", "topic[7]", "$clientid", "$content_type"),
    *("$payload_size", "$received_at", "$message_expiry", "LENGTH(topic)", "payload.a + 1", "a"),
)
LITERALS = (
    *("0", "1", "2.5", "-3", "21.5", "9007199254740993", "1e300", "'on'", "'ON'", "''", "'a%'"),
    *("'true'", "'5'", "TRUE", "FALSE", "NULL", "'sensors'", "'é'"),
)
OFTEN = (
    *("payload.a = 'on'", "payload.value LIKE 'o_'", "payload.b IN ('on', '5')", "payload.a = '5'"),
    *("$received_at = 9007199254740992", "payload.a IS NULL", "payload.value > 20", "$retain = 1"),
)
PATTERNS = ("'%'", "'o_'", "'s%/_%'", "'50!%' ESCAPE '!'", "'\\%'", "'_'", "'%é'")
FILTERS = ("'sensors/#'", "'+/n1/#'", "'#'", "'a/b'", "'sensors/+/t'", "'sensors/n1/t/#'")
SCALARS = (
    *("0", "5", "5.0", "-3", "21.5", "true", "false", "null", '"on"', '"5"', '"true"', '""'),
    *("9007199254740993", "1e3", "1e999", '"\\u0041"', "[1]", '{"b":1}', "NaN", "007", '"é"'),
)
TOPICS = ("sensors/n1/t", "sensors", "a/b", "$SYS/x", "a//b", "sensors/n1/t/", "sensors/é/on")


def expression(draw: random.Random, depth: int = 3) -> str:
    """Return a random text; not every one is accepted."""
    if depth and draw.random() < 0.6:
        left, right = expression(draw, depth - 1), expression(draw, depth - 1)
        return draw.choice([f"({left}) AND ({right})", f"({left}) OR ({right})", f"NOT ({left})"])
    one, other = (draw.choice(FIELDS + LITERALS) for _ in range(2))
    return draw.choice(
        [
            f"{draw.choice(FIELDS)} {draw.choice(('=', '!=', '<', '<=', '>', '>='))} {other}",
            f"{one} {draw.choice(('=', '<', '>='))} {other}",
            f"{one} IS {draw.choice(('NULL', 'NOT NULL', 'TRUE', 'NOT FALSE'))}",
            f"{one} {draw.choice(('', 'NOT '))}BETWEEN {draw.choice(LITERALS)} AND {other}",
            f"{one} IN ({', '.join(draw.choice(LITERALS) for _ in range(3))})",
            f"{one} {draw.choice(('', 'NOT '))}LIKE {draw.choice(PATTERNS)}",
            f"TOPIC_MATCHES({draw.choice(FILTERS)})",
        ]
    )


def payload(draw: random.Random) -> bytes:
    members = [
        f'"{draw.choice(("a", "b", "value", "c1", "a b"))}"{draw.choice((":", " : "))}'
        f"{draw.choice(SCALARS)}"
        for _ in range(draw.randrange(4))
    ]
    text = "{" + draw.choice((",", ", ")).join(members) + "}"
    whole = draw.choice([text] * 6 + ["", "5", "[]", text + "x", " " + text + "\n"])
    return draw.choice([whole.encode()] * 9 + [whole.encode() + b"\xff"])


def message(draw: random.Random) -> Message:
    return Message(
        draw.choice(TOPICS),
        payload(draw),
        draw.randrange(3),
        draw.random() < 0.5,
        client_id=draw.choice([None, "on", "é"]),
        username=draw.choice([None, "true", "5"]),
        received_at=draw.choice([0, 1_763_740_000_000, 2**53 + 1]),
        content_type=draw.choice([None, "ON", "50%"]),
        message_expiry=draw.choice([None, 3]),
    )


def row_of(each: Message) -> tuple[Any, ...]:
    return (
        *(each.topic, bytearray(each.payload), each.qos, bool(each.retain), each.client_id),
        *(each.username, each.content_type, each.response_topic, each.message_expiry),
        *(each.payload_format, each.received_at),
    )


def decided(
    spark: "SparkSession", texts: Sequence[str], messages: Sequence[Message]
) -> Iterator[tuple[str, Message, bool | None]]:
    """Yield what Spark decides of each text for each message, where it decides."""
    rows = spark.createDataFrame([row_of(each) for each in messages], SCHEMA).coalesce(1).cache()
    made = {text: decision(compile_rule(text).expression) for text in texts}
    columns = {text: found for text, found in made.items() if found is not None}
    for start in range(0, len(columns), AT_ONCE):
        part = list(columns)[start : start + AT_ONCE]
        asked = rows.select(*(columns[text].alias(f"c{n}") for n, text in enumerate(part)))
        for row, each in zip(asked.collect(), messages, strict=True):
            answers: list[int | None] = list(row)
            for text, value in zip(part, answers, strict=True):
                if value is not None:
                    yield text, each, MEANS[value]
    rows.unpersist()


def agree(spark: "SparkSession", texts: Sequence[str], messages: Sequence[Message]) -> int:
    """Return how much Spark decided; all of it must be what the evaluator says."""
    rules = {text: compile_rule(text) for text in texts}
    count, wrong = 0, []
    for text, each, result in decided(spark, texts, messages):
        count += 1
        expected = rules[text].evaluate(each)
        if result is not expected:
            wrong.append((text, each.topic, each.payload, result, expected))
    assert not wrong, wrong[:5]
    return count


def test_every_vector(spark: "SparkSession") -> None:
    vectors = [row for row in where_vectors() if "result" in row]
    unique = {repr(row["message"]): message_of(row["message"]) for row in vectors}
    assert agree(spark, sorted({row["expr"] for row in vectors}), list(unique.values())) > 5_000


def test_random_expressions(compiled_spark: "SparkSession") -> None:
    draw = random.Random(SEED)
    texts = set(OFTEN)
    while len(texts) < 120:
        text = expression(draw)
        try:
            compile_rule(text)
        except WhereError:
            continue
        texts.add(text)
    assert agree(compiled_spark, sorted(texts), [message(draw) for _ in range(200)]) > 4_000


def test_what_remembers_is_decided_only_where_it_is_not_sent(spark: "SparkSession") -> None:
    high = Message("sensors/n1/t", b'{"value":31}', received_at=0)
    low = Message("sensors/n1/t", b'{"value":29}', received_at=0)
    text = "payload.value > 30 AND DEADBAND(payload.value, 1)"
    assert [(each.payload, result) for _, each, result in decided(spark, [text], [high, low])] == [
        (low.payload, False)
    ]
    for other in ("payload.value > 30 AND CHANGED(payload.value)", "EVERY(5)", "payload.value + 1"):
        assert decision(compile_rule(other).expression) is None, other


def test_filters_match_the_topics_that_they_match_in_a_gateway(spark: "SparkSession") -> None:
    filters = (*FILTERS, "'+/x'", "'+'", "'$SYS/#'", "'$SYS/+'", "'sensors/+'", "'+/+/t'")
    topics = (*TOPICS, "$x", "/", "sensors/", "x", "y/x")
    messages = [Message(topic, b"", 0, retain=False) for topic in topics]
    texts = [f"TOPIC_MATCHES({each})" for each in filters]
    assert agree(spark, texts, messages) == len(filters) * len(topics)
