"""Closures for fields: what a message holds under a name (where-language 6)."""

from operator import attrgetter
from typing import Any, Final

from gateway.mqtt.message import UNKNOWN, Message
from gateway.mqtt.payload import STRING_CODE_POINTS
from gateway.where.evaluation.closures import Compiler, Reader
from gateway.where.language.conversions import Value
from gateway.where.language.expression import (
    BareName,
    PayloadPath,
    SystemField,
    TopicLevel,
    UserProperty,
)


def _payload_size(message: Message) -> int:
    return len(message.payload)


_SYSTEM_FIELDS: Final[dict[str, Reader]] = {
    "topic": attrgetter("topic"),
    "qos": attrgetter("qos"),
    "retain": attrgetter("retain"),
    "clientid": attrgetter("client_id"),
    "username": attrgetter("username"),
    "payload": Message.text,
    "content_type": attrgetter("content_type"),
    "response_topic": attrgetter("response_topic"),
    "correlation_data": Message.correlation_text,
    "payload_size": _payload_size,
    "payload_format": attrgetter("payload_format"),
    "message_expiry": attrgetter("message_expiry"),
    "received_at": attrgetter("received_at"),
}


def system_field(field: SystemField, _: Compiler) -> Reader:
    """Read a field of where-language 6.1."""
    return _SYSTEM_FIELDS[field.name]


def topic_level(field: TopicLevel, _: Compiler) -> Reader:
    """Read `topic[index]`."""
    index = field.index

    def level(message: Message) -> str | None:
        levels = message.levels()
        return levels[index] if index < len(levels) else None

    return level


def user_property(field: UserProperty, _: Compiler) -> Reader:
    """Read `$user.key`."""
    key = field.key
    return lambda message: message.user().get(key)


def bare_name(field: BareName, _: Compiler) -> Reader:
    """Read a user property or else a payload member."""
    name = field.name
    payload_member = _payload_member(name)

    def property_or_member(message: Message) -> Value:
        user = message.user()
        return user[name] if name in user else payload_member(message)

    return property_or_member


def payload_path(field: PayloadPath, _: Compiler) -> Reader:
    """Read `payload.a[0]`; a path of one key is most of them and has no loop."""
    steps = field.steps
    first = steps[0]
    if len(steps) == 1 and isinstance(first, str):
        return _payload_member(first)
    return lambda message: _walk(message.json(), steps)


def _payload_member(key: str) -> Reader:
    """Read one member: what most filters do, without a call that can be spared."""

    def member(message: Message) -> Value:
        container = message._json  # noqa: SLF001 - decoded, if anybody has asked
        if container is UNKNOWN:
            container = message.json()
        if type(container) is not dict:
            return None
        value: Value = container.get(key)
        return None if type(value) is str and len(value) > STRING_CODE_POINTS else value

    return member


def _walk(container: Any, steps: tuple[str | int, ...]) -> Value:
    for step in steps:
        if isinstance(step, str):
            container = container.get(step) if type(container) is dict else None
        elif type(container) is list and step < len(container):
            container = container[step]
        else:
            return None
    return within_limit(container)


def within_limit(value: Any) -> Value:
    """Hold a JSON string against the STRING limit (where-language 4)."""
    return None if type(value) is str and len(value) > STRING_CODE_POINTS else value
