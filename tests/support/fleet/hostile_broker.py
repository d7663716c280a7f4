"""A broker for a node: it does something else to each connection, and at last its duty."""

import contextlib
import random
import socket
import ssl
import struct
import threading
from collections.abc import Callable

from gateway.bridges.serial.frame_body import (
    ReadingsFrame,
    Status,
    decode_frame,
    encode_acknowledgement,
)
from gateway.bridges.serial.serial_frames import FrameDecoder, encode_frame
from gateway.counters import Counters

CONNACK = b"\x20\x02\0\0"
TOPIC = struct.pack(">H", len("nodes/n1/down")) + b"nodes/n1/down"

Trick = Callable[["Conversation"], None]


def publish(payload: bytes) -> bytes:
    """Return a PUBLISH packet of up to 127 bytes."""
    body = TOPIC + payload
    return bytes([0x30, len(body)]) + body


class Conversation:
    """One connection of the node, and the packets that it sends."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._stream = connection.makefile("rb")

    def close(self) -> None:
        """Hang up."""
        self._stream.close()
        self._connection.close()

    def send(self, data: bytes) -> None:
        """Send it."""
        self._connection.sendall(data)

    def packet(self) -> tuple[int, bytes]:
        """Return the next packet's first byte and body; EOFError when the node is gone."""
        kind = self._exactly(1)[0]
        size = shift = 0
        while True:
            byte = self._exactly(1)[0]
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return kind, self._exactly(size)

    def accept(self) -> None:
        """Take CONNECT and SUBSCRIBE, and say something so that the node's waits begin anew."""
        assert self.packet()[0] == 0x10
        self.send(CONNACK)
        kind, body = self.packet()
        assert kind == 0x82
        self.send(b"\x90\x03" + body[:2] + b"\0")
        self.send(publish(b"\0noise\0"))

    def until_gone(self) -> None:
        """Hear the node until it hangs up."""
        while True:
            self.packet()

    def _exactly(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise EOFError
        return data


def refuse(talk: Conversation) -> None:
    """Refuse the node's password."""
    talk.packet()
    talk.send(b"\x20\x02\0\x05")


def refuse_the_topic(talk: Conversation) -> None:
    """Take the node, and not its subscription."""
    talk.packet()
    talk.send(CONNACK)
    _, body = talk.packet()
    talk.send(b"\x90\x03" + body[:2] + b"\x80")
    talk.until_gone()


def say_nothing(talk: Conversation) -> None:
    """Never answer."""
    talk.until_gone()


def send(*data: bytes) -> Trick:
    """Return a trick: say this in place of a CONNACK, and nothing more."""

    def trick(talk: Conversation) -> None:
        talk.packet()
        for each in data:
            talk.send(each)
        talk.until_gone()

    return trick


def accepted(*data: bytes) -> Trick:
    """Return a trick: take the node, say this, and nothing more."""

    def trick(talk: Conversation) -> None:
        talk.accept()
        for each in data:
            talk.send(each)
        talk.until_gone()

    return trick


def drip(talk: Conversation) -> None:
    """Send a packet a byte at a time, for ever."""
    talk.accept()
    for byte in b"\x30\xff\x07\0\x05nodes" + bytes(1000):
        talk.send(bytes([byte]))
        threading.Event().wait(0.02)
    talk.until_gone()


def answer_pings_for_ever(talk: Conversation) -> None:
    """Send answers to pings in place of an answer to the subscription."""
    talk.packet()
    talk.send(CONNACK)
    while True:
        talk.send(b"\xd0\0" * 64)


RANDOM = random.Random(21)

TRICKS: tuple[Trick, ...] = (
    accepted(b"\x30\xff\xff\xff\x7f" + TOPIC),  # a packet of 256 MiB
    say_nothing,
    accepted(b"\x30\x28" + TOPIC),  # half a packet
    refuse,
    accepted(b"\x30" + b"\xff" * 4096),  # a size without end
    send(b"\x20"),
    accepted(b"\x30\x02\xff\xff"),  # a topic that is longer than its packet
    send(RANDOM.randbytes(300)),
    accepted(RANDOM.randbytes(5000)),
    refuse_the_topic,
    accepted(*[publish(RANDOM.randbytes(100)) for _ in range(200)]),
    answer_pings_for_ever,
    drip,
    accepted(b"\x36\x11" + TOPIC + b"\0\x01"),  # QoS 3
)


class HostileBroker:
    """Listens on `port`; `frames` are what the node sent when it was answered at last.

    Each connection meets the next of `tricks`, and what comes after them a broker that stores
    everything. With `context` it speaks TLS.
    """

    def __init__(self, tricks: tuple[Trick, ...], context: ssl.SSLContext | None = None) -> None:
        self._tricks = list(tricks)
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.frames: list[ReadingsFrame] = []
        self.failures: list[str] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def left(self) -> int:
        """Tricks that nobody has met."""
        return len(self._tricks)

    def close(self) -> None:
        """Stop listening."""
        self._listener.shutdown(socket.SHUT_RDWR)  # which wakes the thread
        self._listener.close()
        self._thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed
                return
            with connection, contextlib.suppress(OSError, EOFError):
                self._meet(connection)

    def _meet(self, connection: socket.socket) -> None:
        if self._context is not None:
            try:
                connection = self._context.wrap_socket(connection, server_side=True)
            except ssl.SSLError as failure:
                self.failures.append(str(failure))
                return
        talk = Conversation(connection)
        try:
            if self._tricks:
                self._tricks.pop(0)(talk)
            else:
                self._store(talk)
        finally:
            talk.close()

    def _store(self, talk: Conversation) -> None:
        talk.accept()
        decoder = FrameDecoder(Counters().add)
        while True:
            kind, body = talk.packet()
            if kind == 0xC0:
                talk.send(b"\xd0\0")
                continue
            for frame in decoder.feed(body[2 + body[1] :]):
                readings = decode_frame(frame)
                if not isinstance(readings, ReadingsFrame):
                    continue
                self.frames.append(readings)
                stored = encode_acknowledgement(Status.STORED, readings.boot, readings.sequence)
                talk.send(publish(encode_frame(stored)))
