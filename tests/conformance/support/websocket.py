"""A WebSocket connection put together by hand (RFC 6455), as little of it as MQTT needs."""

import socket
import struct

BINARY, TEXT, CONTINUATION, CLOSE = 0x2, 0x1, 0x0, 0x8
FINAL = 0x80
MASK = b"\x00\x00\x00\x00"
"""A mask that changes nothing: a client's frames have one."""

REQUEST = (
    "GET /mqtt HTTP/1.1\r\n"
    "Host: 127.0.0.1\r\n"
    "Upgrade: websocket\r\n"
    "Connection: Upgrade\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    "Sec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Protocol: {protocols}\r\n"
    "\r\n"
)


def frame(data: bytes, opcode: int = BINARY, *, final: bool = True) -> bytes:
    """Return one frame of a client."""
    first = opcode | final * FINAL
    if len(data) < 126:
        return bytes([first, 0x80 | len(data)]) + MASK + data
    return struct.pack("!BBH", first, 0x80 | 126, len(data)) + MASK + data


class WebSocket:
    """One end of a WebSocket connection to a broker on this machine."""

    def __init__(self, port: int, protocols: str = "mqtt") -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 10)
        self._socket.sendall(REQUEST.format(protocols=protocols).encode())
        self._received = b""
        while b"\r\n\r\n" not in self._received:
            self._read()
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        self.status = int(status.split()[1])
        self.fields = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }

    def send(self, *frames: bytes) -> None:
        self._socket.sendall(b"".join(frames))

    def expect(self, expected: bytes) -> None:
        """Hear these bytes in binary frames, cut in whatever way."""
        heard = b""
        while len(heard) < len(expected):
            opcode, data = self.receive()
            assert opcode == BINARY, (opcode, data)
            heard += data
        assert heard == expected, heard.hex(" ")

    def expect_end(self) -> None:
        """See the connection end without another binary frame."""
        try:
            while True:
                opcode, data = self.receive()
                assert opcode == CLOSE, (opcode, data)
        except EOFError:
            self.close()

    def receive(self) -> tuple[int, bytes]:
        """Return opcode and payload of the next frame; raise EOFError at the end."""
        first, length = self._take(2)
        if length == 126:
            length = int.from_bytes(self._take(2), "big")
        return first & 0x0F, bytes(self._take(length))

    def close(self) -> None:
        self._socket.close()

    def _take(self, size: int) -> bytes:
        while len(self._received) < size:
            self._read()
        taken, self._received = self._received[:size], self._received[size:]
        return taken

    def _read(self) -> None:
        try:
            data = self._socket.recv(65_536)
        except ConnectionResetError:
            data = b""
        if not data:
            raise EOFError
        self._received += data
