"""Access rules that change while very many clients are under them."""

from tests.conformance.support.wire import PINGREQ
from tests.hostile.scene import Attack, Scene, publish_at_qos_1
from tests.hostile.wire import Attacker, connect, publish, subscribe

SHARED_TOPIC = "shared"
"""What the rules of `rules` let everybody do something with."""


def rules(count: int, word: str) -> str:
    """Return rules of so many users, with one pattern for all clients."""
    lines = [f"user u{number}\ntopic {word} own/{number}/#\n" for number in range(count // 2)]
    return "".join(lines) + f"pattern {word} {SHARED_TOPIC}/#\npattern {word} c/%c/#\n"


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


ATTACKS: tuple[Attack, ...] = (reloaded_rules, members_without_rights)
