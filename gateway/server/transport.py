"""One client's network connection: the socket's side of a broker client."""

import asyncio
import logging
from typing import cast

from gateway.broker.access import Authenticator
from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server.turn import Turn

logger = logging.getLogger(__name__)

HIGH_WATER = 256 * 1024
"""Bytes in the socket's write buffer from which on a connection is given no more."""

CLOSE_TIMEOUT = 5.0
"""Seconds that a connection that is being closed has to read what is owed to it."""

MISTAKE = "unexpected error; closing client at %s"


class ClientTransport(asyncio.Protocol):
    """Carries bytes between a socket and the broker; writes only at the end of a turn."""

    def __init__(self, turn: Turn, authenticator: Authenticator) -> None:
        self._turn = turn
        self._authenticator = authenticator
        self._transport: asyncio.Transport | None = None
        self._client: Client | None = None
        self._paused = False  # the peer reads too slowly
        self._abort: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Give the connection its broker client."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        peer = _name(transport.get_extra_info("peername"))
        self._client = self._turn.broker.open(
            self._authenticator, peer, self._touch, self._turn.instant
        )

    def data_received(self, data: bytes) -> None:
        """Let the broker handle what came."""
        client = self._client
        if client is None or client.closing:
            return
        try:
            self._turn.broker.receive(client, data, self._turn.instant)
        except Exception:
            # one of the three borders (design, section 3): a mistake of ours ends this
            # connection and no other
            logger.exception(MISTAKE, client.peer)
            self._turn.broker.counters.add("tidegate/clients/errors")
            client.disconnect(ReasonCode.UNSPECIFIED_ERROR)
        if client.connection.congested and self._transport is not None:
            self._transport.pause_reading()  # answers that nobody reads must not pile up

    def eof_received(self) -> bool:
        """Let the transport close itself."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the broker; `error` is None after an orderly end."""
        if self._client is not None:
            if error is not None:
                logger.info("client at %s: %s", self._client.peer, error)
            self._turn.broker.lost(self._client, self._turn.instant)
        self._transport = None
        if self._abort is not None:
            self._abort.cancel()

    def pause_writing(self) -> None:
        """Note that the peer reads too slowly."""
        self._paused = True

    def resume_writing(self) -> None:
        """Note that there is room again."""
        self._paused = False
        self._touch()

    def flush(self, committed: int, now: Instant) -> bool:
        """Write what may leave; return True if the rest waits for a later batch."""
        client, transport = self._client, self._transport
        if client is None or transport is None or transport.is_closing():
            return False
        try:
            return self._write(client, transport, committed, now)
        except Exception:  # the same border
            logger.exception(MISTAKE, client.peer)
            self._turn.broker.counters.add("tidegate/clients/errors")
            transport.abort()
            return False

    def _write(
        self, client: Client, transport: asyncio.Transport, committed: int, now: Instant
    ) -> bool:
        connection = client.connection
        while not self._paused:
            data = connection.data_to_send(committed)
            if data is not None:
                self._turn.broker.counters.add("bytes/sent", len(data))
                transport.write(data)
            session = client.session
            if data is None or session is None or session.connection is not connection:
                break
            session.pump(now.monotonic)
        waits = connection.output.size > 0
        if client.closing:
            self._close(transport, now=not waits)
        elif not connection.congested:
            transport.resume_reading()
        return waits and not self._paused

    def abort(self) -> None:
        """Close the socket now, whatever was still to be sent."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def open(self) -> bool:
        """True until the socket is closed and what was written to it is gone."""
        return self._transport is not None

    def disconnect(self, reason_code: ReasonCode, reason: str) -> None:
        """End the connection from our side."""
        if self._client is not None:
            self._client.disconnect(reason_code, reason)

    def _touch(self) -> None:
        self._turn.touch(self)

    def _close(self, transport: asyncio.Transport, *, now: bool) -> None:
        """Close once everything is sent; a peer that reads nothing is not waited for long."""
        if self._abort is None:
            loop = asyncio.get_running_loop()
            self._abort = loop.call_later(CLOSE_TIMEOUT, transport.abort)
        if now:
            transport.close()


def _name(peername: object) -> str:
    if isinstance(peername, tuple) and len(peername) >= 2:
        host, port = peername[0], peername[1]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    return str(peername or "unknown")
