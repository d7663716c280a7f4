"""What is a valid topic name or topic filter, and which matches which."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import check_topic_filter, check_topic_name, split_shared, topic_matches
from tests.support.broker.topics import TOPIC_FILTERS, TOPICS
from tests.support.naive.matcher import matches
from tests.support.table import table

VALID_NAMES = ["a", "/", "//", "a/b", "/a", "a/", "a b", "$SYS/x", "$share/g/a", "°", "a" * 65_535]

INVALID_NAMES = [
    ("", "is empty"),
    ("#", "holds a wildcard"),
    ("a/+", "holds a wildcard"),
    ("a+", "holds a wildcard"),
    ("a\0b", "holds U+0000"),
    ("a\ud800", "holds a surrogate, which UTF-8 has no bytes for"),
    ("a" * 65_536, "has 65536 bytes; at most 65535"),
    ("€" * 21_846, "has 65538 bytes; at most 65535"),
]

VALID_FILTERS = [
    *["a", "/", "//", "#", "+", "+/+", "/+", "+/", "a/#", "/#", "+/#", "a/+/b", "$SYS/#", "a b"],
    *["$share/g/a", "$share/g/#", "$share/g/+/a", "$share/g//", "$sharea/b", "a" * 65_535],
]

INVALID_FILTERS = [
    ("", "is empty"),
    ("a\0", "holds U+0000"),
    ("\udfff", "holds a surrogate, which UTF-8 has no bytes for"),
    ("a" * 65_536, "has 65536 bytes; at most 65535"),
    ("a#", "has a # that is not its whole last level"),
    ("a/#/b", "has a # that is not its whole last level"),
    ("#/", "has a # that is not its whole last level"),
    ("##", "has a # that is not its whole last level"),
    ("a/b#", "has a # that is not its whole last level"),
    ("#a", "has a # that is not its whole last level"),
    ("a+", "has a + that is not a whole level"),
    ("+a/b", "has a + that is not a whole level"),
    ("a/++", "has a + that is not a whole level"),
    ("+#", "has a # that is not its whole last level"),
    ("$share", "has no share name"),
    ("$share/", "has no share name"),
    ("$share//a", "has no share name"),
    ("$share/g", "has no topic filter behind its share name"),
    ("$share/g/", "has no topic filter behind its share name"),
    ("$share/+/a", "has a wildcard in its share name"),
    ("$share/g#/a", "has a wildcard in its share name"),
    ("$share/g/a#", "has a # that is not its whole last level"),
    ("$share/g/a+/b", "has a + that is not a whole level"),
]


@table("topic", VALID_NAMES, ids=lambda topic: topic[:12])
def test_a_valid_topic_name(topic: str) -> None:
    check_topic_name(topic)


@table(("topic", "fault"), INVALID_NAMES, ids=lambda text: repr(text[:12]))
def test_an_invalid_topic_name(topic: str, fault: str) -> None:
    with pytest.raises(ProtocolError) as raised:
        check_topic_name(topic)
    assert raised.value.reason_code == ReasonCode.TOPIC_NAME_INVALID
    assert raised.value.reason == f"topic name {topic[:80]!r} {fault}"


@table("topic_filter", VALID_FILTERS, ids=lambda text: text[:12])
def test_a_valid_topic_filter(topic_filter: str) -> None:
    check_topic_filter(topic_filter)


@table(("topic_filter", "fault"), INVALID_FILTERS, ids=lambda text: repr(text[:12]))
def test_an_invalid_topic_filter(topic_filter: str, fault: str) -> None:
    with pytest.raises(ProtocolError) as raised:
        check_topic_filter(topic_filter)
    assert raised.value.reason_code == ReasonCode.TOPIC_FILTER_INVALID
    assert raised.value.reason == f"topic filter {topic_filter[:80]!r} {fault}"


@pytest.mark.uncovered
@given(TOPIC_FILTERS)
def test_a_filter_of_whole_levels_is_valid(topic_filter: str) -> None:
    check_topic_filter(topic_filter)
    check_topic_filter(f"$share/group/{topic_filter}")


@given(st.text(st.sampled_from("a/+#$\0"), max_size=8))
def test_a_topic_name_is_a_topic_filter_without_wildcards(text: str) -> None:
    assert is_valid_name(text) == (is_valid_filter(text) and not {"+", "#"} & set(text))


def is_valid_name(text: str) -> bool:
    try:
        check_topic_name(text)
    except ProtocolError:
        return False
    return True


def is_valid_filter(text: str) -> bool:
    try:
        check_topic_filter(text)
    except ProtocolError:
        return False
    return True


@table(
    ("topic_filter", "parts"),
    [
        ("a/b", (None, "a/b")),
        ("$share", (None, "$share")),
        ("$shared/a", (None, "$shared/a")),
        ("$share/g/a/b", ("g", "a/b")),
        ("$share/g//", ("g", "/")),
        ("$share/g", ("g", "")),
        ("$share/", ("", "")),
    ],
)
def test_a_shared_filter_is_split(topic_filter: str, parts: tuple[str | None, str]) -> None:
    assert split_shared(topic_filter) == parts


MATCHES = [
    ("a", "a", True),
    ("a", "b", False),
    ("a", "A", False),
    ("a", "a/", False),
    ("a/", "a", False),
    ("a/b", "a/b", True),
    ("a/b", "a", False),
    ("a", "a/b", False),
    ("#", "a", True),
    ("#", "/", True),
    ("a/#", "a", True),
    ("a/#", "a/", True),
    ("a/#", "a/b/c", True),
    ("a/#", "ab", False),
    ("a/b/#", "a", False),
    ("+", "a", True),
    ("+", "a/b", False),
    ("+", "/a", False),
    ("/+", "/a", True),
    ("+/+", "/a", True),
    ("+/+", "a", False),
    ("a/+", "a/", True),
    ("a/+", "a", False),
    ("a/+/c", "a/b/c", True),
    ("a/+/c", "a/b/d", False),
    ("+/#", "a", True),
    ("+/b/#", "a/b", True),
    ("#", "$SYS/a", False),
    ("+/a", "$SYS/a", False),
    ("+", "$", False),
    ("$SYS/#", "$SYS/a", True),
    ("$SYS/+", "$SYS/a", True),
    ("$SYS/#", "$SYS", True),
    ("a/#", "a/$b", True),
    ("a/+", "a/$b", True),
    ("é", "e\u0301", False),
]
"""Section 4.7's own examples and their neighbours; strings are not normalized [MQTT-4.7.3-4]."""


@table(("topic_filter", "topic", "expected"), MATCHES)
def test_matching(topic_filter: str, topic: str, expected: bool) -> None:
    assert topic_matches(topic_filter, topic) is expected


@pytest.mark.uncovered
@given(TOPIC_FILTERS, TOPICS)
def test_matching_is_what_the_naive_matcher_says(topic_filter: str, topic: str) -> None:
    assert topic_matches(topic_filter, topic) == matches(topic_filter, topic)


@given(TOPICS)
def test_a_topic_name_matches_itself_alone_and_its_children(topic: str) -> None:
    assert topic_matches(topic, topic)
    assert not topic_matches(topic, f"{topic}/x")
    assert topic_matches(f"{topic}/#", topic)
    assert topic_matches(f"{topic}/#", f"{topic}/x/y")
