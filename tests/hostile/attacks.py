"""What clients do that mean no good; at scale 1 as large as it was seen to hurt.

An attack is given the ports of a gateway (MQTT, TLS, WebSocket) and returns when it has done its
worst; what it leaves open is closed by its `Scene`.
"""

import base64
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.hostile.wire import (
    PINGREQ,
    Attacker,
    connect,
    packet,
    publish,
    publish_numbered,
    subscribe,
    text,
    unsubscribe,
    user_property,
)

USER_PROPERTY = b"\x26\0\0\0\0"
"""The smallest."""

HANDSHAKE = b"\x16\x03\x01\x40\x00"
"""How a TLS record with 16 KiB of a handshake begins."""


@dataclass
class Scene:
    """The ports of a gateway, how large the attack is (1 at most), and who takes part in it.

    `rules` is the ACL file of the listener at `rules_port`; `reload` has the gateway read it again.
    """

    port: int
    tls_port: int
    websocket_port: int
    rules_port: int
    rules: Path
    reload: Callable[[], None]
    scale: float
    attackers: list[Attacker] = field(default_factory=list)

    def many(self, count: int) -> int:
        return max(1, round(count * self.scale))

    def attacker(self, port: int | None = None, receive_buffer: int | None = None) -> Attacker:
        attacker = Attacker(port or self.port, receive_buffer)
        self.attackers.append(attacker)
        return attacker

    def client(self, name: str, version: int = 4, receive_buffer: int | None = None) -> Attacker:
        return self.attacker(receive_buffer=receive_buffer).login(name, version)

    def close(self) -> None:
        for attacker in self.attackers:
            attacker.close()


Attack = Callable[[Scene], None]


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
    key = base64.b64encode(os.urandom(16)).decode()
    request = (
        f"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
    ).encode()
    size = 4_000_000
    frame = b"\x82\xff" + size.to_bytes(8, "big") + bytes(4) + bytes(size - 10)
    for _ in range(scene.many(300)):
        attacker = scene.attacker(scene.websocket_port)
        attacker.send(request)
        attacker.sock.recv(1024)
        attacker.try_to_send(frame)


def broken_hellos(scene: Scene) -> None:
    """2,000 TLS handshakes that begin with 270 KB of nothing."""
    hello = HANDSHAKE + b"\x01\x01\xff\xff" + bytes(16_380)
    rubbish = (HANDSHAKE + os.urandom(16_384)) * 16
    for _ in range(scene.many(2_000)):
        scene.attacker(scene.tls_port).try_to_send(hello + rubbish)


def readers_that_do_not_read(scene: Scene) -> None:
    """1,000 subscribers with small receive buffers that read nothing of 3.2 MB each."""
    for number in range(scene.many(1_000)):
        attacker = scene.client(f"r{number}", receive_buffer=4_096)
        attacker.send(subscribe(["t"]))
        attacker.next()
    publisher = scene.client("p")
    for number in range(200):
        publisher.send(publish("t", bytes([number]) * 16_000))
    publisher.send(PINGREQ)
    publisher.next()


def many_aliases(scene: Scene) -> None:
    """300 clients that set 16 topic aliases of 65,000 bytes each."""
    for number in range(scene.many(300)):
        attacker = scene.client(f"a{number}", 5)
        for alias in range(1, 17):
            topic = f"{alias}/".ljust(65_000, "a")
            attacker.send(publish(topic, b"", block=b"\x23\0" + bytes([alias])))


def fan_out(scene: Scene) -> None:
    """500 messages on seven topics to each of 3,000 subscribers that read."""
    receivers = [scene.client(f"r{number}") for number in range(scene.many(3_000))]
    for receiver in receivers:
        receiver.send(subscribe(["f/#"]))
        receiver.next()
    publisher = scene.client("p")
    publisher.send(b"".join(publish(f"f/{n % 7}", b"%d" % n * 20) for n in range(500)))
    publisher.send(PINGREQ)
    publisher.next()
    for receiver in receivers:
        for _ in range(500):
            receiver.next()


def retained_again_and_again(scene: Scene) -> None:
    """90,000 retained messages, and a client that subscribes to all of them five times."""
    count = scene.many(90_000)
    publisher = scene.client("p")
    for number in range(count):
        publisher.send(publish(f"r/{number}", b"x" * 30, retain=True))
    publisher.send(PINGREQ)
    publisher.next()
    attacker = scene.client("s")
    for packet_id in range(1, 6):
        attacker.send(subscribe(["#"], packet_id=packet_id))
    received = 0
    while received < count:
        received += attacker.next()[0] & 0xF0 == 0x30


def retained_without_waiting(scene: Scene) -> None:
    """60,000 retained messages of QoS 1 by 10 clients that wait for no answer, three times."""
    publishers = [scene.client(f"p{number}") for number in range(10)]
    for payload in (b"1", b"2", b"3"):
        for number in range(scene.many(60_000)):
            head = text(f"r/{number}") + (number + 1).to_bytes(2, "big")
            publishers[number % 10].send(packet(0x33, head + payload * 30))
    for publisher in publishers:
        publisher.send(PINGREQ)
        while publisher.next()[0] != 0xD0:
            pass


def floods_of_pings(scene: Scene) -> None:
    """20 clients that send 100,000 PINGREQs each at once."""
    for number in range(20):
        scene.client(f"p{number}").try_to_send(PINGREQ * scene.many(100_000))


def take_overs(scene: Scene) -> None:
    """A client identifier that 2,000 connections take from each other, each with 100 filters."""
    filters = subscribe([f"t/{number}" for number in range(100)])
    for _ in range(scene.many(2_000)):
        scene.attacker().send(connect("same") + filters)


def queue_for(scene: Scene, client_id: str, count: int, block: bytes = b"") -> None:
    """Have so many messages of QoS 1 wait for a client that has gone."""
    gone = scene.attacker()
    gone.send(connect(client_id, flags=0))
    assert gone.next()[0] == 0x20
    gone.send(subscribe([f"{client_id}/#"], qos=1))
    assert gone.next()[0] == 0x90
    gone.close()
    publisher = scene.client(f"to {client_id}", 5)
    for first in range(0, count, 100):
        for number in range(first, min(first + 100, count)):
            topic = f"{client_id}/{number % 1_000}"
            publisher.send(publish_numbered(topic, b"x" * 30, number % 1_000 + 1, block))
        for _ in range(first, min(first + 100, count)):
            assert publisher.next()[0] == 0x40


def take_overs_of_a_long_queue(scene: Scene) -> None:
    """A client with 100,000 messages that wait, taken over 200 times by itself, unread."""
    queue_for(scene, "q", scene.many(100_000))
    for _ in range(scene.many(200)):
        scene.attacker(receive_buffer=4_096).send(connect("q", flags=0))


def many_wills(scene: Scene) -> None:
    """5,000 clients with wills that are cut off in the same moment, and one that gets them all."""
    reader = scene.client("r")
    reader.send(subscribe(["will/#"]))
    assert reader.next()[0] == 0x90
    attackers = [scene.attacker() for _ in range(scene.many(5_000))]
    for number, attacker in enumerate(attackers):
        attacker.send(connect(f"w{number}", will=(f"will/{number}", b"x" * 100)))
        assert attacker.next()[0] == 0x20
    for attacker in attackers:
        attacker.close()
    for _ in attackers:
        assert reader.next()[0] & 0xF0 == 0x30


def expiries(scene: Scene) -> None:
    """50,000 messages and 2,000 sessions of 20 subscriptions that expire in the same second."""
    queue_for(scene, "e", scene.many(50_000), b"\x02\0\0\0\x01")
    for number in range(scene.many(2_000)):
        attacker = scene.attacker()
        attacker.send(connect(f"s{number}", 5, b"\x11\0\0\0\x01"))
        assert attacker.next()[0] == 0x20
        attacker.send(subscribe([f"s/{number}/{each}" for each in range(20)], 5))
        assert attacker.next()[0] == 0x90
        attacker.close()
    time.sleep(2.5)


def put_off_to_one_moment(scene: Scene) -> None:
    """10,000 messages that are put off to the same second."""
    reader = scene.client("r")
    reader.send(subscribe(["later/#"]))
    assert reader.next()[0] == 0x90
    publisher = scene.client("p", 5)
    count = scene.many(10_000)
    publisher.send(b"".join(publish(f"$delay/2/later/{n}", b"x", block=b"") for n in range(count)))
    for _ in range(count):
        assert reader.next()[0] == 0x30


def rules(count: int, word: str) -> str:
    """Return rules of so many users, with one pattern for all clients."""
    lines = [f"user u{number}\ntopic {word} own/{number}/#\n" for number in range(count // 2)]
    return "".join(lines) + f"pattern {word} {SHARED_TOPIC}/#\npattern {word} c/%c/#\n"


SHARED_TOPIC = "shared"
"""What the rules of `rules` let everybody do something with."""


def reloaded_rules(scene: Scene) -> None:
    """90,000 rules that change five times while 5,000 clients under them are connected."""
    count, lines = scene.many(5_000), scene.many(90_000)
    scene.rules.write_text(rules(lines, "readwrite"), encoding="utf-8")
    scene.reload()
    clients = [scene.attacker(scene.rules_port).login(f"c{n}") for n in range(count)]
    for number, client in enumerate(clients):
        client.send(subscribe([f"c/c{number}/#"]))
        assert client.next()[0] == 0x90
    for word in ("write", "read", "deny", "write", "readwrite"):
        scene.rules.write_text(rules(lines, word), encoding="utf-8")
        scene.reload()
        for number, client in enumerate(clients[:: len(clients) // 20]):
            client.send(publish(f"c/c{number}/t", b"x") + PINGREQ)
            while client.next()[0] != 0xD0:
                pass


def members_without_rights(scene: Scene) -> None:
    """20 members of a shared subscription with 50,000 messages lose their rights and come back."""
    scene.rules.write_text(rules(10, "readwrite"), encoding="utf-8")
    scene.reload()
    for number in range(20):
        member = come_back(scene, number)
        member.send(subscribe([f"$share/g/{SHARED_TOPIC}/#"], qos=1))
        assert member.next()[0] == 0x90
    publish_at_qos_1(scene, SHARED_TOPIC, scene.many(50_000))
    for word in ("write", "readwrite", "write", "readwrite"):
        scene.rules.write_text(rules(10, word), encoding="utf-8")
        scene.reload()
        for number in range(20):
            come_back(scene, number)


def come_back(scene: Scene, number: int) -> Attacker:
    """Connect a member whose session goes on; an older connection of it is closed."""
    member = scene.attacker(scene.rules_port)
    member.send(connect(f"m{number}", flags=0))
    assert member.next()[0] == 0x20
    return member


def publish_at_qos_1(scene: Scene, prefix: str, count: int) -> None:
    """Publish so many messages, a hundred at a time, each to a topic of its own."""
    publisher = scene.client("p", 5)
    for first in range(0, count, 100):
        for number in range(100):
            topic = f"{prefix}/{first + number}"
            publisher.send(publish_numbered(topic, b"x" * 30, number + 1, b""))
        for _ in range(100):
            answer = publisher.next()
            assert (answer[0], len(answer)) == (0x40, 4)  # no reason code: a subscriber has it
    publisher.close()


def emptied_channels(scene: Scene) -> None:
    """A channel with 100,000 messages, emptied, filled again and deleted by `$CONTROL`."""
    operator = scene.client("operator", 5)
    for number, word in enumerate(("empty", "delete"), start=1):
        publish_at_qos_1(scene, "jobs", scene.many(100_000))
        topic = f"$CONTROL/tidegate/channel/jobs/{word}"
        operator.send(publish_numbered(topic, b"", number, b""))
        assert operator.next()[-2:] != b"\x83\x00"


BOMBS = (
    "payload LIKE '" + "%a" * 40 + "%b'",
    " OR ".join(f"payload.a{number} > {number}" for number in range(100)),
    "(" * 20 + "payload.a.a.a.a.a.a.a.a > 1" + ")" * 20,
    "topic LIKE '%a%a%a%a%a%a%b'",
)
"""Expressions that look at much, or that a simple matcher would try for ever."""


def where_bombs(scene: Scene) -> None:
    """Expressions with 40 wildcards and 100 comparisons over 500 payloads made for them."""
    attacker = scene.client("b", 5)
    for number, expression in enumerate(BOMBS, start=1):
        block = user_property("$where", expression)
        attacker.send(subscribe([f"b/{'+/' * number}#"], 5, number, block=block))
        assert attacker.next()[0] == 0x90
    payloads = (b"a" * 60_000, b"[" * 60_000, b'{"a":' * 10_000, b"[" + b"1," * 30_000 + b"1]")
    for number in range(scene.many(500)):
        attacker.send(publish("b/" + "a/" * 60, payloads[number % 4], block=b""))
    attacker.send(PINGREQ)
    while attacker.next()[0] != 0xD0:
        pass


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


ATTACKS: tuple[Attack, ...] = (
    many_topic_filters,
    deep_topic_filters,
    many_properties,
    many_properties_before_any_password,
    unfinished_connects,
    unfinished_publishes,
    unfinished_frames,
    broken_hellos,
    readers_that_do_not_read,
    many_aliases,
    fan_out,
    retained_again_and_again,
    retained_without_waiting,
    floods_of_pings,
    take_overs,
    take_overs_of_a_long_queue,
    many_wills,
    expiries,
    put_off_to_one_moment,
    reloaded_rules,
    members_without_rights,
    emptied_channels,
    where_bombs,
    trickling,
    nonsense,
)
