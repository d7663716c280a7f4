"""Packets that no client should send, made of bytes."""

import socket
import struct

from tests.conformance.support.wire import behind_length, packet, text
from tests.support.waiting import SECONDS

CLEAN_START, WILL = 0x02, 0x0E
"""Flags of CONNECT; the will is sent at QoS 1."""


def connect(
    client_id: str,
    version: int = 4,
    block: bytes = b"",
    flags: int = CLEAN_START,
    will: tuple[str, bytes] | None = None,
) -> bytes:
    flags |= 0 if will is None else WILL
    head = text("MQTT") + bytes((version, flags)) + struct.pack(">H", 600)
    head += (behind_length(block) if version == 5 else b"") + text(client_id)
    return packet(0x10, head + (b"" if will is None else text(will[0]) + text(will[1])))


def subscribe(
    filters: list[str], version: int = 4, packet_id: int = 1, qos: int = 0, block: bytes = b""
) -> bytes:
    body = struct.pack(">H", packet_id) + (behind_length(block) if version == 5 else b"")
    return packet(0x82, body + b"".join(text(each) + bytes((qos,)) for each in filters))


def unsubscribe(filters: list[str], packet_id: int = 2) -> bytes:
    return packet(0xA2, struct.pack(">H", packet_id) + b"".join(map(text, filters)))


def publish(topic: str, payload: bytes, retain: bool = False, block: bytes | None = None) -> bytes:
    extra = b"" if block is None else behind_length(block)
    return packet(0x30 | retain, text(topic) + extra + payload)


def publish_numbered(topic: str, payload: bytes, packet_id: int, block: bytes) -> bytes:
    """Return a PUBLISH at QoS 1 in MQTT 5."""
    head = text(topic) + struct.pack(">H", packet_id) + behind_length(block)
    return packet(0x32, head + payload)


class Attacker:
    """A blocking connection to the broker at a port of 127.0.0.1."""

    def __init__(self, port: int, receive_buffer: int | None = None) -> None:
        self.sock = socket.socket()
        if receive_buffer is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(SECONDS)
        self.sock.connect(("127.0.0.1", port))

    def login(self, client_id: str, version: int = 4) -> "Attacker":
        self.send(connect(client_id, version))
        assert self.next()[0] == 0x20
        return self

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def try_to_send(self, data: bytes) -> None:
        """Send as much as the broker takes before it closes the connection."""
        try:
            self.sock.sendall(data)
        except ConnectionError:
            self.sock.close()

    def read_all(self) -> None:
        """Read until the broker has closed the connection."""
        while self.sock.fileno() >= 0 and self.next():
            pass

    def next(self) -> bytes:
        """Return the next packet whole; empty at the connection's end."""
        head = self._exactly(2)
        if not head:
            return b""
        while head[-1] & 0x80:
            head += self._exactly(1)
        size = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(head[1:]))
        return head + self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                more = self.sock.recv(size - len(data))
            except ConnectionError:
                return b""
            if not more:
                return b""
            data += more
        return data

    def close(self) -> None:
        self.sock.close()
