"""Expressions and members that each message asks."""

from tests.hostile.scene import Attack, Scene
from tests.hostile.wire import PINGREQ, publish, subscribe, user_property

BOMBS = (
    "payload LIKE '" + "%a" * 40 + "%b'",
    " OR ".join(f"payload.a{number} > {number}" for number in range(100)),
    "(" * 20 + "payload.a.a.a.a.a.a.a.a > 1" + ")" * 20,
    "topic LIKE '%a%a%a%a%a%a%b'",
)
"""Expressions that look at much, or that a simple matcher would try for ever."""

NAMES = "abcdefghijklmnopqrstuvwxy"


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


def groups_of_one_topic(scene: Scene) -> None:
    """A client that asks for 100,000 shared subscriptions of one topic, and five messages."""
    member = scene.client("m", 5)
    for first in range(0, scene.many(100_000), 1_000):
        member.send(subscribe([f"$share/g{first + n}/t" for n in range(1_000)], 5))
        assert member.next()[0] == 0x90
    publisher = scene.client("p")
    publisher.send(publish("t", b"x") * 5 + PINGREQ)
    publisher.next()


def members_who_want_nothing(scene: Scene) -> None:
    """256 messages to a group of 2,000 members, each of whose own filters is false."""
    for number in range(scene.many(2_000)):
        member = scene.client(f"m{number}", 5)
        block = user_property("$where", f"payload.a = {number} AND payload.b > 1")
        member.send(subscribe(["$share/g/n"], 5, block=block))
        assert member.next()[0] == 0x90
    publisher = scene.client("p")
    publisher.send(b"".join(publish("n", b'{"b":%d}' % n) for n in range(256)) + PINGREQ)
    publisher.next()


def large_expressions(scene: Scene) -> None:
    """9,600 different expressions of 600 bytes by 150 clients, and five messages for them."""
    for number in range(scene.many(150)):
        owner = scene.client(f"e{number}", 5)
        for each in range(64):
            text = " AND ".join(f"payload.{name}_{number}_{each} > 1" for name in NAMES)
            block = user_property("$where", text)
            owner.send(subscribe([f"e/{each}"], 5, block=block))
            assert owner.next()[0] == 0x90
    publisher = scene.client("p")
    publisher.send(b"".join(publish(f"e/{n}", b'{"a":1}') for n in range(5)) + PINGREQ)
    publisher.next()


ATTACKS: tuple[Attack, ...] = (
    where_bombs,
    groups_of_one_topic,
    members_who_want_nothing,
    large_expressions,
)
