"""What does it cost to hold connections on which nothing happens?

    .venv/bin/python -m bench.idle_connections [COUNT] [tcp|tls|websocket]

Starts a gateway, connects COUNT clients (10,000 by default) with MQTT 3.1.1 and no keep alive,
and prints the gateway's memory, its share of a processor, and how fast a PINGREQ is answered.
"""

import asyncio
import base64
import resource
import ssl
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.harness.processes import memory, processor
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_3_1_1, Connect, PingReq
from tests.support.processes.certificates import Authority
from tests.support.processes.gateway_process import GatewayProcess

MIB = 1024 * 1024

AT_ONCE = 200
"""Connections under way at a time."""

PINGS = 500
QUIET = 5.0
"""Seconds over which the share of a processor is taken."""

HANDSHAKE = (
    "GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Protocol: mqtt\r\n\r\n"
).encode()

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Clients:
    """Connects to one gateway in one way."""

    def __init__(self, port: int, kind: str, ca_file: str) -> None:
        self._port = port
        self._websocket = kind == "websocket"
        self._tls = ssl.create_default_context(cafile=ca_file) if kind == "tls" else None
        self._limits = asyncio.Semaphore(AT_ONCE)

    def wrap(self, packet: bytes) -> bytes:
        """Return the packet as it is sent: as a frame, its mask zero, on a WebSocket."""
        head = bytes([0x82, 0x80 | len(packet), 0, 0, 0, 0])
        return head + packet if self._websocket else packet

    async def connect(self, number: int) -> Streams:
        async with self._limits:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls)
            if self._websocket:
                writer.write(HANDSHAKE)
                await reader.readuntil(b"\r\n\r\n")
            packet = Connect(f"client-{number}", MQTT_3_1_1)
            writer.write(self.wrap(encode(packet, MQTT_3_1_1)))
            await self.answer(reader, 4)
            return reader, writer

    async def answer(self, reader: asyncio.StreamReader, size: int) -> None:
        """Read a packet of this size."""
        await reader.readexactly(size + 2 if self._websocket else size)

    async def ping(self, streams: Streams) -> float:
        """Return the milliseconds until the answer."""
        begin = time.perf_counter()
        streams[1].write(self.wrap(encode(PingReq(), MQTT_3_1_1)))
        await self.answer(streams[0], 2)
        return (time.perf_counter() - begin) * 1000


async def measure(process: int, clients: Clients, count: int) -> None:
    before, begin = memory(process), time.perf_counter()
    connected = await asyncio.gather(*(clients.connect(number) for number in range(count)))
    seconds = time.perf_counter() - begin
    pings = [await clients.ping(connected[0]) for _ in range(PINGS)]
    after, used = memory(process), processor(process)
    await asyncio.sleep(QUIET)
    share = processor(process).since(used).total / QUIET
    print(f"{count} connections in {seconds:.1f} s")
    each = (after - before) / 1024 / count
    print(f"memory {before / MIB:.0f} -> {after / MIB:.0f} MiB, {each:.1f} KiB each")
    print(f"processor, while nothing happens: {share:.1%}")
    slow = statistics.quantiles(pings, n=100)[98]
    print(f"PINGREQ: median {statistics.median(pings):.2f} ms, 99 of 100 in {slow:.2f} ms")
    for _, writer in connected:
        writer.transport.abort()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    kind = sys.argv[2] if len(sys.argv) > 2 else "tcp"
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        authority = Authority(folder)
        pair = authority.issue("localhost")
        config = "[gateway]\nid = 'bench'\n[[listener]]\n"
        if kind == "tls":
            config += f"tls_certificate = '{pair.certificate}'\ntls_key = '{pair.key}'\n"
        if kind == "websocket":
            config += "websocket = true\n"
        gateway = GatewayProcess(folder, config).start()
        assert gateway.process is not None
        clients = Clients(gateway.port, kind, authority.ca_file)
        try:
            asyncio.run(measure(gateway.process.pid, clients, count))
        finally:
            gateway.kill()


if __name__ == "__main__":
    main()
