"""What the fleet's broker takes, as its CONNACK says."""

from dataclasses import dataclass

from gateway.mqtt.packets import MQTT_5
from gateway.mqtt.properties import Properties

RECEIVE_MAXIMUM = 65_535
"""What a server without Receive Maximum takes [MQTT-3.2.2.3.3]."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What the fleet's broker said in its CONNACK; one of MQTT 3.1.1 has nothing to say."""

    receive_maximum: int = RECEIVE_MAXIMUM
    maximum_packet_size: int | None = None
    retain_available: bool = True
    topic_alias_maximum: int = 0
    mqtt_5: bool = True


def limits_of(said: Properties, version: int) -> ServerLimits:
    """Return the limits that the properties of a CONNACK name, or leave at their defaults."""
    return ServerLimits(
        receive_maximum=said.receive_maximum or RECEIVE_MAXIMUM,
        maximum_packet_size=said.maximum_packet_size,
        retain_available=said.retain_available != 0,
        topic_alias_maximum=said.topic_alias_maximum or 0,
        mqtt_5=version == MQTT_5,
    )
