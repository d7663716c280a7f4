"""An MQTT client that sends exactly what it is told, and shows exactly what comes back."""

import asyncio
import socket
import struct
from dataclasses import replace
from typing import TypeVar

from gateway.mqtt.codec.packet_codec import decode, encode
from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import (
    MQTT_5,
    ConnAck,
    Connect,
    Packet,
    PingReq,
    PingResp,
    SubAck,
    Subscribe,
    SubscriptionRequest,
)
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.frames import next_frame

SECONDS = 60.0
"""How long anything may take on a busy machine."""

NO_LIMIT = 0xFFFFFFFF

P = TypeVar("P", bound=Packet)


class RawClient:
    """One network connection to a broker on this machine; bytes or packets, as is handier."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: int
    ) -> None:
        self.version = version
        self.connack = ConnAck()
        self.raw = bytearray()  # everything that ever came
        self._reader = reader
        self._writer = writer
        self._framer = Framer(NO_LIMIT)

    @classmethod
    async def open(
        cls, port: int, version: int = MQTT_5, *, receive_buffer: int | None = None
    ) -> "RawClient":
        """Return a client that has said nothing yet.

        With a small `receive_buffer`, in bytes, a client that reads nothing soon blocks the way.
        """
        sock = socket.socket()
        sock.setblocking(False)
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        except BaseException:
            sock.close()
            raise
        limit = 65_536 if receive_buffer is None else receive_buffer
        return cls(*await asyncio.open_connection(sock=sock, limit=limit), version)

    async def connect_as(self, client_id: str, **fields: object) -> None:
        """Connect; fails unless the broker accepts."""
        packet = Connect(client_id, self.version)
        await self.send(replace(packet, **fields))  # type: ignore[arg-type]  # by name
        connack = await self.take(ConnAck)
        assert connack.reason_code == ReasonCode.SUCCESS, connack
        self.connack = connack

    async def send(self, *packets: Packet) -> None:
        await self.send_bytes(b"".join(encode(packet, self.version) for packet in packets))

    async def send_bytes(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self) -> Packet:
        """Return the next packet; EOFError at the connection's end, TimeoutError without one."""
        async with asyncio.timeout(SECONDS):
            while (frame := next_frame(self._framer)) is None:
                data = await self._reader.read(65_536)
                if not data:
                    raise EOFError
                self.raw += data
                self._framer.feed(data)
        return decode(*frame, self.version)

    async def take(self, kind: type[P]) -> P:
        """Return the next packet, which is of this kind."""
        packet = await self.receive()
        assert isinstance(packet, kind), packet
        return packet

    async def expect(self, data: bytes) -> None:
        """Fail unless exactly these bytes come next."""
        async with asyncio.timeout(SECONDS):
            came = await self._reader.readexactly(len(data))
        self.raw += came
        assert came == data, f"{came.hex(' ')} came instead of {data.hex(' ')}"

    async def waiting(self) -> list[Packet]:
        """Return what came until the answer to a PINGREQ: the broker had nothing else for us."""
        await self.send(PingReq())
        packets: list[Packet] = []
        while not isinstance(packet := await self.receive(), PingResp):
            packets.append(packet)
        return packets

    async def until_closed(self) -> list[Packet]:
        """Return the last packets of a connection that the broker ends."""
        packets: list[Packet] = []
        try:
            while True:
                packets.append(await self.receive())
        except (EOFError, ConnectionError):
            return packets

    async def subscribe(
        self,
        topic_filter: str,
        qos: int = 0,
        properties: Properties = NO_PROPERTIES,
        **options: object,
    ) -> ReasonCode:
        """Subscribe and return the reason code; nothing else may come before it."""
        request = SubscriptionRequest(topic_filter, qos, **options)  # type: ignore[arg-type]  # by name
        await self.send(Subscribe(99, [request], properties))
        suback = await self.take(SubAck)
        assert suback.packet_id == 99
        return suback.reason_codes[0]

    async def close(self) -> None:
        """Close the socket without a DISCONNECT."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return  # the broker was faster, or TLS ended with data that was never read

    def reset(self) -> None:
        """End the connection with a TCP reset, as a crashed machine's successor does."""
        sock: socket.socket = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


class Clients:
    """Clients of the broker at one port, all of which are closed at the end."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._opened: list[RawClient] = []

    async def open(self, version: int = MQTT_5, *, receive_buffer: int | None = None) -> RawClient:
        """Return a client that has said nothing yet."""
        client = await RawClient.open(self.port, version, receive_buffer=receive_buffer)
        self._opened.append(client)
        return client

    async def connect(
        self, client_id: str = "c", version: int = MQTT_5, /, **fields: object
    ) -> RawClient:
        """Return a client whose CONNECT, with these fields, was accepted."""
        client = await self.open(version)
        await client.connect_as(client_id, **fields)
        return client

    async def close(self) -> None:
        for client in self._opened:
            await client.close()
