"""Sessions that are taken over, end, or expire, very many at once."""

import time

from tests.hostile.scene import Attack, Scene, queue_for
from tests.hostile.wire import connect, subscribe


def take_overs(scene: Scene) -> None:
    """A client identifier that 2,000 connections take from each other, each with 100 filters."""
    filters = subscribe([f"t/{number}" for number in range(100)])
    for _ in range(scene.many(2_000)):
        scene.attacker().send(connect("same") + filters)


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


def long_names(scene: Scene) -> None:
    """4,000 connected clients and 4,000 sessions of others, with identifiers of 60,000 bytes."""
    for number in range(scene.many(4_000)):
        scene.attacker().send(connect(f"{number}".ljust(60_000, "c")))
        gone = scene.attacker()
        gone.send(connect(f"{number}".ljust(60_000, "s"), flags=0))
        gone.next()
        gone.close()


ATTACKS: tuple[Attack, ...] = (
    take_overs,
    take_overs_of_a_long_queue,
    many_wills,
    expiries,
    long_names,
)
