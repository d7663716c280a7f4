"""The header of the PROXY protocol, versions 1 and 2, in which a proxy names its client."""

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Sequence
from typing import Any, cast

from gateway.server.transport import peer_name
from gateway.server.wrapped_transport import PassingConnection
from gateway.settings.checks import Network

logger = logging.getLogger(__name__)

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
"""How a header of version 2 begins."""

HEADER_2 = 16
"""Bytes of it in front of the addresses."""

LONGEST_1 = 107
"""Bytes of the longest header of version 1, with its line end."""

LONGEST_2 = 4096
"""Bytes of a header of version 2 that are read, with what the proxy says of TLS."""

Address = tuple[str, int]


class HeaderError(Exception):
    """What came is no header; the text says why."""


def parse(data: bytes) -> tuple[int, Address | None] | None:
    """Return the bytes of the header and the client's address; None if more must come.

    The address is None where the proxy speaks for itself. Raises HeaderError.
    """
    if data[: len(SIGNATURE)] == SIGNATURE[: len(data)]:
        return _parse_2(data)
    return _parse_1(data)


def _parse_1(data: bytes) -> tuple[int, Address | None] | None:
    if not b"PROXY ".startswith(data[:6]):
        raise HeaderError("no PROXY header in front of MQTT")
    end = data.find(b"\r\n")
    if end < 0 or end + 2 > LONGEST_1:
        if len(data) >= LONGEST_1:
            raise HeaderError(f"a PROXY line of more than {LONGEST_1} bytes")
        return None
    words = data[:end].decode("ascii", "replace").split(" ")
    if words[1] == "UNKNOWN":
        return end + 2, None
    if len(words) != 6 or words[1] not in ("TCP4", "TCP6"):
        raise HeaderError("a PROXY line is: PROXY TCP4 or TCP6, two addresses and two ports")
    return end + 2, _address(words[2], words[4], 4 if words[1] == "TCP4" else 6)


def _address(host: str, port: str, version: int) -> Address:
    try:
        found = ipaddress.ip_address(host)
        number = int(port)
    except ValueError as error:
        raise HeaderError(f"a PROXY line with an address that is none: {host:.50}") from error
    if found.version != version or not 0 <= number <= 65_535:
        raise HeaderError(f"a PROXY line with an address that is none: {host:.50} port {port:.10}")
    return str(found), number


def _parse_2(data: bytes) -> tuple[int, Address | None] | None:
    if len(data) < HEADER_2:
        return None
    if data[12] >> 4 != 2 or data[12] & 15 > 1:
        raise HeaderError(f"a PROXY header of version and command 0x{data[12]:02x}")
    size = HEADER_2 + int.from_bytes(data[14:16], "big")
    if size > LONGEST_2:
        raise HeaderError(f"a PROXY header of {size:,} bytes; at most {LONGEST_2:,} are read")
    if len(data) < size:
        return None
    return size, _source_2(data, size) if data[12] & 15 else None


def _source_2(data: bytes, size: int) -> Address | None:
    family, length = {0x11: (socket.AF_INET, 4), 0x21: (socket.AF_INET6, 16)}.get(
        data[13], (None, 0)
    )
    if family is None:  # a Unix socket of the proxy's machine, or a datagram
        return None
    if size < HEADER_2 + 2 * length + 4:
        raise HeaderError(f"a PROXY header of {size} bytes, too few for its addresses")
    port = HEADER_2 + 2 * length
    host = socket.inet_ntop(family, data[HEADER_2 : HEADER_2 + length])
    return host, int.from_bytes(data[port : port + 2], "big")


class ProxiedConnection(PassingConnection):
    """Between a socket and the protocol of a client: the client's address is what a proxy says.

    A connection from another address than `proxies`, without a header, or without a whole one
    within `seconds`, is closed, and a line of the log says why.
    """

    def __init__(self, inner: Any, proxies: Sequence[Network], seconds: int) -> None:
        super().__init__(inner)
        self._proxies = proxies
        self._seconds = seconds
        self._peer = "unknown"
        self._address: Address | None = None
        self._header: bytes | None = b""  # None once it was read
        self._timer: asyncio.TimerHandle | None = None

    # Called by the socket's transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the header of a proxy; close the connection of a stranger."""
        self._transport = cast("asyncio.Transport", transport)
        self._peer = peer_name(transport)
        address = transport.get_extra_info("peername")
        if address is None:  # it was reset before it was accepted
            self._refuse("it is gone already")
            return
        host = ipaddress.ip_address(address[0].partition("%")[0])
        host = getattr(host, "ipv4_mapped", None) or host
        if not any(host in network for network in self._proxies):
            self._refuse("its address is not in proxy_protocol_from")
            return
        reason = f"no PROXY header within {self._seconds} s"
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._refuse, reason)

    def data_received(self, data: bytes) -> None:
        """Read the header; pass on what is behind it."""
        if self._header is None:
            super().data_received(data)
            return
        self._header += data
        try:
            found = parse(self._header)
        except HeaderError as error:
            self._refuse(str(error))
            return
        if found is None or self._transport.is_closing():
            return
        size, self._address = found
        rest, self._header = self._header[size:], None
        self._end_wait()
        self._inner.connection_made(self)
        if rest:
            self._inner.data_received(rest)

    def eof_received(self) -> bool:
        """Pass on the end."""
        return False if self._header is not None else super().eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """End the client, also if it never began."""
        self._end_wait()
        super().connection_lost(error)

    def _end_wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, reason: str) -> None:
        logger.warning("the connection of %s is closed: %s", self._peer, reason)
        self.abort()

    # Called by the protocol of the client.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what the socket's transport says, but the client's address for `peername`."""
        if name == "peername" and self._address is not None:
            return self._address
        return super().get_extra_info(name, default)
