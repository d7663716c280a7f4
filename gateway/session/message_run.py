"""What one client published in a run, shared by all sessions that it went to."""

from gateway.mqtt.message import Message
from gateway.mqtt.message_size import message_bytes
from gateway.mqtt.output import Pledge
from gateway.mqtt.publish_run import PublishRun


class MessageRun:
    """Messages of one topic and QoS, without properties, that arrived at one moment.

    The fields are those of `Message`. Nothing is made for a single one of them before somebody
    asks for `messages`.
    """

    __slots__ = (
        "_messages",
        "arrived",
        "client_id",
        "commit_within",
        "lent",
        "packets",
        "pledge",
        "qos",
        "received_at",
        "size",
        "topic",
        "username",
    )

    def __init__(
        self,
        packets: PublishRun,
        topic: str,
        qos: int,
        client_id: str,
        username: str | None,
        received_at: int,
        arrived: float,
        commit_within: float | None,
        pledge: Pledge | None,
        size: int,
    ) -> None:
        self.packets = packets
        self.topic = topic
        self.qos = qos
        self.client_id = client_id
        self.username = username
        self.received_at = received_at
        self.arrived = arrived
        self.commit_within = commit_within
        self.pledge = pledge
        self.size = size  # of each, as `message_size` has it; more or less where they differ
        self.lent = 0  # journals that keep it as a run
        self._messages: list[Message] | None = None

    @property
    def opened(self) -> bool:
        """Whether anybody has asked for `messages`."""
        return self._messages is not None

    @property
    def messages(self) -> list[Message]:
        """The messages, one by one."""
        if self._messages is None:
            own = message_bytes(self.topic, 0)
            self._messages = [self._message(number, own) for number in range(self.packets.count)]
        return self._messages

    def _message(self, number: int, own: int) -> Message:
        message = Message(
            self.topic,
            self.packets.payload(number),
            self.qos,
            client_id=self.client_id,
            username=self.username,
            received_at=self.received_at,
            arrived=self.arrived,
        )
        message.commit_within = self.commit_within
        message.size = own + len(message.payload)
        return message
