"""Very many retained messages, and who asks for them."""

import time

from tests.conformance.support.wire import PINGREQ, packet, text
from tests.hostile.scene import Attack, Scene
from tests.hostile.wire import publish, subscribe


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


def a_million_retained(scene: Scene) -> None:
    """A million retained messages on as many topics."""
    publisher = scene.client("p")
    for first in range(0, scene.many(1_000_000), 1_000):
        numbers = range(first, first + 1_000)
        publisher.send(b"".join(publish(f"m/{n}", b"x" * 30, retain=True) for n in numbers))
    publisher.send(PINGREQ)
    publisher.next()


def retained_until_one_moment(scene: Scene) -> None:
    """90,000 retained messages that expire in the same second."""
    publisher = scene.client("p", 5)
    for first in range(0, scene.many(90_000), 100):
        numbers = range(first, first + 100)
        block = b"\x02\0\0\0\x03"
        messages = [publish(f"r/{n}", b"x" * 30, retain=True, block=block) for n in numbers]
        publisher.send(b"".join(messages))
    publisher.send(PINGREQ)
    publisher.next()
    time.sleep(14)  # it is looked for each ten seconds


def replays_without_end(scene: Scene) -> None:
    """20 clients that read nothing subscribe to all of 90,000 retained messages in 100 ways."""
    publisher = scene.client("p")
    for number in range(scene.many(90_000)):
        publisher.send(publish(f"r/{number}", b"x" * 30, retain=True))
    publisher.send(PINGREQ)
    publisher.next()
    for number in range(20):
        attacker = scene.client(f"s{number}", 5, receive_buffer=4_096)
        shared = [f"{'+/' * levels}#" for levels in range(100)]
        attacker.send(subscribe([*shared, "#", "r/#", "r/+", "+/+"], 5))
    publisher.send(publish("r/1", b"y", retain=True) * 100 + PINGREQ)
    publisher.next()


ATTACKS: tuple[Attack, ...] = (
    retained_again_and_again,
    retained_without_waiting,
    a_million_retained,
    retained_until_one_moment,
    replays_without_end,
)
