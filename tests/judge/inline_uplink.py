"""A part of the gateway that takes every message, or refuses as a full outbox does."""

from gateway.access.access import EVERYTHING
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode


class InlineUplink:
    """Notes the payload of each message that it took; it takes none while it is `full`."""

    client_id = "$uplink"
    inline = True
    access = EVERYTHING
    refusal = "the outbox is full"

    def __init__(self) -> None:
        self.full = False
        self.taken: list[tuple[str, bytes]] = []

    def receive(self, message: Message, topic_filters: list[str]) -> ReasonCode:
        """Take a message unless there is no room."""
        assert topic_filters == ["#"]
        if self.full:
            return ReasonCode.QUOTA_EXCEEDED
        self.taken.append((message.topic, bytes(message.payload)))
        return ReasonCode.SUCCESS
