"""What one client published in a run, shared by all sessions that it went to."""

from typing import Final, cast

from gateway.mqtt.fields import write_string
from gateway.mqtt.message import Message
from gateway.mqtt.message_size import message_bytes
from gateway.mqtt.output import Pledge
from gateway.mqtt.packet_run import PacketRun
from gateway.mqtt.packets import MQTT_5
from gateway.mqtt.publish_form import rewrite
from gateway.mqtt.publish_run import PublishRun

NO_FORMS: Final[dict[tuple[int, bool], PublishRun | bytes]] = {}
"""Stands for the dict that is made when it is needed: most runs leave as they came."""


class MessageRun:
    """Messages of one topic and QoS, without properties, that arrived at one moment.

    The fields are those of `Message`; `packets` is how they came, in protocol version `version`.
    Nothing is made for a single one of them before somebody asks for `messages`.
    `holders`, `owed`, `row` and `shared` are those of `Message`, for all of them together.
    One that came alone leaves `at_once`, wherever nothing is to leave before it.
    """

    __slots__ = (
        "_forms",
        "_messages",
        "_properties",
        "arrived",
        "at_once",
        "client_id",
        "commit_within",
        "holders",
        "lent",
        "owed",
        "packets",
        "pledge",
        "qos",
        "received_at",
        "row",
        "shared",
        "size",
        "topic",
        "username",
        "version",
    )

    def __init__(
        self,
        packets: PublishRun,
        version: int,
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
        self.version = version
        self._properties = version == MQTT_5
        self.topic = topic
        self.qos = qos
        self.client_id = client_id
        self.username = username
        self.received_at = received_at
        self.arrived = arrived
        self.commit_within = commit_within
        self.pledge = pledge
        self.size = size  # of each, as `message_size` has it; more or less where they differ
        self.at_once = False
        self.lent = 0  # journals that keep it as a run while it may be acknowledged at once
        self.holders = 0
        self.owed = 0
        self.row = 0
        self.shared = False
        self._forms = NO_FORMS  # by QoS, and whether of MQTT 5
        self._messages: list[Message] | None = None

    @property
    def data(self) -> bytes:
        """The packets as they came."""
        return self.packets.packets.data

    @property
    def total_size(self) -> int:
        """The sum of what `message_size` is of each message."""
        packets = self.packets
        return packets.count * message_bytes(self.topic, 0) + packets.payload_bytes

    def part(self, first: int, end: int) -> "MessageRun":
        """Return those with numbers from `first` on, up to `end`, as a run of their own."""
        packets = self.packets.packets.part(first, end)
        topic = len(write_string(self.topic))
        return MessageRun(
            PublishRun(packets, topic, properties=self._properties),
            self.version,
            self.topic,
            self.qos,
            self.client_id,
            self.username,
            self.received_at,
            self.arrived,
            self.commit_within,
            None,
            self.size,
        )

    def plain(self, version: int) -> bytes:
        """Return the packets as they are sent at QoS 0 in this protocol version."""
        properties = version == MQTT_5
        data = self._forms.get((0, properties))
        if data is None:
            data = self._rewritten(0, properties).data
            self._keep(0, properties, data)
        return cast("bytes", data)

    def numbered(self, first: int, qos: int, version: int) -> bytearray:
        """Return them as they are sent at QoS 1 or 2, with packet identifiers from `first` on."""
        properties = version == MQTT_5
        if qos == self.qos and properties == self._properties:
            return self.packets.numbered(first)
        form = self._forms.get((qos, properties))
        if form is None:
            topic = len(write_string(self.topic))
            form = PublishRun(self._rewritten(qos, properties), topic, properties=properties)
            self._keep(qos, properties, form)
        return cast("PublishRun", form).numbered(first)

    def _keep(self, qos: int, properties: bool, form: PublishRun | bytes) -> None:
        """Keep what the next receiver may need, too."""
        if self._forms is NO_FORMS:
            self._forms = {}
        self._forms[qos, properties] = form

    def _rewritten(self, qos: int, properties: bool) -> PacketRun:
        packets, topic = self.packets, write_string(self.topic)
        return rewrite(packets.packets, topic, packets.payload, qos, properties=properties)

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
            self.packets.one(number),
            self.qos,
            client_id=self.client_id,
            username=self.username,
            received_at=self.received_at,
            arrived=self.arrived,
        )
        message.commit_within = self.commit_within
        message.size = own + len(message.payload)
        return message
