"""Reads sessions' deliveries back from the disk, with their messages."""

from gateway.mqtt.codec.fields import write_binary
from gateway.mqtt.codec.publish import (
    NO_PUBLISH_PROPERTIES,
    PublishProperties,
    of_fields,
)
from gateway.mqtt.packets import MQTT_5
from gateway.mqtt.publication import Publication
from gateway.mqtt.publish_encoder import publication_of_one
from gateway.mqtt.stored_batch import stored_publication
from gateway.session.restored import RestoredSpan, seconds_since
from gateway.session.span import Span
from gateway.storage.engine.message_columns import (
    MESSAGE_COLUMNS,
    NO_VALUES,
    PLAIN_COLUMNS,
    PROPERTY_COLUMNS,
    property_fields,
)
from gateway.storage.engine.reading import Values
from gateway.storage.sessions import message_row
from gateway.storage.sessions.delivery_row import WRITTEN, DeliveryRow, gone_bits
from gateway.storage.sessions.session_rows import text_to_identifiers

TEXTS = ("topic", "client_id", "username", "content_type", "response_topic", "user_properties")

_MESSAGE = ", ".join(
    f"CAST(m.{column} AS BLOB)" if column in TEXTS else f"m.{column}" for column in MESSAGE_COLUMNS
)

READ = (
    "SELECT session, sequence, message, delivery.qos, delivery.retain, packet_id, released,"  # noqa: S608 - our columns
    " CAST(identifiers AS BLOB), CAST(shared_filter AS BLOB), size, alone, messages, gone,"
    f" version, {_MESSAGE}"
    " FROM delivery LEFT JOIN message AS m ON m.id = message"
    " WHERE session = ? AND sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?"
)
"""The first rows of a session, above one sequence number and up to another.

Texts are returned as bytes (`Reading.rows`).
"""

VERSION = 13
"""The column of READ that is set if the payload is packets; those of the message follow."""

CONTENT = 1 + len(PLAIN_COLUMNS)
"""The first of the columns of the publisher's properties."""


class SpanReader:
    """Makes spans of the rows of READ; `monotonic` (s) and `wall` (ms since 1970) are now.

    Those of one reader share publications, names and properties that are equal. `rows` counts all
    rows, good or not; the good ones have `messages` of `size` bytes of memory.
    """

    __slots__ = (
        "_monotonic",
        "_names",
        "_properties",
        "_shared",
        "_topics",
        "_wall",
        "messages",
        "rows",
        "size",
    )

    def __init__(self, monotonic: float, wall: int) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self.rows = 0
        self.messages = 0
        self.size = 0
        self._shared: dict[int, Publication] = {}
        self._topics: dict[bytes, tuple[str, bytes]] = {}
        self._names: dict[bytes, str] = {}
        self._properties: dict[Values, PublishProperties] = {NO_VALUES: NO_PUBLISH_PROPERTIES}

    def read(self, values: Values) -> list[RestoredSpan]:
        """Return the spans of a row; raise ValueError, TypeError or KeyError for an invalid one."""
        released = bool(values[6])
        return [RestoredSpan(span, released) for span in self.spans(values)]

    def spans(self, values: Values) -> list[Span]:
        """Return the same without packet identifiers and release."""
        self.rows += 1
        _, last, number, qos, retain, packet_id, released, identifiers, shared_filter = values[:9]
        size, unshared, messages, gone = values[9:VERSION]
        publication = None if unshared else self._shared.get(number)
        if publication is None:
            publication = self._publication(values)
            publication.row = number
            if not unshared:
                publication.shared = True
                self._shared[number] = publication
        packet_ids = () if identifiers is None else text_to_identifiers(identifiers.decode())
        name = "" if shared_filter is None else shared_filter.decode()
        count = publication.packets.count
        span = Span(
            publication, 0, count, message_row.check_qos(qos), retain != 0, packet_ids, name
        )
        row = DeliveryRow(last - count + 1, span)
        if gone is not None:
            row.gone = gone_bits(gone)
            row.remaining = count - row.gone.bit_count()
            row.whole = not row.gone  # a finished message may have a row of its own
        if row.remaining != messages or row.remaining < 1:
            raise ValueError(f"{row.remaining} messages of {messages}")
        row.packet_id = check_packet_id(packet_id)
        row.released = bool(released)
        row.batch = WRITTEN
        row.written = messages
        publication.stored_for += 1
        if count == 1:
            row.disk_bytes = size
        self.messages += messages
        if row.gone:
            spans = row.spans()
            self.size += sum([each.size for each in spans])
            return spans
        row.attach_to(span)
        self.size += span.size
        return [span]

    def _publication(self, values: Values) -> Publication:
        message = values[VERSION:]
        version, topic, payload, qos, retain, time, client_id, username = message[:CONTENT]
        if topic is None:
            raise ValueError(f"message {values[2]} is not there")
        name, topic_name = self._topics.get(topic) or self._topic(topic)
        if version is None:
            columns = message[CONTENT:]
            properties = self._properties.get(columns) or self._read_properties(columns)
            publication = publication_of_one(
                name, topic_name, payload, message_row.check_qos(qos), retain != 0, properties
            )
        else:
            publication = stored_publication(payload, name, mqtt5=version == MQTT_5)
        publication.received_at = time
        publication.arrived = self._monotonic - seconds_since(time, self._wall)
        publication.client_id = self._name(client_id)
        publication.username = self._name(username)
        return publication

    def _topic(self, data: bytes) -> tuple[str, bytes]:
        known = self._topics[data] = data.decode(), write_binary(data)
        return known

    def _name(self, data: bytes | None) -> str | None:
        if data is None:
            return None
        return self._names.get(data) or self._names.setdefault(data, data.decode())

    def _read_properties(self, columns: Values) -> PublishProperties:
        named = zip(PROPERTY_COLUMNS, columns, strict=True)
        values = [_text(each) if name in TEXTS else each for name, each in named]
        properties = self._properties[columns] = of_fields(property_fields(tuple(values)))
        return properties


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def check_packet_id(packet_id: int, lowest: int = 0) -> int:
    """Return the packet identifier; raise ValueError if it is invalid."""
    if not lowest <= packet_id <= 0xFFFF:
        raise ValueError(f"packet identifier {packet_id}")
    return packet_id
