"""The name of a peer in log lines."""

import asyncio
import socket
import struct

CREDENTIALS = struct.Struct("iII")  # struct ucred: process, user and group (unix(7))


def peer_name(transport: asyncio.BaseTransport) -> str:
    """Return address and port, or who connected to a Unix socket."""
    address = transport.get_extra_info("peername")
    if isinstance(address, tuple):  # as nearly always; to ask a socket for its family costs more
        return address_name(address)
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family == socket.AF_UNIX:
        raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        process, user, _ = CREDENTIALS.unpack(raw)
        return f"process {process} of user {user}"
    return address_name(address)


def is_local(transport: asyncio.BaseTransport) -> bool:
    """Return whether the peer is on this machine: on loopback or at a Unix socket."""
    address = transport.get_extra_info("peername")
    if isinstance(address, tuple):
        host = str(address[0])
        return host.startswith(("127.", "::ffff:127.")) or host == "::1"
    sock = transport.get_extra_info("socket")
    return sock is not None and sock.family == socket.AF_UNIX


def address_name(address: object) -> str:
    """Return `host:port`, with brackets around the host of IPv6."""
    if isinstance(address, tuple) and len(address) >= 2:
        host, port = address[0], address[1]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    return str(address or "unknown")
