"""A message is the same after it was a row, but for the moment it seems to have come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.message import Message
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.publish_encoder import publication_of
from gateway.session.restored import CLOCK_SET
from gateway.storage.engine.message_columns import MESSAGE_COLUMNS, property_values
from gateway.storage.sessions import message_row
from tests.support.broker.publications import publish

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
SIXTY_YEARS = 2_000_000_000_000


@pytest.mark.uncovered
@given(
    message=st.builds(
        Message,
        topic=TEXT,
        payload=st.binary(max_size=50),
        qos=st.integers(0, 2),
        retain=st.booleans(),
        client_id=st.none() | TEXT,
        username=st.none() | TEXT,
        received_at=st.integers(0, SIXTY_YEARS),
        arrived=st.just(0.0),
        content_type=st.none() | TEXT,
        response_topic=st.none() | TEXT,
        correlation_data=st.none() | st.binary(max_size=20),
        message_expiry=st.none() | st.integers(0, 0xFFFFFFFF),
        payload_format=st.none() | st.integers(0, 1),
        user_properties=st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple),
    ),
    later=st.integers(-SIXTY_YEARS, SIXTY_YEARS),
)
def test_a_message_comes_back_as_it_was(message: Message, later: int) -> None:
    assert message.received_at is not None
    row = message_row.to_row(publication_of(message))
    assert len(row) == len(MESSAGE_COLUMNS)
    publication = message_row.from_row(row, 100.0, message.received_at + later)
    back = publication.message(0)
    for name in {"received_at", *MESSAGE_COLUMNS} - {"time"}:
        assert getattr(back, name) == getattr(message, name), name
    known = message.received_at >= CLOCK_SET
    assert publication.arrived == 100.0 - (max(0, later) / 1000 if known else 0)


def test_a_message_without_a_time_begins_anew() -> None:
    row = message_row.to_row(publication_of(Message("t")))
    assert message_row.from_row(row, 10.0, CLOCK_SET).arrived == 10.0


@pytest.mark.parametrize("mqtt5", [False, True])
@pytest.mark.parametrize("expiry", [None, 60])
def test_a_batch_is_kept_as_its_packets(mqtt5: bool, expiry: int | None) -> None:
    version = MQTT_5 if mqtt5 else MQTT_3_1_1
    said = Properties(message_expiry_interval=expiry) if mqtt5 else NO_PROPERTIES
    publication = publish([b"1", b"22"], 1, topic="t", version=version, properties=said)
    publication.client_id, publication.received_at = "c", 5
    row = dict(zip(message_row.BATCH_COLUMNS, message_row.batch_to_row(publication), strict=True))
    assert row == {
        "topic": "t",
        "payload": publication.packets.data,
        "qos": 1,
        "retain": False,
        "time": 5,
        "client_id": "c",
        "username": None,
        "message_expiry": expiry if mqtt5 else None,
        "version": version,
    }


def test_properties_have_the_same_columns_as_messages() -> None:
    properties = Properties(1, 60, "text", "r", b"c", user_properties=(("k", "v"),))
    values = property_values(properties)
    publication = message_row.from_row(("t", b"", 0, 0, 0, None, None, *values), 0.0, 0)
    assert message_row.to_row(publication)[-len(values) :] == values
    assert publication.properties.fields == properties
