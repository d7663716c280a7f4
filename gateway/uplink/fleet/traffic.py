"""How many bytes a TCP connection carried, as the kernel counts them."""

import socket
import struct

TCP_INFO_LENGTH = 208
"""Bytes of `struct tcp_info` up to and with `tcpi_bytes_sent`; Linux has them since 4.19."""

_COUNT = struct.Struct("=Q")
RECEIVED_AT, SENT_AT = 128, 200
"""Where `tcpi_bytes_received` and `tcpi_bytes_sent` stand (linux/tcp.h, which only grows)."""


def bytes_carried(connection: object) -> int:
    """Return the bytes of a connection both ways: MQTT, with TLS around it if there is any.

    What TCP and IP add is not in it; what was resent is. 0 where the kernel does not say.
    """
    option = getattr(socket, "TCP_INFO", None)
    if option is None or not isinstance(connection, socket.socket):  # not Linux
        return 0
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, option, TCP_INFO_LENGTH)
    except OSError:  # closed, or no TCP
        return 0
    if len(info) < TCP_INFO_LENGTH:
        return 0
    [received] = _COUNT.unpack_from(info, RECEIVED_AT)
    [sent] = _COUNT.unpack_from(info, SENT_AT)
    return int(received + sent)
