"""A client that behaves while others attack: it sends PINGREQ after PINGREQ and keeps the slowest.

    python -m tests.hostile.bystander PORT

Says `ready`, then pings until its standard input ends, and says how many answers came and how many
milliseconds the slowest took.
"""

import select
import socket
import sys
import time

CONNECT = bytes.fromhex("10 15 00 04 4d 51 54 54 04 02 00 3c 00 09") + b"bystander"
PINGREQ, PINGRESP = b"\xc0\x00", b"\xd0\x00"
PAUSE = 0.001
"""Seconds between an answer and the next PINGREQ."""


def _read(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise SystemExit("the bystander's connection was closed")
        data += more
    return data


def main(port: int) -> None:
    """Ping the broker at this port of 127.0.0.1."""
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(CONNECT)
        if _read(sock, 4) != b"\x20\x02\x00\x00":
            raise SystemExit("the bystander was not let in")
        print("ready", flush=True)
        answers, slowest = 0, 0.0
        over = False
        while not over:
            begin = time.perf_counter()
            sock.sendall(PINGREQ)
            if _read(sock, 2) != PINGRESP:
                raise SystemExit("the bystander got another packet than PINGRESP")
            answers += 1
            slowest = max(slowest, time.perf_counter() - begin)
            over = bool(select.select([sys.stdin], [], [], PAUSE)[0])
        print(answers, f"{slowest * 1000:.1f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
