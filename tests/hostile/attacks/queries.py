"""Questions to the gateway itself: far too many, far too long, and of those who may not ask."""

from tests.conformance.support.wire import text
from tests.hostile.scene import Attack, Scene
from tests.hostile.wire import Attacker, publish_numbered, subscribe

PUBACK = 0x40

RESPONSE_TOPIC = b"\x08"


def asked(what: str, payload: bytes, number: int, answers: str | None) -> bytes:
    """Return a query, without a Response Topic if `answers` is None."""
    block = b"" if answers is None else RESPONSE_TOPIC + text(answers)
    return publish_numbered(f"$CONTROL/tidegate/query/{what}", payload, number, block)


def operators(scene: Scene, count: int) -> list[tuple[Attacker, str]]:
    """Return clients that are answered, each with its topic."""
    found = []
    for number in range(count):
        client, answers = scene.client(f"o{number}", 5), f"$CONTROL/answers/o{number}"
        client.send(subscribe([answers], version=5))
        assert client.next()[0] == 0x90
        found.append((client, answers))
    return found


def acknowledged(client: Attacker, count: int) -> None:
    """Read so many PUBACKs, and the answers between them."""
    while count:
        count -= client.next()[0] == PUBACK


def too_many_queries(scene: Scene) -> None:
    """1,000 queries at once of each of ten operators, nearly all of which are refused."""
    clients, count = operators(scene, 10), scene.many(1_000)
    for what in ("clients", "topics", "none", "clients"):
        for client, answers in clients:
            queries = [asked(what, b'{"limit":500}', n + 1, answers) for n in range(count)]
            client.send(b"".join(queries))
        for client, _ in clients:
            acknowledged(client, count)


def wrong_queries(scene: Scene) -> None:
    """1,000 queries of 1 MB, without Response Topic, out of range or of strangers, of each kind."""
    ((client, answers),), count = operators(scene, 1), scene.many(1_000)
    stranger = scene.attacker(scene.rules_port).login("stranger", 5)
    for sender, payload, topic in (
        (client, b" " * 1_000_000, answers),
        (client, b"[" * 16_000, answers),
        (client, b"{}", None),
        (client, b"{}", "$SYS/answers"),
        (client, b'{"offset":-1,"limit":1000000}', answers),
        (stranger, b"{}", answers),
    ):
        for number in range(count):
            sender.send(asked("clients", payload, number + 1, topic))
        acknowledged(sender, count)


ATTACKS: tuple[Attack, ...] = (too_many_queries, wrong_queries)
