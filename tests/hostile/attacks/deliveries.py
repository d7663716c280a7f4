"""Much that is published, and receivers that do not take it."""

import os
import time

from tests.conformance.support.wire import PINGREQ, packet, user_property
from tests.hostile.scene import Attack, Scene, publish_at_qos_1
from tests.hostile.wire import connect, publish, publish_numbered, subscribe


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


def a_large_message_to_many(scene: Scene) -> None:
    """A message of 4.1 MB to 300 subscribers at QoS 1 that read nothing."""
    for number in range(scene.many(300)):
        receiver = scene.attacker(receive_buffer=4_096)
        receiver.login(f"r{number}", 5).send(subscribe(["big"], 5, qos=1))
        receiver.next()
    publisher = scene.client("p", 5)
    publisher.send(publish_numbered("big", bytes(4_100_000), 1, b""))
    assert publisher.next()[0] == 0x40
    time.sleep(40 * scene.scale / 10)  # it is written to few in a turn


def large_messages_without_answers(scene: Scene) -> None:
    """300 clients that read a message of 4.1 MB each, and acknowledge nothing."""
    publisher = scene.client("p", 5)
    for number in range(scene.many(300)):
        receiver = scene.client(f"r{number}", 5)
        receiver.send(subscribe([f"big/{number}"], 5, qos=1))
        if receiver.next()[-1] >= 0x80:
            continue  # there is no memory for it
        publisher.send(publish_numbered(f"big/{number}", os.urandom(4_100_000), number + 1, b""))
        if len(publisher.next()) == 4:  # nothing stands against it
            receiver.next()


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


RECEIVE_MAXIMUM = b"\x21\xff\xff"
WINDOW = 1_000
"""The messages that the gateway sends a client before it acknowledges one."""


def unread_messages_given_up(scene: Scene) -> None:
    """Five clients that read nothing go with all the messages at QoS 0 that may wait for them."""
    publisher = scene.client("p", 5)
    blocks = [user_property("n", str(number)) for number in range(100)]
    packets = b"".join(publish("u", b"x" * 200, block=block) for block in blocks)
    for _ in range(5):
        reader = scene.client("unread", receive_buffer=4096)
        reader.send(subscribe(["u"]))
        assert reader.next()[0] == 0x90
        for _ in range(scene.many(3_000)):
            publisher.send(packets + PINGREQ)
            publisher.next()
        reader.close()


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
    a_large_message_to_many,
    large_messages_without_answers,
    many_aliases,
    unread_messages_given_up,
    fan_out,
    games_with_windows,
    put_off_to_one_moment,
    emptied_channels,
)
