"""A message as the gateway accepted it: what is routed, and what `$where` looks at.

The raw fields are set once, at acceptance; text, JSON value and topic levels are worked out
at the first question and kept, so that many filters cost one decode (where-language 14.2).
"""

from typing import Any

_UNKNOWN: Any = object()


class Message:
    """One accepted message; absent optional fields are None.

    `received_at` is wall time in milliseconds since 1970, `arrived` monotonic seconds of the
    same moment (what expiry counts from), `qos` and `retain` are the publisher's.
    """

    __slots__ = (
        "_json",
        "_levels",
        "_text",
        "_user",
        "arrived",
        "client_id",
        "content_type",
        "correlation_data",
        "message_expiry",
        "payload",
        "payload_format",
        "qos",
        "received_at",
        "response_topic",
        "retain",
        "topic",
        "user_properties",
        "username",
    )

    def __init__(
        self,
        topic: str,
        payload: bytes = b"",
        qos: int = 0,
        retain: bool = False,
        *,
        client_id: str | None = None,
        username: str | None = None,
        received_at: int | None = None,
        arrived: float = 0.0,
        content_type: str | None = None,
        response_topic: str | None = None,
        correlation_data: bytes | None = None,
        message_expiry: int | None = None,
        payload_format: int | None = None,
        user_properties: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.client_id = client_id
        self.username = username
        self.received_at = received_at
        self.arrived = arrived
        self.content_type = content_type
        self.response_topic = response_topic
        self.correlation_data = correlation_data
        self.message_expiry = message_expiry
        self.payload_format = payload_format
        self.user_properties = user_properties
        self._text = _UNKNOWN
        self._json = _UNKNOWN
        self._levels = _UNKNOWN
        self._user = _UNKNOWN
