"""One application message as the gateway accepted it, for whoever looks at what it says."""

from typing import Any

from gateway.mqtt.output import Barrier
from gateway.mqtt.properties import NO_PROPERTIES, Properties

UNKNOWN: Any = object()
"""Stands for what nobody has asked for yet."""


UNBOUNDED = 1 << 62
"""More work than any `$where` is for a message."""


class Message:
    """One accepted message; absent optional fields are None.

    `received_at` is wall time in milliseconds since 1970, `arrived` monotonic seconds of the
    same moment (what expiry counts from), `qos` and `retain` are the publisher's.
    `commit_within` is its durability class: the seconds by which its commit may be put off, 0.0
    for none, None for a message that is kept in memory alone. `barrier` lets its
    publisher's answer leave before that commit, once every receiver that joins it has the message.
    `room` is how much work a `$where` may still cost that is evaluated for it.
    The fields that begin with an underscore keep what `$where` has worked out of the others.
    """

    __slots__ = (
        "_decoded",
        "_json",
        "_levels",
        "_part_values",
        "_user",
        "arrived",
        "barrier",
        "client_id",
        "commit_within",
        "content_type",
        "correlation_data",
        "message_expiry",
        "payload",
        "payload_format",
        "qos",
        "received_at",
        "response_topic",
        "retain",
        "room",
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
        self.commit_within: float | None = 0.0
        self.barrier: Barrier | None = None
        self.room = UNBOUNDED
        self._decoded: str | None = UNKNOWN
        self._json: Any = UNKNOWN
        self._levels: list[str] = UNKNOWN
        self._part_values: dict[Any, Any] | None = None
        self._user: dict[str, str] = UNKNOWN

    def set_properties(self, fields: Properties) -> None:
        """Take over what a PUBLISH says beside its topic and payload."""
        self.content_type = fields.content_type
        self.response_topic = fields.response_topic
        self.correlation_data = fields.correlation_data
        self.message_expiry = fields.message_expiry_interval
        self.payload_format = fields.payload_format_indicator
        self.user_properties = fields.user_properties

    def properties(self) -> Properties:
        """Return the same as a PUBLISH says it: [MQTT-3.3.2-4], -15, -16, -17, -18, -20."""
        if not (
            self.user_properties
            or self.content_type is not None
            or self.payload_format is not None
            or self.message_expiry is not None
            or self.response_topic is not None
            or self.correlation_data is not None
        ):
            return NO_PROPERTIES
        return Properties(
            payload_format_indicator=self.payload_format,
            message_expiry_interval=self.message_expiry,
            content_type=self.content_type,
            response_topic=self.response_topic,
            correlation_data=self.correlation_data,
            user_properties=self.user_properties,
        )
