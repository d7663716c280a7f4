"""The `message` object of a vector file (where-language, appendix B)."""

import base64
import binascii
import json
import sys
from pathlib import Path
from typing import Any

from gateway.errors import TidegateError
from gateway.mqtt.message import Message

_OPTIONAL = {
    "clientid": str,
    "username": str,
    "content_type": str,
    "response_topic": str,
    "correlation_data": str,
    "message_expiry": int,
    "payload_format": int,
    "received_at": int,
    "payload": str,
    "payload_b64": str,
}
_KEYS = ("topic", "qos", "retain", "user_properties", *_OPTIONAL)


def read_message(file: Path) -> Message:
    """Return the message that `file`, or standard input for `-`, describes in JSON.

    Raises TidegateError with the fault, for an unknown key, too.
    """
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text("utf-8")
        row = json.loads(text)
        _refuse_unknown_keys(row)
        return message_of(row)
    except OSError as error:
        raise TidegateError(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise TidegateError(f"{file}: {error}") from error


def _refuse_unknown_keys(row: Any) -> None:
    unknown = sorted(set(row) - set(_KEYS)) if isinstance(row, dict) else []
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}; there are {', '.join(_KEYS)}")


def message_of(row: Any) -> Message:
    """Return the message of a `message` object; raise ValueError with the fault."""
    if not isinstance(row, dict):
        raise ValueError("a message is an object")  # noqa: TRY004 - one error for every mistake
    _check(row)
    correlation_data = row.get("correlation_data")
    return Message(
        row["topic"],
        _payload(row),
        row.get("qos", 0),
        row.get("retain", False),
        client_id=row.get("clientid"),
        username=row.get("username"),
        received_at=row.get("received_at"),
        content_type=row.get("content_type"),
        response_topic=row.get("response_topic"),
        correlation_data=None if correlation_data is None else correlation_data.encode(),
        message_expiry=row.get("message_expiry"),
        payload_format=row.get("payload_format"),
        user_properties=_user_properties(row.get("user_properties", [])),
    )


def _check(row: dict[str, Any]) -> None:
    if not isinstance(row.get("topic"), str):
        raise ValueError(f"topic is {row.get('topic')!r}, must be a text")  # noqa: TRY004
    if type(qos := row.get("qos", 0)) is not int or qos not in (0, 1, 2):
        raise ValueError(f"qos is {qos!r}, must be 0, 1 or 2")
    if not isinstance(retain := row.get("retain", False), bool):
        raise ValueError(f"retain is {retain!r}, must be true or false")  # noqa: TRY004
    for key, kind in _OPTIONAL.items():
        value = row.get(key)
        if value is not None and type(value) is not kind:
            word = "a text" if kind is str else "a whole number"
            raise ValueError(f"{key} is {value!r}, must be {word}")


def _payload(row: dict[str, Any]) -> bytes:
    encoded = row.get("payload_b64")
    if encoded is None:
        return bytes((row.get("payload") or "").encode())
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise ValueError(f"payload_b64: {error}") from error


def _user_properties(pairs: Any) -> tuple[tuple[str, str], ...]:
    try:
        properties = tuple((key, value) for key, value in pairs)
    except (TypeError, ValueError):
        properties = ((None, None),)
    if not all(isinstance(text, str) for pair in properties for text in pair):
        raise ValueError(f"user_properties is {pairs!r}, must be a list of [name, value] pairs")
    return properties
