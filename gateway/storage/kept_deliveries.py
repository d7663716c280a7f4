"""Deliveries as they are read back from the disk, with their messages."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gateway.mqtt.message_size import MESSAGE_OVERHEAD, message_bytes
from gateway.mqtt.packets import MQTT_5
from gateway.mqtt.stored_run import stored_run
from gateway.routing.where.message import Message
from gateway.session.delivery import Delivery, SharedDelivery
from gateway.session.kept import KeptDelivery, seconds_since
from gateway.session.message_run import MessageRun
from gateway.session.waiting_run import Waiting, WaitingRun
from gateway.storage import message_row
from gateway.storage.kept_size import KEPT_OVERHEAD
from gateway.storage.reading import Values
from gateway.storage.run_row import WRITTEN, RunRow, gone_bits
from gateway.storage.session_rows import text_to_identifiers

if TYPE_CHECKING:
    from gateway.storage.session_journal import SessionJournal

TEXTS = ("topic", "client_id", "username", "content_type", "response_topic", "user_properties")

_MESSAGE = ", ".join(
    f"CAST(m.{column} AS BLOB)" if column in TEXTS else f"m.{column}"
    for column in message_row.COLUMNS
)

READ = (
    "SELECT session, place, message, delivery.qos, delivery.retain, packet_id, released,"  # noqa: S608 - our columns
    " CAST(identifiers AS BLOB), CAST(shared_filter AS BLOB), size, alone, messages, gone,"
    f" version, {_MESSAGE}"
    " FROM delivery LEFT JOIN message AS m ON m.id = message"
    " WHERE session = ? AND place > ? AND place <= ? ORDER BY place LIMIT ?"
)
"""The first so many deliveries of a session with places above one and up to another.

Texts come as bytes (`Reading.rows`).
"""

NUMBERS = 14
"""Columns of READ before those of the message as a row has them."""

VERSION = 13
"""The column of READ that is set where the payload is packets."""

QOS = (0, 1, 2)

_PROPERTIES = NUMBERS + len(message_row.COLUMNS) - len(message_row.PROPERTY_COLUMNS)
_NO_PROPERTIES = (None,) * len(message_row.PROPERTY_COLUMNS)


class DeliveryReader:
    """Makes deliveries of the rows of READ; `monotonic` (s) and `wall` (ms since 1970) are now.

    `journals` are those of the sessions, by number.

    Those of one reader share the messages and the names that they have in common. `rows` counts
    what it was given, good or not.
    """

    def __init__(
        self, monotonic: float, wall: int, journals: Mapping[int, "SessionJournal"]
    ) -> None:
        self._monotonic = monotonic
        self._journals = journals
        self._wall = wall
        self.rows = 0
        self._shared: dict[int, Message] = {}
        self._runs: dict[int, MessageRun] = {}
        self._names: dict[bytes | None, str | None] = {None: None}

    def read(self, values: Values) -> list[KeptDelivery]:
        """Return what a row stands for; raise ValueError, TypeError or KeyError for nothing."""
        packet_id = check_packet_id(values[5])
        return [KeptDelivery(each, packet_id, bool(values[6])) for each in self.waiting(values)]

    def waiting(self, values: Values) -> list[Waiting]:
        """Return the same without what is known of its way to the client."""
        self.rows += 1
        return [self._delivery(values)] if values[VERSION] is None else [*self._run(values)]

    def _run(self, values: Values) -> list[WaitingRun]:
        """Return what is left of a run."""
        session, last, row = values[:3]
        alone, messages, gone = values[10:VERSION]
        run = self._runs.get(row)
        if run is None:
            run = self._message_run(values)
            run.row = row
            if not alone:
                run.shared = True
                self._runs[row] = run
        first = last - run.packets.count + 1
        kept = RunRow(self._journals[session], first, run, gone_bits(gone))
        if kept.left != messages:
            raise ValueError(f"{kept.left} messages of {messages}")
        kept.batch = WRITTEN
        kept.written = messages
        run.owed += 1
        return kept.waiting()

    def _message_run(self, values: Values) -> MessageRun:
        topic, payload, qos, _, received_at, client_id, username = values[NUMBERS:_PROPERTIES]
        self._learn(topic, client_id, username)
        name, version = self._names[topic] or "", values[VERSION]
        packets = stored_run(payload, name, properties=version == MQTT_5)
        return MessageRun(
            packets,
            version,
            name,
            message_row.check_qos(qos),
            self._names[client_id] or "",
            self._names[username],
            received_at,
            self._monotonic - seconds_since(received_at, self._wall),
            0.0,
            None,
            message_bytes(name, packets.payload_bytes // packets.count),
        )

    def _delivery(self, values: Values) -> Delivery:
        _, place, row, qos, retain, _, _, numbers, topic_filter, kept, alone = values[:11]
        if qos not in QOS:
            raise ValueError(f"QoS {qos}")
        message = None if alone else self._shared.get(row)
        if message is None:
            message = self._message(values)
        identifiers = () if numbers is None else text_to_identifiers(numbers.decode())
        if topic_filter is None:
            delivery = Delivery(message, qos, retain != 0, identifiers, place)
        else:
            name = topic_filter.decode()
            delivery = SharedDelivery(
                message, qos, retain != 0, identifiers, place, topic_filter=name
            )
        delivery.kept = kept
        message.owed += 1
        return delivery

    def _message(self, values: Values) -> Message:
        topic, payload, qos, retain, received_at, client_id, username = values[NUMBERS:_PROPERTIES]
        if topic is None:
            raise ValueError(f"message {values[2]} is not there")
        if qos not in QOS:
            raise ValueError(f"QoS {qos}")
        names = self._names
        if topic not in names or client_id not in names or username not in names:
            self._learn(topic, client_id, username)
        message = Message(
            names[topic] or "",
            payload,
            qos,
            retain != 0,
            client_id=names[client_id],
            username=names[username],
            received_at=received_at,
            arrived=self._monotonic - seconds_since(received_at, self._wall),
        )
        message.row = values[2]
        if not values[10]:
            message.shared = True
            self._shared[message.row] = message
        if values[9] > KEPT_OVERHEAD:
            message.size = values[9] - KEPT_OVERHEAD + MESSAGE_OVERHEAD
        if values[_PROPERTIES:] != _NO_PROPERTIES:
            _add_properties(message, values[_PROPERTIES:])
        return message

    def _learn(self, *names: bytes | None) -> None:
        """Remember texts that many messages have in common, each as one object."""
        for data in names:
            self._names[data] = _text(data)


def _add_properties(message: Message, values: Values) -> None:
    content_type, response_topic, correlation_data, expiry, payload_format, pairs = values
    message.content_type = _text(content_type)
    message.response_topic = _text(response_topic)
    message.correlation_data = correlation_data
    message.message_expiry = expiry
    message.payload_format = payload_format
    message.user_properties = message_row.text_to_pairs(_text(pairs))


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def check_packet_id(packet_id: int, lowest: int = 0) -> int:
    """Return the packet identifier; raise ValueError if it is none."""
    if not lowest <= packet_id <= 0xFFFF:
        raise ValueError(f"packet identifier {packet_id}")
    return packet_id
