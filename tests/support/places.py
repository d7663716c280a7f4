"""A server at each kind of place that a gateway listens at, and raw clients that connect there."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin, Subprotocol

from gateway.broker.connecting.connection_info import Authenticator
from gateway.clock import Clock
from gateway.mqtt.packets import MQTT_5
from gateway.server.tls.context import server_context
from gateway.settings.broker import BrokerSettings
from gateway.settings.listener import ListenerSettings
from tests.support.processes.certificates import Authority, Pair
from tests.support.processes.server import HOST, HeldWriter, Server, serve
from tests.support.raw_client import Clients, RawClient

KINDS = ("tcp", "tcp6", "tls", "websocket", "wss", "unix")


class Place(Clients):
    """One listener of its own kind with a broker behind it, and its clients."""

    def __init__(self, kind: str, server: Server, ca_file: str) -> None:
        super().__init__(server.port)
        self.kind = kind
        self.server = server
        self.trust = ssl.create_default_context(cafile=ca_file)

    async def open(self, version: int = MQTT_5, *, receive_buffer: int | None = None) -> RawClient:
        """Return a client that has said nothing yet; TLS and WebSocket are behind it."""
        assert receive_buffer is None, "not at every place"
        client = RawClient(*await self._streams(), version)
        self._opened.append(client)
        return client

    async def close(self) -> None:
        """Stop the server and its clients; every connection must have been given back."""
        await self.server.close()
        await super().close()
        assert self.server.counters.count("tidegate/connections/open") == 0

    async def _streams(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        settings, port = self.server.listener.settings, self.server.port
        tls = self.trust if settings.tls_certificate else None
        if settings.websocket:
            uri = f"{'wss' if tls else 'ws'}://localhost:{port}/mqtt"
            sockets = FrameStream(await open_websocket(uri, tls))
            return cast("tuple[asyncio.StreamReader, asyncio.StreamWriter]", (sockets, sockets))
        if settings.path is not None:
            return await asyncio.open_unix_connection(settings.path)
        return await asyncio.open_connection(settings.host, port, ssl=tls)


class FrameStream:
    """The binary frames of a WebSocket with the shape of a stream's reader and writer."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.frames = 0
        self._pending: list[bytes] = []

    async def read(self, _: int) -> bytes:
        try:
            data = await self.connection.recv()
        except ConnectionClosed:
            return b""
        assert isinstance(data, bytes), "a text frame"
        self.frames += 1
        return data

    def write(self, data: bytes) -> None:
        self._pending.append(data)

    async def drain(self) -> None:
        pending, self._pending = self._pending, []
        for data in pending:
            await self.connection.send(data)

    def close(self) -> None:
        """Wait with it until `wait_closed`."""

    async def wait_closed(self) -> None:
        await self.connection.close()


async def open_websocket(
    uri: str,
    tls: ssl.SSLContext | None = None,
    *,
    subprotocol: str = "mqtt",
    origin: str | None = None,
) -> ClientConnection:
    """Return a WebSocket whose handshake is done."""
    return await connect(
        uri,
        ssl=tls,
        subprotocols=[Subprotocol(subprotocol)],
        origin=None if origin is None else Origin(origin),
        compression=None,
        max_size=None,
        close_timeout=0.5,
        host=HOST,
        proxy=None,
    )


async def open_place(
    kind: str,
    folder: Path,
    authority: Authority,
    pair: Pair,
    *,
    settings: BrokerSettings | None = None,
    authenticator: Authenticator | None = None,
    change: Callable[[ListenerSettings], ListenerSettings] = lambda listener: listener,
    clock: Clock | None = None,
) -> Place:
    """Return a place of this kind; `change` sets what else its listener is to do."""
    listener = ListenerSettings(HOST, 0)
    if kind in ("tls", "wss"):
        listener = replace(listener, tls_certificate=pair.certificate, tls_key=pair.key)
    if kind in ("websocket", "wss"):
        listener = replace(listener, websocket=True)
    if kind == "unix":
        listener = replace(listener, path=str(folder / "socket"))
    if kind == "tcp6":
        listener = replace(listener, host="::1")
    listener = change(listener)
    tls = server_context(listener, "test", 0)
    writer = HeldWriter(durable=False)
    server = await serve(writer, settings, authenticator, listener, tls, clock)
    return Place(kind, server, authority.ca_file)


Open = Callable[..., Awaitable[Place]]
