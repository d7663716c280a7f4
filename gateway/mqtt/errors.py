"""Faults in bytes or packets from a client, each with its reason code.

Any other exception from the decoder or the state machine is a bug.
"""

from gateway.mqtt.reason_codes import ReasonCode


class MqttError(Exception):
    """A fault of the peer that ends its connection with `reason_code`."""

    def __init__(self, reason: str, reason_code: ReasonCode) -> None:
        super().__init__(reason)
        self.reason = reason
        self.reason_code = reason_code


class MalformedPacket(MqttError):  # noqa: N818 - the specification's term
    """Bytes that cannot be read as a packet (MQTT 5, section 1.2)."""

    def __init__(self, reason: str, reason_code: ReasonCode = ReasonCode.MALFORMED_PACKET) -> None:
        super().__init__(reason, reason_code)


class ProtocolError(MqttError):
    """A well-formed packet that the protocol does not allow here (MQTT 5, section 1.2)."""

    def __init__(self, reason: str, reason_code: ReasonCode = ReasonCode.PROTOCOL_ERROR) -> None:
        super().__init__(reason, reason_code)
