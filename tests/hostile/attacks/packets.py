"""Packets, frames and connections that no client should send or make."""

import base64
import contextlib
import os
import ssl
import struct
import time

from tests.conformance.support.wire import PINGREQ, packet, text
from tests.hostile.scene import Attack, Scene
from tests.hostile.wire import Attacker, connect, publish, subscribe, unsubscribe

USER_PROPERTY = b"\x26\0\0\0\0"
"""The smallest."""

HANDSHAKE = b"\x16\x03\x01\x40\x00"
"""How a TLS record with 16 KiB of a handshake begins."""


def many_topic_filters(scene: Scene) -> None:
    """One SUBSCRIBE of 690,000 topic filters, 4,096 different ones, then an UNSUBSCRIBE of them."""
    attacker = scene.client("a")
    filters = [f"{number % 4096:x}" for number in range(scene.many(690_000))]
    attacker.send(subscribe(filters))
    assert attacker.next()[0] == 0x90
    attacker.send(unsubscribe(filters))
    assert attacker.next()[0] == 0xB0


def deep_topic_filters(scene: Scene) -> None:
    """4,000 topic filters of 200 levels, given up by going away."""
    attacker = scene.client("a")
    attacker.send(
        subscribe(["/".join([str(number), *"l" * 199]) for number in range(scene.many(4_000))])
    )
    assert attacker.next()[0] == 0x90
    attacker.close()


def many_properties(scene: Scene) -> None:
    """A PUBLISH with 830,000 user properties."""
    attacker = scene.client("a", 5)
    attacker.try_to_send(publish("t", b"", block=USER_PROPERTY * scene.many(830_000)))
    attacker.read_all()


def many_properties_before_any_password(scene: Scene) -> None:
    """A CONNECT with 830,000 user properties."""
    attacker = scene.attacker()
    attacker.try_to_send(connect("a", 5, USER_PROPERTY * scene.many(830_000)))
    attacker.read_all()


def unfinished_connects(scene: Scene) -> None:
    """500 CONNECTs of 4.19 MB without their ends."""
    unfinished = connect("a", 5, USER_PROPERTY * 830_000)[:-10]
    for _ in range(scene.many(500)):
        scene.attacker().try_to_send(unfinished)


def unfinished_publishes(scene: Scene) -> None:
    """300 PUBLISHes of 4.19 MB without their ends."""
    unfinished = publish("t", bytes(4_180_000))[:-10]
    for number in range(scene.many(300)):
        scene.client(f"u{number}").try_to_send(unfinished)


def unfinished_frames(scene: Scene) -> None:
    """300 WebSocket frames of 4 MB without their ends."""
    unfinished = frame(bytes(4_000_000))[:-10]
    for _ in range(scene.many(300)):
        attacker = scene.attacker(scene.websocket_port)
        shake_hands(attacker)
        attacker.try_to_send(unfinished)


def broken_hellos(scene: Scene) -> None:
    """2,000 TLS handshakes that begin with 270 KB of nothing."""
    hello = HANDSHAKE + b"\x01\x01\xff\xff" + bytes(16_380)
    rubbish = (HANDSHAKE + os.urandom(16_384)) * 16
    for _ in range(scene.many(2_000)):
        scene.attacker(scene.tls_port).try_to_send(hello + rubbish)


def floods_of_pings(scene: Scene) -> None:
    """20 clients that send 100,000 PINGREQs each at once."""
    for number in range(20):
        scene.client(f"p{number}").try_to_send(PINGREQ * scene.many(100_000))


def acknowledgements_of_nothing(scene: Scene) -> None:
    """20 clients that send 65,535 PUBRECs and as many PUBRELs each, of no message."""
    numbers = range(1, 1 + scene.many(65_535))
    for name in range(20):
        client = scene.client(f"q{name}")
        for first_byte in (0x50, 0x62):
            client.try_to_send(b"".join(struct.pack(">BBH", first_byte, 2, n) for n in numbers))


def trickling(scene: Scene) -> None:
    """500 connections that send a CONNECT byte by byte."""
    attackers = [scene.attacker() for _ in range(scene.many(500))]
    for byte in connect("slow")[:12]:
        for attacker in attackers:
            attacker.try_to_send(bytes([byte]))
        time.sleep(0.02)


def nonsense(scene: Scene) -> None:
    """2,000 connections that send random bytes, HTTP, and packets of the wrong direction."""
    for number in range(scene.many(2_000)):
        rubbish = (
            os.urandom(2_000),
            b"GET / HTTP/1.1\r\n\r\n",
            packet(0x20, b"\0\0"),
            packet(0x10, text("MQTT") + b"\xff" * 20),
        )
        scene.attacker().try_to_send(rubbish[number % 4])


def fragments(scene: Scene) -> None:
    """Ten WebSocket clients that send a PUBLISH of 300,000 bytes in frames of one byte each."""
    message = publish("t", bytes(scene.many(300_000)))
    for number in range(10):
        attacker = scene.attacker(scene.websocket_port)
        shake_hands(attacker)
        attacker.send(b"".join(frame(each) for each in (connect(f"f{number}"), message)))
        attacker.try_to_send(b"".join(frame(bytes((byte,))) for byte in message))


def shake_hands(attacker: Attacker) -> None:
    """Have the connection be a WebSocket."""
    key = base64.b64encode(os.urandom(16)).decode()
    request = (
        f"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
    )
    attacker.send(request.encode())
    attacker.sock.recv(1024)


def frame(data: bytes) -> bytes:
    """Return a binary frame whose mask changes nothing."""
    size = len(data)
    head = bytes((0x80 | size,)) if size < 126 else b"\xff" + size.to_bytes(8, "big")
    return b"\x82" + head + bytes(4) + data


def half_open(scene: Scene) -> None:
    """5,000 connections that say nothing, or stop in the middle of their CONNECT."""
    for number in range(scene.many(5_000)):
        scene.attacker().send(connect("h" * 100)[: number % 2 * 50])


def half_open_tls(scene: Scene) -> None:
    """5,000 TLS handshakes that stop after the first word."""
    context = ssl.create_default_context()
    for _ in range(scene.many(5_000)):
        hello = ssl.MemoryBIO()
        with contextlib.suppress(ssl.SSLWantReadError):
            context.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="h").do_handshake()
        scene.attacker(scene.tls_port).try_to_send(hello.read())


ATTACKS: tuple[Attack, ...] = (
    many_topic_filters,
    deep_topic_filters,
    many_properties,
    many_properties_before_any_password,
    unfinished_connects,
    unfinished_publishes,
    unfinished_frames,
    fragments,
    broken_hellos,
    half_open,
    half_open_tls,
    floods_of_pings,
    acknowledgements_of_nothing,
    trickling,
    nonsense,
)
