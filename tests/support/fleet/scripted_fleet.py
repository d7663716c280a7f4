"""A fleet broker that follows a script: it closes, refuses, lies, delays, floods and stammers."""

import asyncio
import json
import socket
import struct
from collections.abc import Callable
from contextlib import suppress

from gateway.mqtt.connection import Connection
from gateway.mqtt.packets import (
    MQTT_5,
    ConnAck,
    Connect,
    Disconnect,
    PingReq,
    PingResp,
    Publish,
    SubAck,
    Subscribe,
)
from gateway.mqtt.reason_codes import ReasonCode
from pipeline.records.batch import read_batch
from tests.support.fleet.fleet_broker import OLD_CONNACK
from tests.support.ports import free_port

Script = Callable[["Talk", Publish], None]
Begin = Callable[["Talk"], None]


class Talk:
    """One connection of the gateway; `count` data messages came on it, this one too."""

    def __init__(self, fleet: "ScriptedFleet", writer: asyncio.StreamWriter) -> None:
        self.fleet = fleet
        self.writer = writer
        self.connection = Connection(1 << 28)
        self.count = 0
        self.unanswered: list[Publish] = []
        self.identifiers: list[int] = []
        """The packet identifiers of this connection."""

    def take(self, publish: Publish, code: int = 0) -> None:
        """Store the message and acknowledge it."""
        self.fleet.taken += numbers_of(publish)
        self.puback(publish.packet_id, code)

    def puback(self, packet_id: int, code: int = 0) -> None:
        """Send a PUBACK with any code, and of any packet."""
        body = packet_id.to_bytes(2, "big")
        if code and self.connection.version == MQTT_5:
            body += bytes([code])
        self.say(bytes([0x40, len(body)]) + body)

    def refuse(self, publish: Publish, code: int) -> None:
        """Acknowledge with a code of 0x80 or more."""
        self.puback(publish.packet_id, code)

    def say(self, data: bytes) -> None:
        """Send bytes, whatever they are."""
        if not self.writer.is_closing():
            self.writer.write(data)

    def send(self, packet: ConnAck | Disconnect | PingResp | SubAck | Publish) -> None:
        """Send a packet."""
        self.connection.send(packet)
        self.say(bytes(self.connection.data_to_send(0) or b""))

    def close(self) -> None:
        """Close the connection without a word."""
        self.writer.close()

    def reset(self) -> None:
        """End it by a TCP reset."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def disconnect(self, code: int) -> None:
        """Say why, and close."""
        self.send(Disconnect(ReasonCode(code)))
        self.close()


def take(talk: Talk, publish: Publish) -> None:
    """Do what a broker does."""
    talk.take(publish)


def accept(talk: Talk) -> None:
    """Answer a CONNECT."""
    talk.send(ConnAck(session_present=talk.fleet.keeps_session and talk.fleet.connections > 1))


class ScriptedFleet:
    """Calls `script` with each data message, `own` with each other one, `begin` with each CONNECT.

    `taken` are the numbers of the messages that it stored, in their order.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self.script: Script = take
        self.own: Script = take
        self.begin: Begin = accept
        self.keeps_session = True
        self.speaks = MQTT_5
        self.taken: list[int] = []
        self.came: list[int] = []
        self.most_unanswered: list[int] = []
        """The most data messages that came in one read, by connection."""
        self.connections = 0
        self._server: asyncio.Server | None = None
        self.talks: list[Talk] = []

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        self.drop()

    def drop(self) -> None:
        """End every connection."""
        for talk in self.talks:
            talk.close()

    def has_seen(self, connections: int) -> bool:
        """Return whether there were so many connections."""
        return self.connections >= connections

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.most_unanswered.append(0)
        talk = Talk(self, writer)
        self.talks.append(talk)
        with suppress(ConnectionError):
            while data := await reader.read(1 << 20):
                talk.connection.framer.feed(data)
                self._handle(talk)
        writer.close()

    def _handle(self, talk: Talk) -> None:
        came = 0
        while (packet := talk.connection.next_packet()) is not None:
            if isinstance(packet, Connect) and packet.protocol_version > self.speaks:
                talk.say(OLD_CONNACK)
            elif isinstance(packet, Connect):
                self.begin(talk)
            elif isinstance(packet, PingReq):
                talk.send(PingResp())
            elif isinstance(packet, Subscribe):
                codes = [ReasonCode.GRANTED_QOS_1] * len(list(packet.requests))
                talk.send(SubAck(packet.packet_id, codes))
            elif isinstance(packet, Publish) and not talk.writer.is_closing():
                talk.identifiers.append(packet.packet_id)
                numbers = numbers_of(packet)
                if numbers:
                    came += 1
                    talk.count += 1
                    self.came += numbers
                    self.most_unanswered[-1] = max(self.most_unanswered[-1], came)
                (self.script if numbers else self.own)(talk, packet)


def number_of(publish: Publish) -> int:
    """Return the number of a data message, 0 of any other."""
    return next(iter(numbers_of(publish)), 0)


def numbers_of(publish: Publish) -> list[int]:
    """Return the numbers of a data message or batch; a plain message has it in its payload."""
    if publish.topic.endswith("/batch"):
        return [int(str(record["seq"])) for record in read_batch(publish.payload, "barn", 0)]
    seq = dict(publish.properties.user_properties).get("seq")
    if seq is None and "/data/" in publish.topic:
        return [int(json.loads(publish.payload)["value"])]
    return [int(seq.rpartition(".")[2])] if seq else []
