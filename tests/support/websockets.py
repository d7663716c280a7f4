"""Clients that speak WebSocket byte by byte."""

import asyncio
import base64
import struct
from dataclasses import dataclass

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_5, Connect, PingReq
from tests.support.places import Place
from tests.support.processes.server import HOST
from tests.support.raw_client import SECONDS

BINARY, TEXT, CONTINUATION, CLOSE, PING, PONG = 0x2, 0x1, 0x0, 0x8, 0x9, 0xA
KEY = base64.b64encode(bytes(range(16))).decode()

FIELDS = {
    "Host": "localhost",
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": KEY,
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Protocol": "mqtt",
}
PING_REQUEST = encode(PingReq(), MQTT_5)
PING_RESPONSE = b"\xd0\x00"


def request(path: str = "/mqtt", method: str = "GET", **changes: str | None) -> bytes:
    """Return a handshake; a field whose change is None is left out."""
    fields = FIELDS | {name.replace("_", "-"): value for name, value in changes.items()}
    lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode()


def frame(
    opcode: int, data: bytes = b"", *, last: bool = True, mask: bytes | None = b"\x01\x02\x03\x04"
) -> bytes:
    """Return a frame as a client sends it; unmasked, which is forbidden, if `mask` is None."""
    head = bytes([(0x80 if last else 0) | opcode])
    masked = 0 if mask is None else 0x80
    if len(data) < 126:
        head += bytes([masked | len(data)])
    elif len(data) < 65_536:
        head += bytes([masked | 126]) + struct.pack("!H", len(data))
    else:
        head += bytes([masked | 127]) + struct.pack("!Q", len(data))
    if mask is None:
        return head + data
    key = (mask * (len(data) // 4 + 1))[: len(data)]
    masked_data = int.from_bytes(data) ^ int.from_bytes(key)  # at once: some frames are a megabyte
    return head + mask + masked_data.to_bytes(len(data))


@dataclass(slots=True)
class Socket:
    """A TCP connection on which the test says every byte."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *parts: bytes) -> None:
        self.writer.write(b"".join(parts))
        await self.writer.drain()

    async def response(self) -> tuple[int, bytes]:
        """Return status and header fields of the answer to a handshake."""
        async with asyncio.timeout(SECONDS):
            head = await self.reader.readuntil(b"\r\n\r\n")
        return int(head.split(b" ", 2)[1]), head

    async def frame(self) -> tuple[int, bytes]:
        """Return first byte and payload of the next frame."""
        async with asyncio.timeout(SECONDS):
            first, length = await self.reader.readexactly(2)
            if length == 126:
                (length,) = struct.unpack("!H", await self.reader.readexactly(2))
            elif length == 127:
                (length,) = struct.unpack("!Q", await self.reader.readexactly(8))
            return first, await self.reader.readexactly(length)

    async def rest(self) -> bytes:
        """Return all that comes until the server closes."""
        async with asyncio.timeout(SECONDS):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    async def upgrade(self) -> None:
        await self.send(request())
        status, _ = await self.response()
        assert status == 101

    async def connect(self, client_id: str) -> None:
        """Shake hands and connect."""
        await self.upgrade()
        await self.send(frame(BINARY, encode(Connect(client_id), MQTT_5)))
        first, connack = await self.frame()
        assert (first, connack[0]) == (0x80 | BINARY, 0x20)


class Sockets:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.counters = place.server.counters
        self._opened: list[Socket] = []

    async def open(self) -> Socket:
        opened = Socket(*await asyncio.open_connection(HOST, self.place.server.port))
        self._opened.append(opened)
        return opened

    async def connect(self, client_id: str = "c") -> Socket:
        opened = await self.open()
        await opened.connect(client_id)
        return opened

    async def close(self) -> None:
        for each in self._opened:
            each.writer.close()
        await self.place.close()
