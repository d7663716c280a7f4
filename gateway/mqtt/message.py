"""An application message as the gateway accepted it, shared by everyone who gets it."""

from typing import Any

from gateway.mqtt.output import Pledge

UNKNOWN: Any = object()
"""Stands for what nobody has asked for yet."""


class Message:
    """One accepted message; absent optional fields are None.

    `received_at` is wall time in milliseconds since 1970, `arrived` monotonic seconds of the
    same moment (what expiry counts from), `qos` and `retain` are the publisher's. `size` is what
    `message_size` has worked out, 0 before; `holders` counts the places in queues that hold it,
    `owed` the deliveries in memory that it is kept for on disk, where its number is `row`; there
    others may refer to it too if it is `shared`.
    `pledge` is what its publisher's answer waits for, set while it is handed out.
    `commit_within` is its durability class: the seconds by which its commit may be put off, 0.0
    for none, None for a message that is kept in memory alone.
    The fields that begin with an underscore keep what `$where` has worked out of the others.
    """

    __slots__ = (
        "_decoded",
        "_json",
        "_levels",
        "_part_values",
        "_user",
        "arrived",
        "client_id",
        "commit_within",
        "content_type",
        "correlation_data",
        "holders",
        "message_expiry",
        "owed",
        "payload",
        "payload_format",
        "pledge",
        "qos",
        "received_at",
        "response_topic",
        "retain",
        "row",
        "shared",
        "size",
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
        self.size = 0
        self.holders = 0
        self.pledge: Pledge | None = None
        self.owed = 0
        self.row = 0
        self.shared = False
        self._decoded: str | None = UNKNOWN
        self._json: Any = UNKNOWN
        self._levels: list[str] = UNKNOWN
        self._part_values: dict[Any, Any] | None = None
        self._user: dict[str, str] = UNKNOWN
