"""Stand-ins of clouds that refuse what their documents say they do not take."""

import ssl
from asyncio import StreamWriter
from dataclasses import dataclass, field

from gateway.mqtt.connection import Connection
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    ConnAck,
    Connect,
    Disconnect,
    PubAck,
    Publish,
    SubAck,
    Subscribe,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import topic_matches
from tests.support.fleet.fleet_broker import FleetBroker

BAD_VERSION = b"\x20\x02\x00\x01"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a cloud takes; what it does not ends the connection.

    `says` is whether it gives a reason first, in MQTT 5; `answers` whether a forbidden topic is
    refused by the PUBACK instead.
    """

    writable: tuple[str, ...]
    readable: tuple[str, ...] = ()
    versions: tuple[int, ...] = (MQTT_3_1_1, MQTT_5)
    largest: int = 1 << 20
    slashes: int = 1_000
    retains: bool = True
    says: bool = True
    answers: bool = False
    connack: Properties = field(default_factory=Properties)


AWS = Terms(
    ("tidegate/barn/#",),
    ("tidegate/barn/#",),
    largest=128 * 1024,
    slashes=7,
    connack=Properties(
        maximum_qos=1,
        receive_maximum=100,
        topic_alias_maximum=8,
        maximum_packet_size=149_504,
        shared_subscription_available=1,
    ),
)
IOT_HUB = Terms(
    ("devices/barn/messages/events/#",),
    ("devices/barn/messages/devicebound/#",),
    versions=(MQTT_3_1_1,),
    largest=256 * 1024,
    retains=False,
    says=False,
)
EMQX = Terms(("tidegate/barn/#",), ("tidegate/barn/#",), answers=True)
THINGSBOARD = Terms(
    ("v1/devices/me/telemetry", "v1/devices/me/attributes"),
    versions=(MQTT_3_1_1,),
    largest=65_536,
    retains=False,
    says=False,
)


class Cloud(FleetBroker):
    """A broker with such terms; `refused` is what ended connections, or was refused."""

    def __init__(self, terms: Terms) -> None:
        super().__init__()
        self.terms = terms
        self.refused: list[str] = []
        self.subscribed: list[str] = []
        self.connack = ConnAck(properties=terms.connack)

    def _take(self, packet: object, connection: Connection, writer: StreamWriter) -> None:
        if writer.is_closing():
            return
        if isinstance(packet, Connect):
            self._connect(packet, connection, writer)
        elif isinstance(packet, Subscribe):
            self._subscribe(packet, connection, writer)
        elif isinstance(packet, Publish) and (fault := self._fault(packet)):
            self._refuse(fault, packet, connection, writer)
        else:
            super()._take(packet, connection, writer)

    def _connect(self, packet: Connect, connection: Connection, writer: StreamWriter) -> None:
        terms, will = self.terms, packet.will
        if packet.protocol_version not in terms.versions:
            self.refused.append("version")
            writer.write(BAD_VERSION)
            writer.close()
        elif will is not None and will.retain and not terms.retains:
            self._close("retained will", ReasonCode.RETAIN_NOT_SUPPORTED, connection, writer)
        else:
            super()._take(packet, connection, writer)

    def _subscribe(self, packet: Subscribe, connection: Connection, writer: StreamWriter) -> None:
        codes = []
        for request in packet.requests:
            known = any(topic_matches(each, request.topic_filter) for each in self.terms.readable)
            codes.append(min(request.qos, 1) if known else 0x80)
            self.subscribed.append(request.topic_filter)
        connection.send(SubAck(packet.packet_id, [ReasonCode(each) for each in codes]))
        writer.write(connection.data_to_send(0) or b"")

    def _fault(self, publish: Publish) -> str:
        terms = self.terms
        if publish.qos == 2:
            return "QoS 2"
        if publish.retain and not terms.retains:
            return "retain"
        if len(publish.payload) > terms.largest:
            return "size"
        if publish.topic.count("/") > terms.slashes:
            return "slashes"
        known = any(topic_matches(each, publish.topic) for each in terms.writable)
        return "" if known else "topic"

    def _refuse(
        self, fault: str, publish: Publish, connection: Connection, writer: StreamWriter
    ) -> None:
        if fault == "topic" and self.terms.answers and connection.version == MQTT_5:
            self.refused.append(fault)
            connection.send(PubAck(publish.packet_id, ReasonCode.NOT_AUTHORIZED))
            return
        code = {
            "QoS 2": ReasonCode.QOS_NOT_SUPPORTED,
            "retain": ReasonCode.RETAIN_NOT_SUPPORTED,
            "size": ReasonCode.PACKET_TOO_LARGE,
        }.get(fault, ReasonCode.NOT_AUTHORIZED)
        self._close(fault, code, connection, writer)

    def _close(
        self, fault: str, code: ReasonCode, connection: Connection, writer: StreamWriter
    ) -> None:
        self.refused.append(fault)
        if self.terms.says and connection.version == MQTT_5:
            connection.send(ConnAck(reason_code=code) if "will" in fault else Disconnect(code))
            writer.write(connection.data_to_send(0) or b"")
        writer.close()


def tls_of(certificate: str, key: str) -> ssl.SSLContext:
    """Return the context of a server with this certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context
