from contextlib import nullcontext
from typing import Any

import pytest

from gateway.mqtt.aliases.outbound_aliases import OutboundAliases
from gateway.mqtt.aliases.topic_aliases import AliasBudget
from gateway.mqtt.codec.packet_codec import decode
from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Publish
from gateway.mqtt.properties import Properties
from gateway.uplink.fleet.message import FleetMessage, FleetMessages, fleet_message
from gateway.uplink.rules.targets import UnsendableTopicError
from tests.support.disk.storage import outbox_row
from tests.support.fleet.uplinks import EPOCH, uplink_settings
from tests.support.frames import next_frame
from tests.support.table import table

NOW = 1_763_740_000_000
SEQ, TIME = ("seq", f"{EPOCH}.main.17"), ("time", "1763740000017")


def _decoded(message: FleetMessage, version: int = MQTT_5, *, dup: bool = False) -> Publish:
    packet = message.packet(513, dup=dup)
    assert len(packet) == message.size
    framer = Framer(1 << 28)
    framer.feed(packet)
    frame = next_frame(framer)
    assert frame is not None
    publish = decode(*frame, version)
    assert isinstance(publish, Publish)
    return publish


@table("size", [0, 50, 100, 5_000, 70_000])
@table(
    ("fields", "properties"),
    [
        ({}, {}),
        ({"payload_format": 1}, {"payload_format_indicator": 1}),
        ({"message_expiry": 60}, {"message_expiry_interval": 60}),
        ({"content_type": "text/plain"}, {"content_type": "text/plain"}),
        ({"response_topic": "answer"}, {"response_topic": "answer"}),
        ({"correlation_data": b"\x00\xff"}, {"correlation_data": b"\x00\xff"}),
    ],
)
def test_a_row_is_a_whole_packet(
    size: int, fields: dict[str, Any], properties: dict[str, Any]
) -> None:
    row = outbox_row(17, topic="Ä/b", payload=bytes(size), **fields)
    message = FleetMessages(uplink_settings(prefix="x/y")).of(row, NOW, resent=False)
    assert _decoded(message) == Publish(
        "x/y/barn/data/Ä/b",
        bytes(size),
        1,
        packet_id=513,
        properties=Properties(user_properties=(SEQ, TIME), **properties),
    )


def test_an_alias_is_set_once_and_stands_for_the_topic_from_then_on() -> None:
    aliases = OutboundAliases(1, AliasBudget())
    messages = FleetMessages(uplink_settings(), aliases)
    first, second = (_decoded(messages.of(outbox_row(17), NOW, resent=True)) for _ in range(2))
    assert (first.topic, first.properties.topic_alias) == (
        "tidegate/barn/data/sensors/n1/temperature",
        1,
    )
    assert (second.topic, second.properties.topic_alias) == ("", 1)
    assert second.properties.user_properties == (SEQ, TIME, ("resent", "1"))
    again = _decoded(messages.of(outbox_row(17), NOW, resent=True, aliased=False), dup=True)
    assert (again.topic, again.properties.topic_alias, again.dup) == (first.topic, None, True)


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_what_has_no_properties_is_the_same_in_both_versions(version: int) -> None:
    message = fleet_message("a/b", b"{}", retain=True, version=version)
    assert _decoded(message, version) == Publish("a/b", b"{}", 1, retain=True, packet_id=513)


@pytest.mark.parametrize(
    ("topic", "fits"), [("t" * 65_516, True), ("t" * 65_517, False), ("ä" * 32_759, False)]
)
def test_a_topic_fits_with_its_prefix_or_not(topic: str, fits: bool) -> None:
    messages, row = FleetMessages(uplink_settings()), outbox_row(1, topic=topic)
    with nullcontext() if fits else pytest.raises(UnsendableTopicError):
        messages.of(row, NOW, resent=False)
