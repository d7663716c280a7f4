"""The least that a broker in Python does: QoS 1 to every subscriber, and nothing else.

    .venv/bin/python -m bench.minimal_broker PORT [--asyncio]

It checks, bounds, counts, times and stores nothing, and knows no topics. What it costs is the floor
for a gateway in Python: the interpreter, its sockets, and its event loop.
"""

import argparse
import asyncio
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

Write = Callable[[bytes], object]

subscribers: list[Write] = []


def handle(data: bytes, write: Write) -> None:
    """Answer the packets of one read, of which each has less than 128 bytes."""
    position = 0
    while position < len(data):
        end = position + 2 + data[position + 1]
        kind = data[position] >> 4
        if kind == 3:
            identifier = position + 4 + data[position + 3]
            for subscriber in subscribers:
                subscriber(data[position:end])
            write(b"\x40\2" + data[identifier : identifier + 2])
        elif kind == 1:
            write(b"\x20\2\0\0")
        elif kind == 8:
            subscribers.append(write)
            write(b"\x90\3" + data[position + 2 : position + 4] + data[end - 1 : end])
        position = end


def run_epoll(port: int) -> None:
    """Serve with epoll alone."""
    listener = socket.create_server(("127.0.0.1", port))
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    sockets: dict[int, socket.socket] = {}
    while True:
        for descriptor, _ in poll.poll():
            found = sockets.get(descriptor)
            if found is None:
                accepted, _ = listener.accept()
                sockets[accepted.fileno()] = accepted
                poll.register(accepted, select.EPOLLIN)
            elif data := found.recv(65_536):
                handle(data, found.send)
            else:
                sockets.pop(descriptor).close()


class Served(asyncio.Protocol):
    """A connection of asyncio's."""

    def connection_made(self, transport: Any) -> None:
        """Keep what writes."""
        self._write = transport.write

    def data_received(self, data: bytes) -> None:
        """Answer."""
        handle(data, self._write)


async def run_asyncio(port: int) -> None:
    """Serve with asyncio's transports."""
    server = await asyncio.get_running_loop().create_server(Served, "127.0.0.1", port)
    await server.serve_forever()


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("port", type=int)
    parser.add_argument("--asyncio", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    if options.asyncio:
        asyncio.run(run_asyncio(options.port))
    else:
        run_epoll(options.port)


if __name__ == "__main__":
    main()
