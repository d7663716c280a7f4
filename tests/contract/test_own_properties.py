"""What only a gateway may say is not believed of a publisher, whichever way its message goes up."""

import json

from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.client import MQTTMessage
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from gateway.mqtt.codec.packet_codec import decode
from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import MQTT_5, Publish
from gateway.storage.outbox.row import OutboxRow
from gateway.uplink.batch import batch_line, batch_payload
from gateway.uplink.fleet.message import FleetMessages
from gateway.uplink.landing.record import landing_line
from pipeline.collect.message import read_message
from pipeline.records.record import Values, read_record
from pipeline.tables.columns import RECORD, names
from tests.support.disk.outbox_rows import ROWS
from tests.support.fleet.uplinks import uplink_settings
from tests.support.frames import next_frame

RECEIVED = 1_763_740_000_120
NAMES = st.sampled_from(
    ["seq", "time", "resent", "was", "clientid", "username", "hops", "attempt", "topic", "a"]
)
VALUES = st.sampled_from(["", "0", "1", "21", "barn", "ffffffffff.main.1", "1763740000000", "root"])
PAIRS = st.lists(st.tuples(NAMES, VALUES), max_size=6).map(tuple)


def _single(row: OutboxRow, *, identity: bool, resent: bool) -> MQTTMessage:
    """Return the message as a subscriber at the fleet's broker has it."""
    messages = FleetMessages(uplink_settings(port=1, identity=identity))
    packet = messages.of(row, RECEIVED, resent=resent).packet(1)
    framer = Framer(len(packet))
    framer.feed(packet)
    frame = next_frame(framer)
    assert frame is not None
    publish = decode(*frame, MQTT_5)
    assert isinstance(publish, Publish)
    message = MQTTMessage(topic=publish.topic.encode())
    message.payload = publish.payload
    raw = message.properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # not annotated
    raw.UserProperty = list(publish.properties.user_properties)
    for name, value in (
        ("ContentType", publish.properties.content_type),
        ("ResponseTopic", publish.properties.response_topic),
        ("CorrelationData", publish.properties.correlation_data),
        ("MessageExpiryInterval", publish.properties.message_expiry_interval),
        ("PayloadFormatIndicator", publish.properties.payload_format_indicator),
    ):
        if value is not None:
            setattr(raw, name, value)
    return message


def _batch(row: OutboxRow, *, identity: bool, resent: bool) -> MQTTMessage:
    message = MQTTMessage(topic=b"tidegate/barn/batch")
    line = batch_line(row, identity=identity, resent=resent, now=RECEIVED)
    message.payload = batch_payload([line])
    return message


def _landed(message: MQTTMessage) -> Values:
    """Return what the collector lands for bronze."""
    landed = read_message(message, "tidegate", RECEIVED)
    assert (landed.faults, landed.reports) == ([], [])
    [values] = landed.records
    return _comparable(values)


def _comparable(values: Values) -> Values:
    """Leave out what a gateway says only where it writes the record itself."""
    return tuple(
        value
        for name, value in zip(names(RECORD), values, strict=True)
        if name != "payload_is_json"
    )


@given(row=ROWS, pairs=PAIRS, identity=st.booleans(), resent=st.booleans())
def test_bronze_says_the_same_whatever_the_publisher_calls_its_properties(
    row: OutboxRow, pairs: tuple[tuple[str, str], ...], identity: bool, resent: bool
) -> None:
    message, row.seq = row.message, 7
    message.user_properties, message.topic, message.response_topic = pairs, "sensors/n1/t", None
    message.client_id, message.username = message.client_id or None, message.username or None
    settings = uplink_settings(identity=identity)
    line = landing_line(row, settings, received=RECEIVED, resent=resent)
    assert json.loads(line)["properties"] == [list(pair) for pair in pairs]
    written, fault = read_record(line)
    assert fault is None
    said = dict(zip(names(RECORD), written, strict=True))
    assert (said["epoch"], said["stream"], said["seq"]) == (row.epoch, row.stream, 7)
    assert (said["resent"], said["qos"], said["retain"]) == (
        resent,
        row.message.qos,
        row.message.retain,
    )
    assert said["username"] == (row.message.username if identity else None)
    expected = _comparable(written)
    assert _landed(_single(row, identity=identity, resent=resent)) == expected
    assert _landed(_batch(row, identity=identity, resent=resent)) == expected
