"""The layers between a socket and a client of one listener, as far as it has them."""

from typing import TYPE_CHECKING, Any

from gateway.broker.connecting.connection_info import PLAIN_BYTES
from gateway.broker.memory_budget import MemoryBudget
from gateway.counters import Counters
from gateway.errors import StartError
from gateway.extras import how_to_install
from gateway.settings.listener import ListenerSettings

if TYPE_CHECKING:
    import ssl

    from gateway.server.tls.connection import TlsConnection
    from gateway.server.websocket.connection import WebSocketConnection
    from gateway.server.websocket.handshake import Terms


WEBSOCKET_BYTES = 8 * 1024
TLS_BYTES = 24 * 1024
"""Their bytes for each connection beside the connection itself, measured idle."""


class TransportStack:
    """Builds the protocols around each client of a listener; `tls` and limits can change.

    Raises StartError if WebSocket is configured and its extra is not installed.
    """

    def __init__(
        self,
        settings: ListenerSettings,
        tls: "ssl.SSLContext | None",
        counters: Counters,
        maximum_packet_size: int,
        connect_timeout: int,
        memory: MemoryBudget,
    ) -> None:
        self._counters = counters
        self.maximum_packet_size = maximum_packet_size
        self.connect_timeout = connect_timeout
        self.change(settings, tls)
        self._shaking_hands: set[TlsConnection] = set()
        self._memory = memory

    def change(self, settings: ListenerSettings, tls: "ssl.SSLContext | None") -> None:
        """Apply these settings from now on; raise StartError as at first."""
        self.tls = tls
        self._websocket = load_websocket() if settings.websocket else None
        self._terms = _terms(settings)
        self._proxies = settings.proxy_protocol_from if settings.proxy_protocol else ()
        self._mounts = settings.mount_point is not None

    @property
    def none(self) -> bool:
        """True if the socket talks to the client directly."""
        layers = (self.tls, self._websocket, self._proxies or None, self._mounts or None)
        return all(layer is None for layer in layers)

    @property
    def occupied(self) -> int:
        """The bytes of memory of an idle connection."""
        websocket = WEBSOCKET_BYTES if self._websocket is not None else 0
        return PLAIN_BYTES + websocket + (TLS_BYTES if self.tls is not None else 0)

    def around(self, client: Any) -> Any:
        """Return the protocol that the socket talks to."""
        inner = self._around(client)
        if not self._proxies:
            return inner
        from gateway.server.proxied import ProxiedConnection

        return ProxiedConnection(inner, self._proxies, self.connect_timeout)

    def _around(self, client: Any) -> Any:
        if self._mounts:
            from gateway.server.mounted import MountedConnection

            client = MountedConnection(client)
        if self._websocket is not None and self._terms is not None:
            client = self._websocket(client, self.maximum_packet_size, self._terms, self._counters)
        if self.tls is None:
            return client
        from gateway.server.tls.connection import TlsConnection

        connection = TlsConnection(
            client, self.tls, self.connect_timeout, self._counters, self._end_handshake
        )
        self._shaking_hands.add(connection)
        self._memory.begin_handshake(connection)
        return connection

    def _end_handshake(self, connection: "TlsConnection") -> None:
        self._shaking_hands.discard(connection)
        self._memory.end_handshake(connection)

    def abort_handshakes(self) -> None:
        """Close the sockets that have no client yet."""
        for connection in list(self._shaking_hands):
            connection.abort()


def _terms(settings: ListenerSettings) -> "Terms | None":
    """Return the requirements of a handshake, None without any."""
    if not settings.websocket:
        return None
    from gateway.config.addresses import OwnHosts
    from gateway.server.websocket.handshake import Terms
    from gateway.server.websocket.origins import Origins

    hosts = OwnHosts(None if settings.path is not None else settings.host)
    tls = settings.tls_certificate is not None
    origins = Origins(settings.websocket_origins, hosts, tls=tls)
    return Terms(origins, settings.websocket_paths, settings.websocket_without_subprotocol)


def load_websocket() -> "type[WebSocketConnection]":
    """Return the class; raise StartError if its extra is not installed."""
    try:
        from gateway.server.websocket.connection import WebSocketConnection
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "websockets":
            raise
        raise StartError(
            f"a WebSocket listener needs its extra: {how_to_install('websocket')}"
        ) from error
    return WebSocketConnection
