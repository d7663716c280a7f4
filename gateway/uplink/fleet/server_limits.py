"""The limits of the fleet's broker, from its CONNACK."""

from dataclasses import dataclass

from gateway.mqtt.packets import MQTT_5, ConnAck
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.uplink.errors import LinkError, OldBrokerError, RetainError, end_of, in_words

RECEIVE_MAXIMUM = 65_535
"""Receive Maximum of a server that names none [MQTT-3.2.2.3.3]."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits from a CONNACK; the defaults for MQTT 3.1.1, which names none."""

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


def refusal_of(connack: ConnAck, version: int) -> LinkError | None:
    """Return why nothing can be sent on a connection of this MQTT version, None if it can."""
    code = connack.reason_code
    if code == ReasonCode.UNSUPPORTED_PROTOCOL_VERSION and version == MQTT_5:
        return OldBrokerError()
    if code == ReasonCode.RETAIN_NOT_SUPPORTED:
        return RetainError(f"the fleet's broker refused the connection: {in_words(code)}")
    if code >= FAILURE:
        text = f"the fleet's broker refused the connection: {in_words(code)}"
        return LinkError(text, end_of(code))
    if connack.properties.maximum_qos == 0:
        return LinkError("the fleet's broker takes QoS 0 only", lasting=True)
    return None
