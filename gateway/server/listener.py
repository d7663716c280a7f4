"""A port at which clients connect."""

import asyncio
import os
import weakref

from gateway.broker.access import Authenticator
from gateway.errors import StartError
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server.transport import ClientTransport
from gateway.server.turn import Turn

BACKLOG = 1024
"""Connections that the kernel holds until they are accepted: a fleet that comes back at once."""

CLOSE_TIMEOUT = 1.0
"""Seconds that clients have at a stop to read the last answers."""

POLL_INTERVAL = 0.01


class Listener:
    """Accepts connections on one address and keeps track of them."""

    def __init__(self, host: str, port: int, authenticator: Authenticator, turn: Turn) -> None:
        self.host = host
        self.port = port
        self._authenticator = authenticator
        self._turn = turn
        self._server: asyncio.Server | None = None
        self._transports: weakref.WeakSet[ClientTransport] = weakref.WeakSet()

    async def bind(self) -> None:
        """Take the address, but no connection yet; raise StartError if it cannot be had."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                self._accept, self.host, self.port, backlog=BACKLOG, start_serving=False
            )
        except OSError as error:
            raise self._cannot_listen(error) from error
        self.port = self._server.sockets[0].getsockname()[1]

    async def serve(self) -> None:
        """Accept connections from now on; raise StartError if another took the address first."""
        if self._server is None:
            return
        try:
            await self._server.start_serving()
        except OSError as error:
            raise self._cannot_listen(error) from error

    async def close(self) -> None:
        """Accept no more, tell every client that the server shuts down, and see them off.

        What they are owed, wills among it, is carried out by the turns that go on meanwhile.
        """
        if self._server is None:
            return
        self._server.close()
        for transport in list(self._transports):
            transport.disconnect(ReasonCode.SERVER_SHUTTING_DOWN, "the gateway stops")
        await self.wait_closed()

    async def wait_closed(self) -> None:
        """Wait until the last clients have read what was sent to them, or are too slow."""
        deadline = asyncio.get_running_loop().time() + CLOSE_TIMEOUT
        while any(each.open for each in self._transports):
            if asyncio.get_running_loop().time() >= deadline:
                for transport in list(self._transports):
                    transport.abort()
            await asyncio.sleep(POLL_INTERVAL)

    def _cannot_listen(self, error: OSError) -> StartError:
        # asyncio repeats the address in its own text; a resolver's errors have negative numbers
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else error.strerror
        return StartError(f"cannot listen on {self.host}:{self.port}: {reason}")

    def _accept(self) -> ClientTransport:
        transport = ClientTransport(self._turn, self._authenticator)
        self._transports.add(transport)
        return transport
