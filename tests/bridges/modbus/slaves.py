"""Modbus devices that refuse, shorten and delay as the ones in houses do."""

import asyncio
import contextlib
import os
import tty
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from pymodbus.framer import FramerRTU


@dataclass
class Slave:
    """Holding registers whose value is their address; `asked` is what was asked for."""

    most: int = 125
    illegal: frozenset[int] = frozenset()
    code: int = 2
    short: bool = False
    silent: bool = False
    """Whether what it refuses else has no answer."""
    closes: bool = False
    """Whether it closes the connection then."""
    before: Callable[[bytes, bytes], bytes] = lambda _head, _body: b""
    """What it sends on TCP before an answer, made of the question's header and body."""
    number: int | None = None
    """The transaction number of its answers on TCP, if it is not the question's."""
    unit: int | None = None
    """The only identifier that it answers to on TCP, None for any."""
    asked: list[tuple[int, int]] = field(default_factory=list)

    def answer(self, body: bytes) -> bytes:
        """Return the answer to a function code with its data."""
        if body[0] != 3:
            return body[:5]
        start, count = int.from_bytes(body[1:3], "big"), int.from_bytes(body[3:5], "big")
        self.asked.append((start, count))
        if count > self.most or not self.illegal.isdisjoint(range(start, start + count)):
            return b"" if self.silent else bytes((body[0] | 0x80, self.code))
        given = count - 1 if self.short and count > 1 else count
        words = b"".join(each.to_bytes(2, "big") for each in range(start, start + given))
        return bytes((body[0], len(words))) + words


@contextlib.asynccontextmanager
async def tcp_slave(slave: Slave) -> AsyncIterator[str]:
    """Serve a device; gives its port as the configuration names it."""

    ended: list[asyncio.Event] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(end := asyncio.Event())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readexactly(7)
                body = await reader.readexactly(int.from_bytes(head[4:6], "big") - 1)
                if slave.unit not in (None, head[6]):
                    continue
                answer = slave.answer(body)
                if not answer and slave.closes:
                    break
                if not answer:
                    continue
                if first := slave.before(head, body):
                    writer.write(first)
                    await asyncio.sleep(0.002)
                number = head[:2] if slave.number is None else slave.number.to_bytes(2, "big")
                writer.write(on_tcp(number + head[2:4] + b"\0\0" + head[6:7], answer))
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        end.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        async with asyncio.timeout(10):
            for each in ended:
                await each.wait()


def on_tcp(head: bytes, answer: bytes) -> bytes:
    """Return an answer after a header of Modbus TCP with its size."""
    return head[:4] + (len(answer) + 1).to_bytes(2, "big") + head[6:7] + answer


def framed(device: int, body: bytes) -> bytes:
    """Return an RTU frame."""
    frame = bytes((device,)) + body
    return frame + FramerRTU.compute_CRC(frame).to_bytes(2, "big")


class RtuLine:
    """A pseudo-terminal with devices behind it; `hear` is given each request and may `send`."""

    def __init__(self, hear: Callable[[bytes], None]) -> None:
        self._ours, self._theirs = os.openpty()
        tty.setraw(self._theirs)
        self.path = os.ttyname(self._theirs)
        self._hear = hear
        asyncio.get_running_loop().add_reader(self._ours, self._read)

    def send(self, data: bytes) -> None:
        os.write(self._ours, data)

    def _read(self) -> None:
        request = os.read(self._ours, 256)  # of eight bytes, written at once
        self._hear(request)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._ours)
        os.close(self._ours)
        os.close(self._theirs)
