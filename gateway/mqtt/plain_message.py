"""Retained messages that say nothing beside their topic and payload, in as few bytes as can be."""


class Origin:
    """What all messages have in common that one client published in one turn.

    The fields are those of `Message`, and mean the same.
    """

    __slots__ = (
        "arrived",
        "client_id",
        "commit_within",
        "qos",
        "received_at",
        "username",
    )

    def __init__(
        self,
        client_id: str,
        username: str | None,
        qos: int,
        received_at: int,
        arrived: float,
        commit_within: float | None,
    ) -> None:
        self.client_id = client_id
        self.username = username
        self.qos = qos
        self.received_at = received_at
        self.arrived = arrived
        self.commit_within = commit_within


class PlainMessage:
    """An accepted message with RETAIN and without properties."""

    __slots__ = ("origin", "payload", "topic")

    def __init__(self, topic: str, payload: bytes, origin: Origin) -> None:
        self.topic = topic
        self.payload = payload
        self.origin = origin

    @property
    def client_id(self) -> str:
        """Who published it."""
        return self.origin.client_id

    @property
    def username(self) -> str | None:
        """The user name of who published it."""
        return self.origin.username
