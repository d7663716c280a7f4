"""What sessions are owed as it is read back from the disk, with its messages."""

from gateway.mqtt.packets import MQTT_5
from gateway.mqtt.publication import Publication
from gateway.mqtt.stored_batch import stored_publication
from gateway.session.kept import KeptSpan, seconds_since
from gateway.session.span import Span
from gateway.storage import message_row
from gateway.storage.delivery_row import WRITTEN, DeliveryRow, gone_bits
from gateway.storage.reading import Values
from gateway.storage.session_rows import text_to_identifiers

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
"""The first so many rows that a session is owed, above one sequence number and up to another.

Texts come as bytes (`Reading.rows`).
"""

NUMBERS = 14
"""Columns of READ before those of the message as a row has them."""

VERSION = 13
"""The column of READ that is set where the payload is packets."""


class SpanReader:
    """Makes spans of the rows of READ; `monotonic` (s) and `wall` (ms since 1970) are now.

    Those of one reader share the publications and the names that they have in common. `rows`
    counts what it was given, good or not.
    """

    def __init__(self, monotonic: float, wall: int) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self.rows = 0
        self._shared: dict[int, Publication] = {}
        self._names: dict[bytes | None, str | None] = {None: None}

    def read(self, values: Values) -> list[KeptSpan]:
        """Return what a row stands for; raise ValueError, TypeError or KeyError for nothing."""
        released = bool(values[6])
        return [KeptSpan(span, released) for span in self.spans(values)]

    def spans(self, values: Values) -> list[Span]:
        """Return the same without what is known of its way to the client."""
        self.rows += 1
        _, last, number, qos, retain, packet_id, released, identifiers, shared_filter = values[:9]
        size, alone, messages, gone = values[9:VERSION]
        publication = None if alone else self._shared.get(number)
        if publication is None:
            publication = self._publication(values)
            publication.row = number
            if not alone:
                publication.shared = True
                self._shared[number] = publication
        said = () if identifiers is None else text_to_identifiers(identifiers.decode())
        name = "" if shared_filter is None else shared_filter.decode()
        count = publication.count
        span = Span(publication, 0, count, message_row.check_qos(qos), retain != 0, said, name)
        row = DeliveryRow(last - count + 1, span)
        row.gone = gone_bits(gone)
        row.left = count - row.gone.bit_count()
        row.whole = not row.gone  # what is gone may have a row of its own
        if row.left != messages or row.left < 1:
            raise ValueError(f"{row.left} messages of {messages}")
        row.packet_id = check_packet_id(packet_id)
        row.released = bool(released)
        row.batch = WRITTEN
        row.written = messages
        publication.owed += 1
        if row.gone:
            return row.spans()
        row.stand_for(span)
        if count == 1:
            span.kept = size
        return [span]

    def _publication(self, values: Values) -> Publication:
        topic, payload, qos, retain, received_at, client_id, username, *rest = values[NUMBERS:]
        if topic is None:
            raise ValueError(f"message {values[2]} is not there")
        names = self._names
        for data in (topic, client_id, username):
            if data not in names:
                names[data] = _text(data)
        version = values[VERSION]
        if version is None:
            texts = tuple(rest)
            if texts != message_row.NO_VALUES:
                texts = tuple(
                    _text(value) if name in TEXTS else value
                    for name, value in zip(message_row.PROPERTY_COLUMNS, rest, strict=True)
                )
            row = (names[topic] or "", payload, qos, retain, received_at, None, None, *texts)
            publication = message_row.from_row(row, self._monotonic, self._wall)
        else:
            publication = stored_publication(payload, names[topic] or "", mqtt5=version == MQTT_5)
            publication.received_at = received_at
            publication.arrived = self._monotonic - seconds_since(received_at, self._wall)
        publication.client_id = names[client_id]
        publication.username = names[username]
        return publication


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def check_packet_id(packet_id: int, lowest: int = 0) -> int:
    """Return the packet identifier; raise ValueError if it is none."""
    if not lowest <= packet_id <= 0xFFFF:
        raise ValueError(f"packet identifier {packet_id}")
    return packet_id
