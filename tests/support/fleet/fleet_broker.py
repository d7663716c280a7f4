"""A fleet broker whose every answer a test decides, for what a real one seldom says."""

import asyncio
import ssl
from collections.abc import Callable

from gateway.mqtt.connection import Connection
from gateway.mqtt.packets import (
    MQTT_5,
    ConnAck,
    Connect,
    Disconnect,
    PingReq,
    PingResp,
    PubAck,
    Publish,
)
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.ports import free_port

OLD_CONNACK = b"\x20\x02\x00\x01"
"""What a server of MQTT 3.1.1 says to a CONNECT of MQTT 5 [MQTT-3.1.2-2]."""

Answer = Callable[[Publish], ReasonCode | None]


class FleetBroker:
    """Listens on a free port; `puback` gives the reason code of each answer, None for silence."""

    def __init__(self) -> None:
        self.port = free_port()
        self.connack = ConnAck()
        self.raw_connack: bytes | None = None
        self.speaks_5 = True
        self.puback: Answer = lambda _publish: ReasonCode.SUCCESS
        self.connects: list[Connect] = []
        self.disconnects: list[Disconnect] = []
        self.publishes: list[Publish] = []
        self.unacknowledged = 0
        self.most_unacknowledged = 0
        self.connections = 0
        self.bytes_received = 0
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    @property
    def data(self) -> list[Publish]:
        """The data messages so far."""
        return [publish for publish in self.publishes if "/data/" in publish.topic]

    async def start(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._server = await asyncio.start_server(self._serve, host, self.port, ssl=tls)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        self.drop()

    def drop(self) -> None:
        """Cut every connection."""
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    def acknowledge(self, publish: Publish, code: ReasonCode) -> None:
        """Send the PUBACK of a message that `puback` met with silence."""
        self.unacknowledged -= 1
        self.send(PubAck(publish.packet_id, code))

    def send(self, packet: Disconnect | PubAck | Publish) -> None:
        """Send a packet on every connection."""
        for writer in self._writers:
            connection = Connection(1 << 20)
            connection.version = 5
            connection.send(packet)
            writer.write(connection.data_to_send(0) or b"")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        aliases = self.connack.properties.topic_alias_maximum or 0
        connection = Connection(1 << 28, aliases)
        self._writers.append(writer)
        self.connections += 1
        self.unacknowledged = 0
        try:
            while data := await reader.read(65_536):
                self.bytes_received += len(data)
                connection.framer.feed(data)
                while (packet := connection.next_packet()) is not None:
                    self._take(packet, connection, writer)
                writer.write(connection.data_to_send(0) or b"")
        except (ConnectionError, ssl.SSLError):
            pass  # the other end went: that is its right
        finally:
            writer.close()

    def _take(self, packet: object, connection: Connection, writer: asyncio.StreamWriter) -> None:
        if isinstance(packet, Connect):
            self.connects.append(packet)
            if packet.protocol_version == MQTT_5 and not self.speaks_5:
                writer.write(OLD_CONNACK)
            elif self.raw_connack is not None:
                writer.write(self.raw_connack)
            else:
                connection.send(self.connack)
        elif isinstance(packet, Publish):
            self._answer(packet, connection)
        elif isinstance(packet, PingReq):
            connection.send(PingResp())
        elif isinstance(packet, Disconnect):
            self.disconnects.append(packet)

    def _answer(self, publish: Publish, connection: Connection) -> None:
        self.publishes.append(publish)
        if not publish.qos:
            return
        self.unacknowledged += 1
        self.most_unacknowledged = max(self.most_unacknowledged, self.unacknowledged)
        code = self.puback(publish)
        if code is not None:
            self.unacknowledged -= 1
            connection.send(PubAck(publish.packet_id, code))


def numbers_of(broker: FleetBroker) -> list[int]:
    """Return the numbers of the data messages in the order in which they came."""
    seqs = [dict(publish.properties.user_properties)["seq"] for publish in broker.data]
    return [int(seq.rpartition(".")[2]) for seq in seqs]
