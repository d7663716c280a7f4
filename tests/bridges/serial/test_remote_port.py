"""Ports behind a network: bytes both ways, the end, nobody there, and the settings of RFC 2217."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Self

import pytest
import serial
from serial.rfc2217 import PortManager

from gateway.bridges.serial.port import Line, PortError, open_port
from gateway.bridges.serial.serial_settings import port as check_port
from tests.support.disk.storage import until
from tests.support.nodes.serial_line import SerialLine
from tests.support.ports import free_port


class Server:
    """One connection at a time."""

    def __init__(self) -> None:
        self.port = free_port()
        self.heard = b""
        self.writer: asyncio.StreamWriter

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.writer.close()
        await self.writer.wait_closed()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        writer.write(b"first")
        while data := await reader.read(100):
            self.heard += data


async def test_a_socket_is_a_line() -> None:
    async with Server() as server:
        port = await open_port(f"socket://127.0.0.1:{server.port}", Line(9600))
        assert await port.read() == b"first"
        assert port.write(b"command\n")
        await until(lambda: server.heard == b"command\n")
        server.writer.close()
        with pytest.raises(PortError, match="closed the connection"):
            await port.read()
        port.close()
        await asyncio.sleep(0)  # the loop closes it
        assert not port.write(b"more")


SET_DAEMON = pytest.mark.filterwarnings("ignore:set(Daemon|Name)")
"""pyserial 3.5 calls what Python 3.10 has deprecated."""


@SET_DAEMON
@pytest.mark.parametrize("scheme", ["socket", "rfc2217"])
async def test_nobody_there(scheme: str) -> None:
    with pytest.raises(PortError, match="refused"):
        await open_port(f"{scheme}://127.0.0.1:{free_port()}", Line(9600))


class PtySerial(serial.Serial):
    """A port whose modem lines can be set: a pseudo-terminal has none."""

    dtr = rts = True
    cts = dsr = ri = cd = False


class Rfc2217Server:
    """Passes a real line on, with pyserial's own server side, until it is closed."""

    def __init__(self, line: SerialLine) -> None:
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        self.serial = PtySerial(line.port, timeout=0.05)
        self.rates: list[int] = []
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"rfc2217://127.0.0.1:{self.listener.getsockname()[1]}"

    def write(self, data: bytes) -> None:
        self.connection.sendall(data)

    def _serve(self) -> None:
        self.connection, _ = self.listener.accept()
        manager = PortManager(self.serial, self)  # type: ignore[arg-type]  # stubs want less
        reading = threading.Thread(target=self._pass_on, args=(manager,))
        reading.start()
        with contextlib.suppress(OSError):
            while data := self.connection.recv(1024):
                self.serial.write(b"".join(manager.filter(data)))
        self.rates.append(self.serial.baudrate)
        self.ended = True
        reading.join()

    ended = False

    def _pass_on(self, manager: PortManager) -> None:
        with contextlib.suppress(OSError):
            while not self.ended:
                data = self.serial.read(100)
                if data:
                    self.write(b"".join(manager.escape(data)))

    def hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.hang_up()
        self.thread.join()
        self.connection.close()
        self.listener.close()
        self.serial.close()


@SET_DAEMON
async def test_rfc_2217_sets_the_rate_and_passes_bytes_both_ways(line: SerialLine) -> None:
    server = Rfc2217Server(line)
    port = await open_port(server.url, Line(38_400))
    line.send(b"\x00\xff\n")
    data = b""
    while len(data) < 3:
        data += await port.read()
    assert data == b"\x00\xff\n"
    assert port.write(b"\xff\x01")
    await until(lambda: line.received() == b"\xff\x01")
    server.hang_up()
    with pytest.raises(PortError):
        await port.read()
    port.close()
    await asyncio.to_thread(server.close)
    assert server.rates == [38_400]


URLS: list[tuple[str, bool]] = [
    ("socket://h:1", True),
    ("rfc2217://[::1]:4000", True),
    ("socket://h", False),
    ("socket://h:x", False),
    ("http://h:1", False),
]


@pytest.mark.parametrize(("url", "good"), URLS)
def test_urls(url: str, good: bool) -> None:
    check: Callable[[object], str] = check_port
    if good:
        assert check(url) == url
    else:
        with pytest.raises(ValueError, match="socket://host:port"):
            check(url)
