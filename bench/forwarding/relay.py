"""A relay that only copies: what forwarding costs in Python before anything is decided or kept.

    python relay.py PORT FLEET_PORT

It takes QoS 1 messages of MQTT 3.1.1 clients, gives each a packet identifier of its own, sends it
to the fleet's broker, and passes the PUBACK back. It checks nothing and survives nothing.
"""

import selectors
import socket
import sys
from collections.abc import Iterator

PUBLISH, PUBACK = 0x32, 0x40
READ_BYTES = 256 * 1024
CONNECT = b"\x10\x11\x00\x04MQTT\x04\x02\x00\x3c\x00\x05relay"

Waiting = dict[int, tuple[socket.socket, bytes]]
"""Who awaits the PUBACK of a packet identifier of the relay, and under which of its own."""


def main(port: int, fleet_port: int) -> None:
    """Relay until killed."""
    fleet = _connected(fleet_port)
    listener = socket.create_server(("127.0.0.1", port), backlog=64)
    selector = selectors.DefaultSelector()
    for each in (listener, fleet):
        selector.register(each, selectors.EVENT_READ)
    waiting: Waiting = {}
    last = 0
    while True:
        upward, answers = bytearray(), dict[socket.socket, bytearray]()
        for key, _ in selector.select():
            if key.fileobj is listener:
                selector.register(_accepted(listener), selectors.EVENT_READ)
                continue
            source = key.fileobj
            assert isinstance(source, socket.socket)
            data = source.recv(READ_BYTES)
            if source is fleet:
                _answer(data, waiting, answers)
            elif data:
                last = _forward(source, data, waiting, last, upward)
            else:
                selector.unregister(source)
        if upward:
            fleet.sendall(upward)
        for client, packets in answers.items():
            client.sendall(packets)


def _connected(port: int) -> socket.socket:
    fleet = socket.create_connection(("127.0.0.1", port))
    fleet.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    fleet.sendall(CONNECT)
    fleet.recv(4)
    return fleet


def _accepted(listener: socket.socket) -> socket.socket:
    client, _ = listener.accept()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.recv(READ_BYTES)
    client.sendall(b"\x20\x02\x00\x00")
    return client


def _forward(
    source: socket.socket, data: bytes, waiting: Waiting, last: int, upward: bytearray
) -> int:
    """Add the messages to what goes up; return the packet identifier that was given last."""
    for start, topic, end in _publishes(data):
        last = last % 65_535 + 1
        after = topic + 2 + int.from_bytes(data[topic : topic + 2], "big")
        waiting[last] = source, data[after : after + 2]
        upward += data[start:after] + last.to_bytes(2, "big") + data[after + 2 : end]
    return last


def _publishes(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield where each PUBLISH begins, where its topic does, and where it ends; all are whole."""
    start = 0
    while start < len(data):
        length, place = data[start + 1] & 0x7F, start + 2
        if data[start + 1] > 0x7F:
            length, place = length | data[start + 2] << 7, start + 3
        if data[start] == PUBLISH:
            yield start, place, place + length
        start = place + length


def _answer(data: bytes, waiting: Waiting, answers: dict[socket.socket, bytearray]) -> None:
    """Add the PUBACKs that the fleet's answer to."""
    for start in range(0, len(data), 4):
        client, identifier = waiting.pop(int.from_bytes(data[start + 2 : start + 4], "big"))
        answers.setdefault(client, bytearray()).extend(b"\x40\x02" + identifier)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
