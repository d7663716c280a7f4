"""One network connection to a gateway on this machine, as a client sees it: packets both ways."""

import asyncio
from collections.abc import AsyncIterator

from gateway.mqtt.codec.packet_codec import decode, encode
from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import ConnAck, Connect, Packet
from gateway.mqtt.reason_codes import ReasonCode

HOST = "127.0.0.1"

MAXIMUM_PACKET_SIZE = 1024 * 1024
"""Bytes; far above what the crash test publishes."""

READ_SIZE = 65_536

PATIENCE = 60.0
"""Seconds that anything may take on a busy board; beyond, the gateway hangs."""


class Client:
    """A connection whose CONNECT was accepted; `session_present` as its CONNACK said."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: int
    ) -> None:
        self.session_present = False
        self._version = version
        self._reader = reader
        self._writer = writer
        self._framer = Framer(MAXIMUM_PACKET_SIZE)

    @classmethod
    async def connect(cls, port: int, packet: Connect) -> "Client":
        """Return a connected client; raise OSError if there is none to be had."""
        reader, writer = await asyncio.open_connection(HOST, port)
        client = cls(reader, writer, packet.protocol_version)
        try:
            await client._connect(packet)
        except BaseException:  # cancelled, too
            client.close()
            raise
        return client

    async def _connect(self, packet: Connect) -> None:
        self.send(packet)
        try:
            connack = await asyncio.wait_for(anext(self.packets()), PATIENCE)
        except (StopAsyncIteration, TimeoutError) as error:
            raise ConnectionError("no CONNACK") from error
        if not isinstance(connack, ConnAck) or connack.reason_code != ReasonCode.SUCCESS:
            raise ConnectionError(f"{packet.client_id} is answered {connack}")
        self.session_present = connack.session_present

    def send(self, *packets: Packet) -> None:
        """Send packets; what a dead gateway does not take is gone."""
        if not self._writer.is_closing():
            self._writer.write(b"".join(encode(packet, self._version) for packet in packets))

    async def drain(self) -> None:
        """Wait until the gateway has read most of what was sent."""
        await self._writer.drain()

    async def packets(self) -> AsyncIterator[Packet]:
        """Give every packet that comes until the connection ends."""
        while True:
            framer = self._framer
            while first_byte := framer.next_frame():
                yield decode(framer.buffer, first_byte, framer.body, framer.end, self._version)
            try:
                data = await self._reader.read(READ_SIZE)
            except OSError:
                return
            if not data:
                return
            self._framer.feed(data)

    def abort(self) -> None:
        """Close the socket with all that was not read: it is lost like the connection."""
        self._writer.transport.abort()

    def close(self) -> None:
        """Close the socket without a DISCONNECT."""
        self._writer.close()
