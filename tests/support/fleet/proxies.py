"""Proxies for one test: HTTP CONNECT and SOCKS5, honest and otherwise."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def proxy(handler: Handler) -> AsyncIterator[int]:
    """Run a proxy and give its port."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await handler(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def http(credentials: str | None = None) -> Handler:
    """Return an HTTP proxy that lets those with these credentials connect."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if credentials is not None:
            wanted = base64.b64encode(credentials.encode()).decode()
            if f"Basic {wanted}" not in head:
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                return
        host, port = head.split()[1].rsplit(":", 1)
        await _join(reader, writer, host, int(port), b"HTTP/1.1 200 OK\r\n\r\n")

    return handle


def socks5(credentials: str | None = None) -> Handler:
    """Return a SOCKS5 proxy (RFC 1928, RFC 1929)."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        method = 0 if credentials is None else 2
        if method not in methods:
            writer.write(b"\x05\xff")
            return
        writer.write(bytes((5, method)))
        if credentials is not None:
            _, size = await reader.readexactly(2)
            user = await reader.readexactly(size)
            password = await reader.readexactly((await reader.readexactly(1))[0])
            good = f"{user.decode()}:{password.decode()}" == credentials
            writer.write(b"\x01\x00" if good else b"\x01\x01")
            if not good:
                return
        *_, kind = await reader.readexactly(4)
        if kind == 1:
            host = ".".join(map(str, await reader.readexactly(4)))
        else:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        port = int.from_bytes(await reader.readexactly(2), "big")
        await _join(reader, writer, host, port, b"\x05\x00\x00\x01" + bytes(6))

    return handle


async def lies(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer what is no proxy's answer."""
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    await writer.drain()


async def _join(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int, answer: bytes
) -> None:
    there_reader, there_writer = await asyncio.open_connection(host, port)
    try:
        writer.write(answer)
        await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))
    finally:
        there_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
