"""Much that is published, and receivers that do not take it."""

from tests.hostile.scene import Attack, Scene, publish_at_qos_1
from tests.hostile.wire import (
    PINGREQ,
    connect,
    packet,
    publish,
    publish_numbered,
    subscribe,
    text,
    user_property,
)


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


def floods_of_messages(scene: Scene) -> None:
    """1,000 clients that send 5,000 small messages each at once."""
    publishers = [scene.client(f"p{number}") for number in range(scene.many(1_000))]
    left = dict.fromkeys(
        publishers, b"".join(publish(f"a/{n % 7}", b"x" * 30) for n in range(5_000))
    )
    for publisher in publishers:
        publisher.sock.setblocking(False)
    while left:
        for publisher, data in list(left.items()):
            try:
                left[publisher] = data[publisher.sock.send(data) :]
            except BlockingIOError:
                continue
            if not left[publisher]:
                del left[publisher]


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


def a_million_retained(scene: Scene) -> None:
    """A million retained messages on as many topics."""
    publisher = scene.client("p")
    for first in range(0, scene.many(1_000_000), 1_000):
        numbers = range(first, first + 1_000)
        publisher.send(b"".join(publish(f"m/{n}", b"x" * 30, retain=True) for n in numbers))
    publisher.send(PINGREQ)
    publisher.next()


RECEIVE_MAXIMUM = b"\x21\xff\xff"
WINDOW = 1_000
"""The messages that the gateway sends a client before it acknowledges one."""


def games_with_windows(scene: Scene) -> None:
    """100 clients acknowledge 1,000 messages backwards, each twice, after they took them all."""
    receivers = [scene.attacker() for _ in range(scene.many(100))]
    for number, receiver in enumerate(receivers):
        receiver.send(connect(f"w{number}", 5, RECEIVE_MAXIMUM))
        assert receiver.next()[0] == 0x20
        receiver.send(subscribe(["w/#"], 5, qos=1))
        assert receiver.next()[0] == 0x90
    publisher = scene.client("p", 5)
    for number in range(2 * WINDOW):
        publisher.send(publish_numbered(f"w/{number % 7}", b"x" * 30, number + 1, b""))
    for receiver in receivers:
        identifiers = [identifier_of(receiver.next()) for _ in range(WINDOW)]
        backwards = [packet(0x40, each) for each in reversed(identifiers)]
        receiver.try_to_send(b"".join(backwards * 2))


def identifier_of(received: bytes) -> bytes:
    """Return the packet identifier of a PUBLISH at QoS 1 that is shorter than 128 bytes."""
    topic = int.from_bytes(received[2:4], "big")
    return received[4 + topic : 6 + topic]


ATTACKS: tuple[Attack, ...] = (
    readers_that_do_not_read,
    floods_of_messages,
    many_aliases,
    fan_out,
    games_with_windows,
    retained_again_and_again,
    retained_without_waiting,
    a_million_retained,
    put_off_to_one_moment,
    emptied_channels,
    where_bombs,
)
