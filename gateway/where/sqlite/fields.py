"""Fields of a recorded message in SQL: a column, or a function of columns.

The columns are those of the gateway's history. What needs the payload's JSON, the user
properties or a text's decoding is a deterministic function which the program that runs the SQL
provides: SQLite's own `json_extract` takes the first of two equal members, and newer versions of
it read JSON5 (where-language 16).
"""

import json
from collections.abc import Callable
from typing import Any, Final

from gateway.where.language.expression import (
    BareName,
    Expression,
    PayloadPath,
    SystemField,
    TopicLevel,
    TopicMatches,
    UserProperty,
)
from gateway.where.sqlite.operand import Kind, Operand, Steps

_COLUMNS: Final = {
    "topic": Operand("topic", Kind.STRING),
    "qos": Operand("qos", Kind.INTEGER),
    "retain": Operand("retain", Kind.BOOLEAN),
    "clientid": Operand("client_id", Kind.STRING),
    "username": Operand("username", Kind.STRING),
    "payload": Operand("where_text(payload)", Kind.STRING, depth=1),
    "content_type": Operand("content_type", Kind.STRING),
    "response_topic": Operand("response_topic", Kind.STRING),
    "correlation_data": Operand("where_text(correlation_data)", Kind.STRING, depth=1),
    "payload_size": Operand("length(payload)", Kind.INTEGER, depth=1),
    "payload_format": Operand("payload_format", Kind.INTEGER),
    "message_expiry": Operand("message_expiry", Kind.INTEGER),
    "received_at": Operand("time", Kind.INTEGER),
}


def _system_field(field: SystemField, _: Steps) -> Operand:
    return _COLUMNS[field.name]


def _topic_level(field: TopicLevel, steps: Steps) -> Operand:
    return steps.make(f"where_topic_level(topic, {field.index})", Kind.STRING)


def _user_property(field: UserProperty, steps: Steps) -> Operand:
    key = steps.parameter(field.key)
    return steps.make(f"where_user(user_properties, {key})", Kind.STRING)


def _bare_name(field: BareName, steps: Steps) -> Operand:
    name = steps.parameter(field.name)
    return steps.make(f"where_bare(user_properties, payload, {name})", Kind.ANY)


def _payload_path(field: PayloadPath, steps: Steps) -> Operand:
    path = steps.parameter(json.dumps(field.steps))
    return steps.make(f"where_payload(payload, {path})", Kind.ANY)


def _topic_matches(test: TopicMatches, steps: Steps) -> Operand:
    topic_filter = steps.parameter(test.topic_filter)
    if "+" in test.topic_filter or "#" in test.topic_filter:
        return steps.make(f"where_topic_matches(topic, {topic_filter})", Kind.BOOLEAN)
    return steps.make(f"topic = {topic_filter}", Kind.BOOLEAN)


FIELDS: Final[dict[type[Expression], Callable[[Any, Steps], Operand]]] = {
    SystemField: _system_field,
    TopicLevel: _topic_level,
    UserProperty: _user_property,
    BareName: _bare_name,
    PayloadPath: _payload_path,
    TopicMatches: _topic_matches,
}
"""How each field is translated."""
