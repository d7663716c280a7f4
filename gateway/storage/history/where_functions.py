"""The SQL functions that `$where` expressions call once they are translated to SQL."""

import json
import sqlite3
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from gateway.mqtt.message import Message
from gateway.where.compile import COMPILER
from gateway.where.evaluation.closures import Condition, Reader
from gateway.where.language.conversions import Value, to_number
from gateway.where.language.expression import PayloadPath, TopicMatches
from gateway.where.language.functions import remainder
from gateway.where.language.like import TextMatcher, like_matcher, parse_pattern
from gateway.where.sqlite.operand import (
    CONTAINER_BLOB,
    FALSE_BLOB,
    PATTERN_ESCAPE,
    TRUE_BLOB,
)

_KEPT: Final = 256
"""Paths, patterns and topic filters that are kept compiled; the least used one makes room."""

SqliteValue = int | float | str | bytes | None


def register_where_functions(connection: sqlite3.Connection) -> None:
    """Make the functions known to `connection`, for rows of the gateway's history."""
    fields = _Fields()
    functions: list[tuple[str, int, Callable[..., SqliteValue]]] = [
        ("where_number", 1, _strict(to_number)),
        ("where_text", 1, _strict(lambda data: Message("", data).text())),
        ("where_payload", 2, fields.payload),
        ("where_user", 2, fields.user),
        ("where_bare", 3, fields.bare),
        ("where_topic_level", 2, _topic_level),
        ("where_topic_matches", 2, _topic_matches),
        ("where_remainder", 2, _strict(remainder)),
        ("where_length", 1, _strict(len)),
        ("where_substr", 3, _strict(lambda text, start, size: text[start - 1 :][:size])),
        ("where_like", 2, _strict(lambda text, pattern: _matcher(pattern)(text))),
    ]
    for name, arguments, function in functions:
        connection.create_function(name, arguments, function, deterministic=True)


def _strict(function: Callable[..., Any]) -> Callable[..., SqliteValue]:
    def with_null(*arguments: SqliteValue) -> SqliteValue:
        value: SqliteValue = None if None in arguments else function(*arguments)
        return value

    return with_null


class _Fields:
    """Reads fields of one row after the other; a row is parsed once for all its fields."""

    def __init__(self) -> None:
        self._message = Message("")
        self._properties: str | None = None
        self._user: dict[str, str] = {}

    def payload(self, payload: bytes, steps: str) -> SqliteValue:
        if payload != self._message.payload:
            self._message = Message("", payload)
        return _tagged(_reader(steps)(self._message))

    def user(self, properties: str | None, key: str) -> SqliteValue:
        if properties != self._properties:
            self._properties = properties
            self._user = dict(json.loads(properties or "[]"))
        return self._user.get(key)

    def bare(self, properties: str | None, payload: bytes, name: str) -> SqliteValue:
        value = self.user(properties, name)
        return self.payload(payload, json.dumps([name])) if value is None else value


def _tagged(value: Value) -> SqliteValue:
    """Give TRUE, FALSE and containers as the blobs that stand for them."""
    if isinstance(value, bool):
        return TRUE_BLOB if value else FALSE_BLOB
    return CONTAINER_BLOB if isinstance(value, dict | list) else value


def _topic_level(topic: str, index: int) -> str | None:
    levels = topic.split("/")
    return levels[index] if index < len(levels) else None


def _topic_matches(topic: str, topic_filter: str) -> SqliteValue:
    return _topic_test(topic_filter)(Message(topic))


@lru_cache(_KEPT)
def _reader(steps: str) -> Reader:
    return COMPILER.value(PayloadPath(tuple(json.loads(steps))))


@lru_cache(_KEPT)
def _topic_test(topic_filter: str) -> Condition:
    return COMPILER.truth(TopicMatches(topic_filter))


@lru_cache(_KEPT)
def _matcher(pattern: str) -> TextMatcher:
    return like_matcher(parse_pattern(pattern, PATTERN_ESCAPE))
