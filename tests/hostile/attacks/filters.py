"""Expressions and members that each message asks."""

from tests.conformance.support.wire import PINGREQ, user_property
from tests.hostile.scene import Attack, Scene
from tests.hostile.wire import connect, publish, subscribe

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


LETTERS = ("é" * 32_000).encode()
"""A payload of 64 KB beyond ASCII."""


def costly(owner: int, each: int) -> str:
    """Return an expression that copies and changes a large payload 80 times."""
    first = 80 * each + 1
    terms = [f"UPPER(SUBSTR(payload,{first + n}))='x{owner}'" for n in range(80)]
    return " OR ".join(terms)


def expressions_that_cost_much(scene: Scene) -> None:
    """16 expressions of 80 times UPPER(SUBSTR(payload, ...)) of each of 20 clients, and 20
    payloads of 64 KB for them, connected or not."""
    for number in range(scene.many(20)):
        owner = scene.attacker()
        owner.send(connect(f"u{number}", 5, b"\x11\0\0\x0e\x10"))
        assert owner.next()[0] == 0x20
        for each in range(16):
            block = user_property("$where", costly(number, each))
            topic_filter = "u/" + "+/" * each + "#"
            owner.send(subscribe([topic_filter], 5, qos=1, block=block))
            assert owner.next()[0] == 0x90
        if number % 2:
            owner.close()
    publisher = scene.client("p", 5)
    for _ in range(scene.many(20)):
        publisher.send(publish("u" + "/u" * 16, LETTERS, block=b""))
    publisher.send(PINGREQ)
    publisher.next()


def likes_of_each_character(scene: Scene) -> None:
    """Five subscriptions to 500 retained messages of 60 KB, each LIKE 150 patterns with `_`."""
    publisher = scene.client("p", 5)
    for number in range(scene.many(500)):
        publisher.send(publish(f"l/{number}", b"a" * 60_000, retain=True, block=b""))
    publisher.send(PINGREQ)
    publisher.next()
    owner = scene.client("l", 5)
    for each, topic_filter in enumerate(("l/+", "l/#", "+/+", "+/#", "#")):
        text = " OR ".join(f"payload LIKE '%_{each}b{n}%'" for n in range(150))
        block = user_property("$where", text)
        owner.send(subscribe([topic_filter], 5, block=block))
        assert owner.next()[0] == 0x90
    owner.send(PINGREQ)
    while owner.next()[0] != 0xD0:
        pass


ATTACKS: tuple[Attack, ...] = (
    where_bombs,
    groups_of_one_topic,
    members_who_want_nothing,
    large_expressions,
    expressions_that_cost_much,
    likes_of_each_character,
)
